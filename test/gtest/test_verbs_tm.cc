/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching through libibverbs: ibv_create_srq_ex(3), ibv_post_srq_ops(3),
 * and rdma-core's Documentation/tag_matching.md. Also rendezvous, and senders
 * and receivers that are killed or stopped.
 */
#include "tm_bench.h"
#include "verbs_peer.h"

#include <signal.h>
#include <sys/time.h>

namespace {

verbs_options tm_ep(const tm_srq &tm)
{
    verbs_options options;

    options.srq = tm.srq;
    return options;
}

/* Returns options of a queue pair without a send queue of its own: the device
 * fetches the data of rendezvous through it. */
verbs_options tm_rndv_ep(const tm_srq &tm)
{
    verbs_options options = tm_ep(tm);

    options.send_wr = 0;
    return options;
}

class verbs_tm : public verbs_test {
protected:
    /* Sends the message from `src`. @return status of the completion */
    enum ibv_wc_status send(verbs_ep &ep, const tm_msg &msg,
                            enum ibv_wr_opcode opcode = IBV_WR_SEND,
                            uint32_t imm              = 0)
    {
        verbs_op op(opcode);

        memcpy(src.addr, msg.bytes.data(), msg.bytes.size());
        op.wr.imm_data = htobe32(imm);
        return run(ep, op.local(src, msg.bytes.size()));
    }

    enum ibv_wc_status eager(uint64_t tag, uint32_t length = 64)
    {
        return send(pair.a, tm_msg(IBV_TMH_EAGER, tag, length, tag ^ 0xaa));
    }

    void expect_eager(uint64_t wr_id, unsigned slot, uint64_t tag,
                      uint32_t length = 64)
    {
        tm_msg msg(IBV_TMH_EAGER, tag, length);

        EXPECT_EQ(length, tm.expect_match(wr_id, tag, tag ^ 0xaa));
        EXPECT_TRUE(tm.holds(slot, msg.data(), length));
    }

    /* Sends an unexpected message: entries added after it match nothing until
     * it is counted. */
    void send_unexpected(unsigned slot, uint64_t tag)
    {
        tm.recv(slot);
        EXPECT_EQ(IBV_WC_SUCCESS, eager(tag));
        tm.expect_recv(slot);
    }

    tm_srq tm{dev};
    verbs_pair pair{dev, {}, tm_ep(tm)};
};

TEST_P(verbs_tm, is_reported)
{
    struct ibv_device_attr_ex attr = {};

    ASSERT_EQ(0, ibv_query_device_ex(dev.ctx, NULL, &attr));
    EXPECT_EQ(1023u, attr.tm_caps.max_num_tags);
    EXPECT_EQ(32768u, attr.tm_caps.max_ops);
    EXPECT_EQ(1u, attr.tm_caps.max_sge);
    EXPECT_EQ(64u, attr.tm_caps.max_rndv_hdr_size);
    EXPECT_EQ((unsigned)IBV_TM_CAP_RC, attr.tm_caps.flags);
}

TEST_P(verbs_tm, takes_an_expected_message_without_its_header)
{
    tm.add({.wr_id = 7, .tag = 0x1122334455667788, .slot = 2});
    EXPECT_EQ(IBV_WC_SUCCESS, eager(0x1122334455667788));
    expect_eager(7, 2, 0x1122334455667788);
    EXPECT_EQ(0x22, tm.at(2)[64]) << "beyond the message";
    EXPECT_TRUE(tm.is_empty());
}

TEST_P(verbs_tm, hands_out_immediate_data)
{
    tm.add({.tag = 5});
    EXPECT_EQ(IBV_WC_SUCCESS, send(pair.a, tm_msg(IBV_TMH_EAGER, 5, 8),
                                   IBV_WR_SEND_WITH_IMM, 0xabcdef01));
    tm_wc wc = tm.wait();
    EXPECT_EQ(TM_MATCH | TM_DATA | IBV_WC_WITH_IMM, wc.flags);
    EXPECT_EQ(0xabcdef01, wc.imm);
}

TEST_P(verbs_tm, gives_what_matches_nothing_to_a_receive)
{
    tm_msg msg(IBV_TMH_EAGER, 6, 100, 6 ^ 0xaa);

    tm.add({.wr_id = 1, .tag = 5});
    tm.recv(3);
    EXPECT_EQ(IBV_WC_SUCCESS, eager(6, 100));
    EXPECT_EQ(116u, tm.expect_recv(3).byte_len);
    EXPECT_TRUE(tm.holds(3, msg.bytes.data(), 116));
    EXPECT_EQ(IBV_WC_SUCCESS, eager(5));
    expect_eager(1, 0, 5);
}

/* The device uses only the first byte of a message without a tag; the end of a
 * rendezvous is for the program. Neither is unexpected. */
TEST_P(verbs_tm, matches_no_message_without_a_tag)
{
    tm_msg no_tag(IBV_TMH_NO_TAG, 0, 0), fin(IBV_TMH_FIN, 0, 0);

    tm.add({.wr_id = 1, .mask = 0});
    no_tag.bytes.resize(1);
    for (unsigned slot : {3, 4}) {
        tm.recv(slot);
        EXPECT_EQ(IBV_WC_SUCCESS, send(pair.a, (slot == 3) ? no_tag : fin));
        EXPECT_EQ((slot == 3) ? 1u : 16u,
                  tm.expect_recv(slot, IBV_WC_TM_NO_TAG).byte_len);
    }
    tm.add({.wr_id = 2, .tag = 5, .slot = 1});
    for (unsigned slot : {0, 1}) {
        EXPECT_EQ(IBV_WC_SUCCESS, eager(5));
        expect_eager(slot + 1, slot, 5);
    }
}

TEST_P(verbs_tm, matches_in_the_order_of_the_list)
{
    const uint64_t order[] = {1, 2, 4, 5, 3}; /* wr_ids */

    tm.add({.wr_id = 1, .tag = 9});
    tm.add({.wr_id = 2, .mask = 0}); /* any */
    tm.add({.wr_id = 3, .tag = 8});
    tm.add({.wr_id = 4, .tag = 9});
    tm.add({.wr_id = 5, .tag = 0x100, .mask = 0x100});
    for (uint64_t wr_id : order) {
        uint64_t tag = (wr_id == 5) ? 0x1fe : (wr_id == 3) ? 8 : 9;

        EXPECT_EQ(IBV_WC_SUCCESS, eager(tag));
        expect_eager(wr_id, 0, tag);
    }
}

TEST_P(verbs_tm, tells_of_a_match_before_the_data_of_several_packets)
{
    const uint32_t length = 3000; /* packets have 1024 */
    tm_msg msg(IBV_TMH_EAGER, 5, length);

    for (unsigned turn = 0; turn < 2; turn++) {
        tm.add({.wr_id = 1, .tag = 5, .length = 4096});
        EXPECT_EQ(IBV_WC_SUCCESS, eager(5, turn ? length : 1024 - 16));
        tm_wc wc = tm.wait();
        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(IBV_WC_TM_RECV, wc.opcode);
        EXPECT_EQ(5u, wc.tag);
        EXPECT_EQ(turn ? TM_MATCH : TM_MATCH | TM_DATA, wc.flags);
    }
    tm_wc wc = tm.wait();
    EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    EXPECT_EQ(1u, wc.wr_id);
    EXPECT_EQ(TM_DATA, wc.flags);
    EXPECT_EQ(length, wc.byte_len);
    EXPECT_TRUE(tm.holds(0, msg.data(), length));
}

/* m1 is unexpected; a buffer for it, posted by a program that has not polled
 * it, must not get m2. Buffers posted before m1 arrived still match. */
TEST_P(verbs_tm, matches_nothing_new_until_the_program_is_in_step)
{
    tm.add({.wr_id = 1, .tag = 1});
    send_unexpected(8, 2);

    tm_srq::op late = {.wr_id = 2, .tag = 2, .slot = 1, .sync = 0};
    EXPECT_TRUE(tm.run(IBV_WR_TAG_ADD, late).flags & IBV_WC_TM_SYNC_REQ);
    send_unexpected(9, 2);
    EXPECT_EQ(IBV_WC_SUCCESS, eager(1));
    expect_eager(1, 0, 1);

    tm.sync(1);
    send_unexpected(10, 2);
    tm.sync(3);
    EXPECT_EQ(IBV_WC_SUCCESS, eager(2));
    expect_eager(2, 1, 2);
}

TEST_P(verbs_tm, is_in_step_by_an_add)
{
    send_unexpected(8, 2);
    tm.add({.wr_id = 1, .tag = 2, .sync = 0});
    tm_srq::op now = {.wr_id = 2, .tag = 3, .slot = 1, .sync = 1};
    EXPECT_FALSE(tm.run(IBV_WR_TAG_ADD, now).flags & IBV_WC_TM_SYNC_REQ);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(IBV_WC_SUCCESS, eager(3 - i));
        expect_eager(2 - i, 1 - i, 3 - i);
    }
}

/* A count that decreases, or exceeds the messages, is the program's error: it
 * is reported, and nothing matches until the count is right. */
TEST_P(verbs_tm, says_that_a_count_is_wrong)
{
    hca_log_reader log;

    send_unexpected(8, 1);
    tm.sync(1);
    EXPECT_EQ("", log.take());
    for (int count : {0, 3}) {
        tm.add({.wr_id = 1, .tag = 5, .sync = count});
        EXPECT_NE(std::string::npos, log.take().find("tm sw_cnt is 0x"));
        send_unexpected(9, 5);
        tm.sync((count == 0) ? 2 : 3);
        log.take();
        EXPECT_EQ(IBV_WC_SUCCESS, eager(5));
        expect_eager(1, 0, 5);
    }
}

TEST_P(verbs_tm, removes_what_has_not_matched)
{
    uint32_t handles[5];

    for (unsigned i = 0; i < 5; i++) {
        handles[i] = tm.add({.wr_id = i, .tag = i % 2, .slot = i});
    }
    for (unsigned i : {2, 0, 4}) {
        EXPECT_EQ(IBV_WC_SUCCESS, tm.del(handles[i]));
    }
    send_unexpected(8, 0);
    for (unsigned i : {1, 3}) {
        EXPECT_EQ(IBV_WC_SUCCESS, eager(1));
        expect_eager(i, i, 1);
    }
}

TEST_P(verbs_tm, cannot_remove_what_has_matched)
{
    tm_srq::op what = {.handle = tm.add({.wr_id = 1, .tag = 5})};

    EXPECT_EQ(IBV_WC_SUCCESS, eager(5));
    ASSERT_EQ(0, tm.post(IBV_WR_TAG_DEL, what));
    expect_eager(1, 0, 5);
    tm_wc wc = tm.wait();
    EXPECT_EQ(IBV_WC_TM_DEL, wc.opcode);
    EXPECT_EQ(IBV_WC_TM_ERR, wc.status);
}

/* All entries, repeatedly, out of order */
TEST_P(verbs_tm, goes_on_with_a_list_that_was_full)
{
    tm_srq::op more = {.tag = 99};

    for (unsigned turn = 0; turn < 20; turn++) {
        for (unsigned i = 0; i < 15; i++) {
            tm.add({.wr_id = i, .tag = i});
        }
        EXPECT_EQ(ENOMEM, tm.post(IBV_WR_TAG_ADD, more));
        for (unsigned i = 0; i < 15; i++) {
            unsigned tag = (i * 7 + turn) % 15;

            EXPECT_EQ(IBV_WC_SUCCESS, eager(tag));
            expect_eager(tag, 0, tag);
        }
    }
}

/* The buffer stays: the next message that fits gets it. */
TEST_P(verbs_tm, refuses_a_message_that_is_too_long)
{
    hca_log_reader log;
    verbs_pair other(dev, {}, tm_ep(tm));

    tm.add({.wr_id = 1, .tag = 5, .length = 63});
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, eager(5));
    EXPECT_EQ(IBV_QPS_ERR, pair.b.state());
    EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, verbs_event(dev.ctx).event_type);
    EXPECT_NE(std::string::npos,
              log.take().find("data of the message is 0x40"));
    EXPECT_TRUE(tm.is_empty());

    EXPECT_EQ(IBV_WC_SUCCESS,
              send(other.a, tm_msg(IBV_TMH_EAGER, 5, 63, 5 ^ 0xaa)));
    expect_eager(1, 0, 5, 63);
}

/* The match was reported: the buffer belongs to the program again, without the
 * data. */
TEST_P(verbs_tm, gives_back_a_buffer_whose_memory_went_away)
{
    tm.add({.wr_id = 1, .tag = 5, .length = 4096});
    tm.mem.unmap();
    EXPECT_EQ(IBV_WC_REM_OP_ERR, eager(5, 3000));
    EXPECT_EQ(TM_MATCH, tm.wait().flags);
    tm_wc wc = tm.wait();
    EXPECT_EQ(1u, wc.wr_id);
    EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
    EXPECT_TRUE(tm.is_empty());
    EXPECT_EQ(IBV_QPS_ERR, pair.b.state());
    EXPECT_EQ(IBV_EVENT_QP_FATAL, verbs_event(dev.ctx).event_type);
}

TEST_P(verbs_tm, takes_an_empty_message)
{
    for (uint32_t length : {0, 64}) {
        tm.add({.wr_id = length, .tag = 5, .length = length});
        EXPECT_EQ(IBV_WC_SUCCESS, eager(5, 0));
        expect_eager(length, 0, 5, 0);
    }
}

/* A message that invalidates a key does so when it has a receive, tagged or
 * not; until then its sender retries. */
class verbs_tm_window : public verbs_tm {
protected:
    verbs_tm_window() { EXPECT_EQ(IBV_WC_SUCCESS, bind(key)); }

    ~verbs_tm_window() { EXPECT_EQ(0, ibv_dealloc_mw(mw)); }

    enum ibv_wc_status send_with_inv()
    {
        return send(pair.a, tm_msg(IBV_TMH_EAGER, 5, 64), IBV_WR_SEND_WITH_INV,
                    be32toh(key));
    }

    /* A window that is still open cannot be bound again. */
    enum ibv_wc_status bind(uint32_t new_key)
    {
        verbs_op op(IBV_WR_BIND_MW);

        op.wr.bind_mw = {
            mw,
            new_key,
            {dst.mr, (uintptr_t)dst.addr, 512, IBV_ACCESS_REMOTE_WRITE}};
        return run(pair.b, op);
    }

    bool is_open() { return bind(ibv_inc_rkey(key)) == IBV_WC_MW_BIND_ERR; }

    struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
    uint32_t key      = ibv_inc_rkey(mw->rkey);
};

TEST_P(verbs_tm_window, stays_without_a_receive)
{
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, send_with_inv());
    EXPECT_TRUE(is_open());
}

TEST_P(verbs_tm_window, is_closed_by_a_receive)
{
    tm.recv(3);
    EXPECT_EQ(IBV_WC_SUCCESS, send_with_inv());
    EXPECT_TRUE(tm.expect_recv(3).flags & IBV_WC_WITH_INV);
    EXPECT_FALSE(is_open());
}

TEST_P(verbs_tm_window, is_closed_by_a_match)
{
    tm.add({.wr_id = 1, .tag = 5});
    EXPECT_EQ(IBV_WC_SUCCESS, send_with_inv());
    EXPECT_TRUE(tm.wait().flags & IBV_WC_WITH_INV);
    EXPECT_FALSE(is_open());
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_window, testing::Values(0));

/* A message without a receive is not counted: the sender retries. */
TEST_P(verbs_tm, counts_no_message_that_found_no_receive)
{
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, eager(5));
    tm_srq::op what = {.wr_id = 1, .tag = 5};
    EXPECT_FALSE(tm.run(IBV_WR_TAG_ADD, what).flags & IBV_WC_TM_SYNC_REQ);
    verbs_pair other(dev, {}, tm_ep(tm));
    EXPECT_EQ(IBV_WC_SUCCESS,
              send(other.a, tm_msg(IBV_TMH_EAGER, 5, 64, 5 ^ 0xaa)));
    expect_eager(1, 0, 5);
}

TEST_P(verbs_tm, takes_pieces_from_all_over)
{
    tm_msg msg(IBV_TMH_EAGER, 5, 64, 5 ^ 0xaa);
    verbs_op op(IBV_WR_SEND);

    /* of the header, and of the rest */
    memcpy(src.addr, msg.bytes.data(), 10);
    memcpy(src.addr + 1000, msg.bytes.data() + 10, 30);
    memcpy(src.addr + 2000, msg.bytes.data() + 40, 40);
    op.local((uintptr_t)src.addr, 10, src.mr->lkey)
        .local((uintptr_t)src.addr + 1000, 30, src.mr->lkey)
        .local((uintptr_t)src.addr + 2000, 40, src.mr->lkey);
    tm.add({.wr_id = 1, .tag = 5});
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    expect_eager(1, 0, 5);
}

TEST_P(verbs_tm, is_made_of_what_there_can_be)
{
    struct ibv_qp_init_attr attr = {};

    for (uint32_t tags : {1024u, 1u << 31}) {
        EXPECT_EQ(nullptr, tm_srq::create(dev, tm.cq, {.tags = tags}));
    }
    for (uint32_t tags : {1u, 16u, 1023u}) {
        struct ibv_srq *srq = tm_srq::create(dev, tm.cq, {.tags = tags});

        ASSERT_NE(nullptr, srq);
        EXPECT_EQ(0, ibv_destroy_srq(srq));
    }
    attr.send_cq = attr.recv_cq = pair.a.send_cq;
    attr.srq                    = tm.srq;
    attr.cap                    = {1, 0, 1, 0, 0};
    for (enum ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
        attr.qp_type = type;
        EXPECT_EQ(nullptr, ibv_create_qp(dev.pd, &attr));
    }
}

/* Events without a counter on a NIC: logged when the queue is queried */
class verbs_tm_counts : public verbs_tm {};

TEST_P(verbs_tm_counts, are_logged_by_a_query)
{
    struct ibv_srq_attr attr = {};
    hca_log_reader log;
    tm_msg no_tag(IBV_TMH_NO_TAG, 0, 0);

    for (unsigned i = 0; i < 3; i++) {
        tm.add({.wr_id = 1, .tag = 5});
        EXPECT_EQ(IBV_WC_SUCCESS, eager(5));
        expect_eager(1, 0, 5);
    }
    send_unexpected(8, 6);
    send_unexpected(8, 6);
    tm.recv(3);
    EXPECT_EQ(IBV_WC_SUCCESS, send(pair.a, no_tag));
    log.take();
    EXPECT_EQ(0, ibv_query_srq(tm.srq, &attr));
    EXPECT_NE(std::string::npos,
              log.take().find("tag matching: 3 expected, 2 unexpected, 1 "
                              "without a tag"));
}

INSTANTIATE_TEST_SUITE_P(info, verbs_tm_counts, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(plain, verbs_tm, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, verbs_tm, testing::Values(0));

/* --- rendezvous ----------------------------------------------------------- */

class verbs_tm_rndv : public verbs_tm {
protected:
    static constexpr uint32_t LENGTH = 5000;

    verbs_tm_rndv()
    {
        for (size_t i = 0; i < m_data.size; i++) {
            m_data.addr[i] = i * 7;
        }
    }

    tm_rndv headers(enum ibv_tmh_op op, uint32_t length = LENGTH) const
    {
        return tm_rndv(op, 5, m_data.addr + 1, m_data.mr->rkey, length);
    }

    /* Sends a request, followed by data of the program. @return status of the
     * completion */
    enum ibv_wc_status request(verbs_ep &ep, const tm_rndv &msg)
    {
        memset(src.addr, 0x77, 64);
        memcpy(src.addr, &msg.headers, sizeof(msg.headers));
        return run(ep, verbs_test::send(0, 64));
    }

    enum ibv_wc_status request()
    {
        return request(rndv.a, headers(IBV_TMH_RNDV));
    }

    /* Posts the receive of the FIN. */
    void recv_fin() { EXPECT_EQ(0, verbs_recv(rndv.a.qp, dst, 64)); }

    void expect_fin()
    {
        tm_rndv fin      = headers(IBV_TMH_FIN);
        struct ibv_wc wc = verbs_wait(rndv.a.recv_cq);

        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(sizeof(fin.headers), wc.byte_len);
        EXPECT_EQ(dev.is_roce() ? (unsigned)IBV_WC_GRH : 0u, wc.wc_flags);
        EXPECT_EQ(0, memcmp(dst.addr, &fin.headers, sizeof(fin.headers)));
    }

    void expect_consumed()
    {
        tm_wc wc = tm.wait();

        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(IBV_WC_TM_RECV, wc.opcode);
        EXPECT_EQ(1u, wc.wr_id);
        EXPECT_EQ(TM_MATCH, wc.flags);
        EXPECT_EQ(5u, wc.tag);
        EXPECT_EQ(0x01020304u, wc.priv);
    }

    void expect_data()
    {
        tm_wc wc = tm.wait();

        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(1u, wc.wr_id);
        EXPECT_EQ(TM_DATA, wc.flags);
        EXPECT_EQ(LENGTH, wc.byte_len);
        EXPECT_TRUE(tm.holds(0, m_data.addr + 1, LENGTH));
    }

    strict_mem m_data{dev.pd, ACCESS_ALL, 0x33};
    verbs_pair rndv{dev, {}, tm_rndv_ep(tm)};
};

TEST_P(verbs_tm_rndv, fetches_what_matches)
{
    for (unsigned turn = 0; turn < 3; turn++) {
        memset(tm.mem.addr, 0, tm.mem.size);
        recv_fin();
        tm.add({.wr_id = 1, .tag = 5, .length = LENGTH + turn});
        EXPECT_EQ(IBV_WC_SUCCESS, request());
        expect_consumed();
        expect_data();
        expect_fin();
        EXPECT_EQ(0, tm.mem.addr[LENGTH]) << "beyond the data";
    }
    EXPECT_TRUE(tm.is_empty());
}

TEST_P(verbs_tm_rndv, gives_an_unexpected_request_to_a_receive)
{
    tm_rndv msg = headers(IBV_TMH_RNDV);

    tm.add({.wr_id = 1, .tag = 6});
    tm.recv(3);
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    EXPECT_EQ(64u, tm.expect_recv(3).byte_len);
    EXPECT_TRUE(tm.holds(3, &msg.headers, sizeof(msg.headers)));

    tm_srq::op late = {.wr_id = 2, .tag = 5, .sync = 0};
    EXPECT_TRUE(tm.run(IBV_WR_TAG_ADD, late).flags & IBV_WC_TM_SYNC_REQ)
        << "it is counted";
}

/* The data does not fit: the program has to fetch it, and the request is in the
 * buffer. */
TEST_P(verbs_tm_rndv, leaves_to_the_program_what_does_not_fit)
{
    tm_rndv msg = headers(IBV_TMH_RNDV);

    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH - 1});
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    tm_wc wc = tm.wait();
    EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
    EXPECT_EQ(1u, wc.wr_id);
    EXPECT_EQ(64u, wc.byte_len);
    EXPECT_TRUE(tm.holds(0, &msg.headers, sizeof(msg.headers)));
    EXPECT_EQ(0x77, tm.at(0)[63]);
    EXPECT_TRUE(tm.is_empty());
}

/* The program has to fetch the data, too, if the queue pair has a send queue,
 * which the program may use. */
TEST_P(verbs_tm_rndv, leaves_to_the_program_what_it_has_no_queue_for)
{
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request(pair.a, headers(IBV_TMH_RNDV)));
    EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, tm.wait().status);
}

/* A request that does not fit into the buffer is refused. */
TEST_P(verbs_tm_rndv, needs_a_buffer_for_its_headers)
{
    tm.add({.wr_id = 1, .tag = 5, .length = 63});
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, request());
    EXPECT_TRUE(tm.is_empty());
    EXPECT_EQ(IBV_EVENT_QP_REQ_ERR, verbs_event(dev.ctx).event_type);
}

TEST_P(verbs_tm_rndv, fetches_nothing_if_there_is_nothing)
{
    recv_fin();
    tm.add({.wr_id = 1, .tag = 5});
    EXPECT_EQ(IBV_WC_SUCCESS, request(rndv.a, headers(IBV_TMH_RNDV, 0)));
    expect_consumed();
    EXPECT_EQ(TM_DATA, tm.wait().flags);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(rndv.a.recv_cq).status);
}

/* Both ends go into error, and the buffer belongs to the program again. */
TEST_P(verbs_tm_rndv, cannot_fetch_by_a_key_that_is_none)
{
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS,
              request(rndv.a, tm_rndv(IBV_TMH_RNDV, 5, m_data.addr,
                                      m_data.mr->rkey ^ 0x800000, LENGTH)));
    expect_consumed();
    tm_wc wc = tm.wait();
    EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
    EXPECT_EQ(1u, wc.wr_id);
    EXPECT_EQ(IBV_QPS_ERR, rndv.a.state());
    EXPECT_EQ(IBV_QPS_ERR, rndv.b.state());
    EXPECT_EQ(IBV_EVENT_QP_ACCESS_ERR, verbs_event(dev.ctx).event_type);
}

/* The data has arrived; the FIN waits for a receive, without limit, and blocks
 * nothing: the second one does the same meanwhile. */
TEST_P(verbs_tm_rndv, waits_for_a_receive_of_the_fin)
{
    verbs_options patient = tm_rndv_ep(tm);

    patient.rnr_retry = 7;
    verbs_pair other(dev, {}, patient);
    for (unsigned i = 0; i < 2; i++) {
        tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
        EXPECT_EQ(IBV_WC_SUCCESS, request(other.a, headers(IBV_TMH_RNDV)));
        expect_consumed();
        expect_data();
        time_quiet(QUIET_RNR);
        EXPECT_TRUE(verbs_is_empty(other.a.recv_cq));
    }
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(0, verbs_recv(other.a.qp, dst, 64));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.recv_cq).status);
    }
    EXPECT_EQ(IBV_QPS_RTS, other.b.state());
}

/* The queue pair that sends the FIN has limited retries: it fails, after the
 * data has arrived. */
TEST_P(verbs_tm_rndv, gives_up_on_the_fin_as_its_queue_pair_does)
{
    verbs_options short_tempered = tm_rndv_ep(tm);

    short_tempered.rnr_retry = 2;
    verbs_pair other(dev, {}, short_tempered);
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request(other.a, headers(IBV_TMH_RNDV)));
    expect_consumed();
    expect_data();
    EXPECT_TRUE(hca_until([&] { return other.b.state() == IBV_QPS_ERR; }));
    EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, verbs_event(dev.ctx).event_type);
    EXPECT_TRUE(tm.is_empty());
}

/* A request without an entry or a receive is retried, and matches an entry that
 * was added meanwhile. */
TEST_P(verbs_tm_rndv, waits_for_an_entry)
{
    verbs_options patient;
    tm_rndv msg = headers(IBV_TMH_RNDV);

    patient.rnr_retry = 7;
    verbs_pair other(dev, patient, tm_rndv_ep(tm));
    EXPECT_EQ(0, verbs_recv(other.a.qp, dst, 64));
    memcpy(src.addr, &msg.headers, sizeof(msg.headers));
    EXPECT_EQ(0, verbs_test::send(0, 64).post(other.a.qp));
    time_quiet(QUIET_RNR);
    EXPECT_TRUE(verbs_is_empty(other.a.send_cq));
    EXPECT_TRUE(tm.is_empty());
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.send_cq).status);
    expect_consumed();
    expect_data();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.recv_cq).status);
}

TEST_P(verbs_tm_rndv, ends_with_a_receive_queue_of_tags)
{
    tm_srq own(dev);
    verbs_pair both(dev, tm_ep(own), tm_rndv_ep(tm));

    own.recv(3);
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request(both.a, headers(IBV_TMH_RNDV)));
    expect_consumed();
    expect_data();
    own.expect_recv(3, IBV_WC_TM_NO_TAG);
}

/* The queue pair is destroyed between the match and the read. */
TEST_P(verbs_tm_rndv, goes_on_when_its_queue_pair_does)
{
    recv_fin();
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    rndv.b.destroy_qp();
    expect_consumed();
    tm_wc wc = tm.wait();
    EXPECT_TRUE((wc.status == IBV_WC_SUCCESS) ||
                (wc.status == IBV_WC_TM_RNDV_INCOMPLETE));
    EXPECT_EQ(1u, wc.wr_id);
}

/* Operations of a queue pair end with its reset, and do not use its next
 * connection. */
TEST_P(verbs_tm_rndv, is_none_of_the_next_connection)
{
    verbs_options patient = tm_rndv_ep(tm);

    patient.rnr_retry = 7;
    verbs_pair first(dev, {}, patient);
    verbs_ep second(dev);
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request(first.a, headers(IBV_TMH_RNDV)));
    expect_consumed();
    expect_data();
    hca_modify(first.b.qp, {}, IBV_QPS_RESET, 0);
    second.connect(first.b);
    first.b.connect(second);
    EXPECT_EQ(0, verbs_recv(second.qp, dst, 64));
    time_quiet(QUIET_RNR);
    EXPECT_TRUE(verbs_is_empty(second.recv_cq));

    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request(second, headers(IBV_TMH_RNDV)));
    expect_consumed();
    expect_data();
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(second.recv_cq).status);
}

/* The number of rendezvous in progress is limited. */
constexpr unsigned MAX_RNDV = 64;

TEST_P(verbs_tm_rndv, leaves_to_the_program_what_is_too_much)
{
    verbs_options patient;
    tm_options options;

    options.tags = MAX_RNDV + 1;
    options.cqe  = 4 * MAX_RNDV;
    tm_srq more(dev, options);
    patient           = tm_rndv_ep(more);
    patient.rnr_retry = 7;
    verbs_pair other(dev, {}, patient);
    for (unsigned i = 0; i <= MAX_RNDV; i++) {
        more.add({.wr_id = i, .tag = 5, .length = LENGTH});
        EXPECT_EQ(IBV_WC_SUCCESS, request(other.a, headers(IBV_TMH_RNDV)));
        tm_wc wc = more.wait();
        EXPECT_EQ(i, wc.wr_id);
        if (i < MAX_RNDV) {
            EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
            EXPECT_EQ(LENGTH, more.wait().byte_len);
        } else {
            EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
        }
    }
    for (unsigned i = 0; i < MAX_RNDV; i++) { /* FINs wait for receives */
        EXPECT_EQ(0, verbs_recv(other.a.qp, dst, 64));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.recv_cq).status);
    }
}

/* A program's signal handler may send at any time, also within the
 * allocator. */
verbs_op *tm_alarm_op;
struct ibv_qp *tm_alarm_qp;
volatile sig_atomic_t tm_alarms;

void tm_on_alarm(int)
{
    tm_alarm_op->post(tm_alarm_qp);
    tm_alarms = tm_alarms + 1;
}

TEST_P(verbs_tm_rndv, may_be_asked_for_in_a_signal_handler)
{
    constexpr int TURNS         = 50;
    const struct itimerval soon = {{0, 0}, {0, time_slow(SIGNAL_PERIOD)}};
    struct sigaction action     = {}, saved;
    tm_rndv msg                 = headers(IBV_TMH_RNDV);
    verbs_op op                 = verbs_test::send(0, 64);

    memcpy(src.addr, &msg.headers, sizeof(msg.headers));
    tm_alarm_op       = &op;
    tm_alarm_qp       = rndv.a.qp;
    tm_alarms         = 0;
    action.sa_handler = tm_on_alarm;
    action.sa_flags   = SA_RESTART;
    ASSERT_EQ(0, sigaction(SIGALRM, &action, &saved));
    for (int turn = 0; turn < TURNS; turn++) {
        recv_fin();
        tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
        setitimer(ITIMER_REAL, &soon, NULL);
        while (tm_alarms == turn) {
            void *volatile memory = malloc(3000); /* not from a thread's
                                                   * cache */
            free(memory);
        }
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(rndv.a.send_cq).status);
        expect_consumed();
        expect_data();
        expect_fin();
    }
    sigaction(SIGALRM, &saved, NULL);
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_rndv, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, verbs_tm_rndv, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(scatter, verbs_tm_rndv, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(large_cqe, verbs_tm_rndv, testing::Values(0));

/* The answer to the first FIN is lost while there is a second request. */
class verbs_tm_lost : public verbs_tm_rndv {};

TEST_P(verbs_tm_lost, is_told_once_of_each)
{
    verbs_options slow = tm_rndv_ep(tm);

    slow.timeout = 14;
    verbs_pair other(dev, {}, slow);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_EQ(0, verbs_recv(other.a.qp, dst, 64));
    }
    for (unsigned i = 0; i < 2; i++) {
        tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
        EXPECT_EQ(IBV_WC_SUCCESS, request(other.a, headers(IBV_TMH_RNDV)));
        expect_consumed();
        expect_data();
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.recv_cq).status);
    }
    time_quiet(QUIET_ACK);
    EXPECT_TRUE(verbs_is_empty(other.a.recv_cq));
    EXPECT_EQ(IBV_QPS_RTS, other.b.state());
}

INSTANTIATE_TEST_SUITE_P(lost, verbs_tm_lost, testing::Values(0));

/* The device fails as it fetches the data. */
class verbs_tm_fatal : public verbs_tm_rndv {};

TEST_P(verbs_tm_fatal, completes_no_more)
{
    tm.add({.wr_id = 1, .tag = 5, .length = LENGTH});
    EXPECT_EQ(IBV_WC_SUCCESS, request());
    expect_consumed();
    EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, verbs_event(dev.ctx).event_type);
    time_quiet(QUIET_ACK);
    EXPECT_TRUE(verbs_is_empty(ibv_cq_ex_to_cq(tm.cq)));
    EXPECT_TRUE(verbs_is_empty(rndv.a.recv_cq));
}

INSTANTIATE_TEST_SUITE_P(fatal, verbs_tm_fatal, testing::Values(0));

/* --- DC ------------------------------------------------------------------- */

class verbs_tm_dc : public verbs_test {};

/* The kernel's list is not for DC; one by DEVX may be. */
TEST_P(verbs_tm_dc, is_refused)
{
    tm_srq tm(dev);
    struct ibv_cq *cq = ibv_create_cq(dev.ctx, 63, NULL, NULL, 0);

    EXPECT_THROW(hca_create_dct(dev, cq, tm.srq, TM_DC_KEY, ACCESS_QP_ALL),
                 std::runtime_error);
    EXPECT_EQ(0, ibv_destroy_cq(cq));
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_dc, testing::Values(0));

/* --- data in the completion ----------------------------------------------- */

/* Short data is in the completion, and libmlx5 copies it to the buffer; for a
 * tagged buffer only with larger entries. */
class verbs_tm_cqe : public verbs_test {};

TEST_P(verbs_tm_cqe, may_hold_the_data)
{
    tm_options options;

    options.cqe_size = GetParam();
    tm_srq tm(dev, options);
    verbs_pair pair(dev, {}, tm_ep(tm));
    for (uint32_t length : {1u, 8u, 16u, 17u, 32u, 48u, 64u, 65u}) {
        tm_msg msg(IBV_TMH_EAGER, length, length);

        memcpy(src.addr, msg.bytes.data(), msg.bytes.size());
        tm.add({.wr_id = 1, .tag = length, .slot = 1});
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(pair.a, verbs_test::send(0, msg.bytes.size())));
        EXPECT_EQ(length, tm.expect_match(1, length));
        EXPECT_TRUE(tm.holds(1, msg.data(), length)) << length;
    }
    for (uint32_t length : {0u, 1u, 16u, 48u}) {
        tm_msg msg(IBV_TMH_EAGER, length, length);

        memcpy(src.addr, msg.bytes.data(), msg.bytes.size());
        tm.recv(2);
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(pair.a, verbs_test::send(0, msg.bytes.size())));
        EXPECT_EQ(length + 16, tm.expect_recv(2).byte_len);
        EXPECT_TRUE(tm.holds(2, msg.bytes.data(), length + 16)) << length;
    }
}

/* A rendezvous request that is left to the program may be in the completion,
 * too. */
TEST_P(verbs_tm_cqe, may_hold_a_request)
{
    tm_options options;

    options.cqe_size = GetParam();
    tm_srq tm(dev, options);
    verbs_pair pair(dev, {}, tm_ep(tm));
    tm_rndv msg(IBV_TMH_RNDV, 5, src.addr, src.mr->rkey, 100);

    memset(src.addr, 0x77, 64);
    memcpy(src.addr, &msg.headers, sizeof(msg.headers));
    tm.add({.wr_id = 1, .tag = 5, .length = 64});
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, verbs_test::send(0, 64)));
    tm_wc wc = tm.wait();
    EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
    EXPECT_EQ(1u, wc.wr_id);
    EXPECT_EQ(64u, wc.byte_len);
    EXPECT_TRUE(tm.holds(0, src.addr, 64));
    EXPECT_TRUE(tm.is_empty());
}

INSTANTIATE_TEST_SUITE_P(scatter, verbs_tm_cqe, testing::Values(64, 128));

/* --- another process ------------------------------------------------------ */

constexpr unsigned NUM_PEER_MSGS = 14; /* and a rendezvous */

void peer_main(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);

    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    for (unsigned i = 0; i < NUM_PEER_MSGS; i++) {
        tm_msg msg(IBV_TMH_EAGER, i, i * 64);

        memcpy(mem.addr, msg.bytes.data(), msg.bytes.size());
        EXPECT_EQ(
            0, verbs_op(IBV_WR_SEND).local(mem, msg.bytes.size()).post(ep.qp));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    }

    tm_rndv rndv(IBV_TMH_RNDV, 99, mem.addr, mem.mr->rkey, 8192);
    memset(mem.addr, 0x44, mem.size);
    memcpy(mem.addr + 8192, &rndv.headers, sizeof(rndv.headers));
    EXPECT_EQ(0, verbs_recv(ep.qp, mem, 64));
    EXPECT_EQ(0, verbs_op(IBV_WR_SEND)
                     .local((uintptr_t)mem.addr + 8192, sizeof(rndv.headers),
                            mem.mr->lkey)
                     .post(ep.qp));
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.recv_cq).status);
    EXPECT_EQ(IBV_TMH_FIN, mem.addr[0]);
    peer_meet(fd);
}

class verbs_tm_process : public testing::TestWithParam<int> {};

TEST_P(verbs_tm_process, sends_to_tagged_buffers)
{
    peer_process peer(peer_main);
    hca_device dev;
    tm_srq tm(dev);
    verbs_ep ep(dev, tm_rndv_ep(tm));

    for (unsigned i = 0; i < NUM_PEER_MSGS; i++) {
        tm.add({.wr_id = i, .tag = i, .slot = i});
    }
    tm.add({.wr_id = 99, .tag = 99, .length = 8192});
    peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, tm.mem));
    peer_meet(peer.fd);
    for (unsigned i = 0; i < NUM_PEER_MSGS; i++) {
        EXPECT_EQ(i * 64, tm.expect_match(i, i));
    }
    EXPECT_EQ(TM_MATCH, tm.wait().flags);
    EXPECT_EQ(8192u, tm.wait().byte_len);
    /* the rendezvous has overwritten slots 0 to 7 */
    for (unsigned i = 8; i < NUM_PEER_MSGS; i++) {
        EXPECT_TRUE(
            tm.holds(i, tm_msg(IBV_TMH_EAGER, i, i * 64).data(), i * 64));
    }
    EXPECT_TRUE(tm.holds(0, std::vector<uint8_t>(8192, 0x44).data(), 8192));
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_process, testing::Values(0));

/* --- a sender that is killed ---------------------------------------------- */

/* Length of a message: copying it takes much longer than to see that it has
 * begun. */
constexpr uint32_t LONG = 64u << 20;

/* Pages of its own, not yet accessed */
class long_mem {
public:
    explicit long_mem(struct ibv_pd *pd)
    {
        void *addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        HCA_CHECK_CALL(addr != MAP_FAILED);
        HCA_CHECK_CALL((mr = ibv_reg_mr(pd, addr, size, ACCESS_ALL)) != NULL);
    }

    ~long_mem()
    {
        void *addr = mr->addr;

        EXPECT_EQ(0, ibv_dereg_mr(mr));
        munmap(addr, size);
    }

    long_mem(const long_mem &) = delete;

    static constexpr size_t size = LONG + sizeof(struct ibv_tmh);
    struct ibv_mr *mr;
};

void long_sender(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    long_mem msg(dev.pd);
    verbs_ep ep(dev);
    tm_msg head(IBV_TMH_EAGER, 5, 0, 6);

    memcpy(msg.mr->addr, head.bytes.data(), head.bytes.size());
    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    EXPECT_EQ(0, verbs_op(IBV_WR_SEND)
                     .local((uintptr_t)msg.mr->addr, msg.size, msg.mr->lkey)
                     .post(ep.qp));
    peer_wait_for_the_end(fd);
}

void rndv_sender(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    tm_rndv rndv(IBV_TMH_RNDV, 5, mem.addr, mem.mr->rkey, 4096);

    memcpy(mem.addr, &rndv.headers, sizeof(rndv.headers));
    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    EXPECT_EQ(
        0, verbs_op(IBV_WR_SEND).local(mem, sizeof(rndv.headers)).post(ep.qp));
    peer_wait_for_the_end(fd);
}

class verbs_tm_killed : public testing::TestWithParam<int> {
protected:
    /* Waits for the first completion, and kills the sender. @return the time of
     * the kill */
    uint64_t kill_after_match(peer_process &peer)
    {
        EXPECT_EQ(TM_MATCH, tm.wait().flags);
        uint64_t now = time_now_us();
        kill(peer.pid, SIGKILL);
        EXPECT_TRUE(WIFSIGNALED(peer.wait()));
        return now;
    }

    /* @return false if the whole message had arrived */
    bool is_cut(verbs_ep &ep)
    {
        peer_process peer(long_sender);

        tm.add({.wr_id = 1, .tag = 5, .length = LONG, .other = big.mr});
        peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, tm.mem));
        kill_after_match(peer);
        return tm.is_empty();
    }

    void expect_canceled()
    {
        tm_wc wc = tm.wait();

        EXPECT_EQ(IBV_WC_TM_RNDV_INCOMPLETE, wc.status);
        EXPECT_EQ(1u, wc.wr_id);
        EXPECT_EQ(5u, wc.tag);
        EXPECT_TRUE(tm.is_empty());
    }

    /* Checks that all entries are free. */
    void expect_free()
    {
        for (unsigned i = 0; i < 15; i++) {
            tm.add({.wr_id = i, .tag = i});
        }
    }

    hca_device dev;
    tm_srq tm{dev};
    long_mem big{dev.pd};
};

/* No further packet arrives, which the queue pair cannot know: the buffer is
 * outstanding until the program puts the queue pair in error. */
TEST_P(verbs_tm_killed, in_the_middle_of_a_message)
{
    for (unsigned i = 0; i < 20; i++) {
        verbs_ep ep(dev, tm_ep(tm));

        if (!is_cut(ep)) {
            continue;
        }
        EXPECT_EQ(IBV_QPS_RTS, ep.state());
        EXPECT_TRUE(tm.is_empty());
        hca_modify(ep.qp, {}, IBV_QPS_ERR, 0);
        expect_canceled();
        EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED,
                  verbs_event(dev.ctx).event_type);
        expect_free();
        return;
    }
    FAIL() << "no sender was killed in time";
}

/* A reset of the queue pair leaves the buffer outstanding forever; a later
 * error does not return it. */
TEST_P(verbs_tm_killed, and_the_queue_pair_is_reset)
{
    for (unsigned i = 0; i < 20; i++) {
        verbs_ep ep(dev, tm_ep(tm));

        if (!is_cut(ep)) {
            continue;
        }
        hca_modify(ep.qp, {}, IBV_QPS_RESET, 0);
        ep.connect(ep.attr(ep.qp->qp_num));
        hca_modify(ep.qp, {}, IBV_QPS_ERR, 0);
        EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED,
                  verbs_event(dev.ctx).event_type);
        EXPECT_TRUE(tm.is_empty());
        return;
    }
    FAIL() << "no sender was killed in time";
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_killed, testing::Values(0));

/* A late device starts to fetch when the sender is dead. */
using verbs_tm_killed_rndv = verbs_tm_killed;

/* The read is not answered, and fails after its retries, not before. */
TEST_P(verbs_tm_killed_rndv, before_its_data_is_fetched)
{
    verbs_options patient = tm_rndv_ep(tm);

    patient.timeout = 14; /* 67 ms, and another try */
    for (unsigned i = 0; i < 20; i++) {
        peer_process peer(rndv_sender);
        verbs_ep ep(dev, patient);

        tm.add({.wr_id = 1, .tag = 5, .length = 4096});
        peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, tm.mem));
        uint64_t begin = kill_after_match(peer);
        if (!tm.is_empty()) {
            continue;
        }
        expect_canceled();
        EXPECT_LE(67000u, time_now_us() - begin);
        EXPECT_EQ(IBV_QPS_ERR, ep.state());
        EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED,
                  verbs_event(dev.ctx).event_type);
        return;
    }
    FAIL() << "no sender was killed in time";
}

INSTANTIATE_TEST_SUITE_P(slow, verbs_tm_killed_rndv, testing::Values(0));

/* --- a receiver that is killed -------------------------------------------- */

constexpr unsigned NUM_TO_DIE = 4;

/* Appends NUM_TO_DIE entries, and reports that all of them have matched. */
void rndv_receiver(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    tm_srq tm(dev);
    verbs_options patient = tm_rndv_ep(tm);

    patient.rnr_retry = 7;
    verbs_ep ep(dev, patient);
    for (unsigned i = 0; i < NUM_TO_DIE; i++) {
        tm.add({.wr_id = i, .tag = 5, .length = 5000});
    }
    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    for (unsigned i = 0; i < NUM_TO_DIE;) {
        i += (tm.wait().flags & TM_MATCH) ? 1 : 0;
    }
    peer_meet(fd);
    peer_wait_for_the_end(fd);
}

class verbs_tm_dead_receiver : public verbs_tm_rndv {
protected:
    /* Sends @count requests, as many at a time as there is room for. */
    void send_requests(verbs_ep &ep, unsigned count)
    {
        constexpr unsigned ROOM = 32;
        tm_rndv msg             = headers(IBV_TMH_RNDV);

        memcpy(src.addr, &msg.headers, sizeof(msg.headers));
        for (unsigned i = 0; i < count + ROOM; i++) {
            if (i >= ROOM) {
                EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(ep.send_cq).status);
            }
            if (i < count) {
                EXPECT_EQ(0, verbs_test::send(0, 64).post(ep.qp));
            }
        }
    }

    /* Checks that the device has room for the maximum number of rendezvous. */
    void expect_room()
    {
        tm_options options;

        options.tags    = MAX_RNDV;
        options.max_ops = MAX_RNDV;
        options.cqe     = 4 * MAX_RNDV;
        tm_srq more(dev, options);
        verbs_options patient = tm_rndv_ep(more);
        patient.rnr_retry     = 7;
        verbs_pair other(dev, {}, patient);
        for (unsigned i = 0; i < MAX_RNDV; i++) {
            tm_srq::op what = {.wr_id = i, .tag = 5, .length = LENGTH};

            EXPECT_EQ(0, more.post(IBV_WR_TAG_ADD, what));
        }
        for (unsigned i = 0; i < MAX_RNDV; i++) {
            EXPECT_EQ(IBV_WC_TM_ADD, more.wait().opcode);
        }
        send_requests(other.a, MAX_RNDV);
        for (unsigned i = 0; i < 2 * MAX_RNDV; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, more.wait().status);
        }
    }
};

/* The receiver is killed before its device has fetched anything (mode slow), or
 * when its FINs wait for receives: no FIN arrives, and nothing remains. */
TEST_P(verbs_tm_dead_receiver, leaves_nothing_behind)
{
    hca_log_reader log;
    peer_process peer(rndv_receiver);
    verbs_ep ep(dev);

    peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, src));
    send_requests(ep, NUM_TO_DIE);
    peer_meet(peer.fd);
    kill(peer.pid, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(peer.wait()));
    time_quiet(QUIET_RNR);
    EXPECT_EQ(0, verbs_recv(ep.qp, dst, 64));
    expect_room();
    EXPECT_TRUE(verbs_is_empty(ep.recv_cq));
    EXPECT_EQ(IBV_QPS_RTS, ep.state());
    EXPECT_EQ("", log.take());
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_dead_receiver, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(slow, verbs_tm_dead_receiver, testing::Values(0));

/* --- a sender that is stopped --------------------------------------------- */

/* The process that sends a rendezvous copies the data itself, for the
 * receiver's queue pair. */
void long_rndv_sender(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    long_mem data(dev.pd);
    verbs_ep ep(dev);
    tm_rndv rndv(IBV_TMH_RNDV, 5, data.mr->addr, data.mr->rkey, LONG);

    memset(data.mr->addr, 0x11, LONG);
    memcpy(mem.addr, &rndv.headers, sizeof(rndv.headers));
    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    EXPECT_EQ(
        0, verbs_op(IBV_WR_SEND).local(mem, sizeof(rndv.headers)).post(ep.qp));
    peer_wait_for_the_end(fd);
}

class verbs_tm_stopped : public testing::TestWithParam<int> {
protected:
    /* A message without a matching tag has reached a receive, and its sender
     * holds the list: it is stopped when the kernel has moved the bytes. */
    void stop_sender()
    {
        stop_in_time(
            long_sender,
            [&] {
                struct ibv_sge sge = {(uintptr_t)big->mr->addr, long_mem::size,
                                      big->mr->lkey};
                struct ibv_recv_wr wr = {}, *bad;

                wr.sg_list = &sge;
                wr.num_sge = 1;
                EXPECT_EQ(0, ibv_post_srq_recv(tm->srq, &wr, &bad));
                tm->sync(turn++);
            },
            [] {});
    }

    /* A rendezvous has matched: its sender is stopped while it copies the
     * data. */
    void stop_rndv_sender()
    {
        stop_in_time(
            long_rndv_sender,
            [&] {
                tm->add(
                    {.wr_id = 1, .tag = 5, .length = LONG, .other = big->mr});
            },
            [&] { EXPECT_EQ(TM_MATCH, tm->wait().flags); });
    }

    /* Repeats with another sender if it was stopped too late. */
    template <typename Before, typename After>
    void stop_in_time(void (*main)(int fd), Before before, After after)
    {
        for (unsigned i = 0; i < 20; i++) {
            peer.reset(new peer_process(main));
            ep.reset(new verbs_ep(dev, tm_rndv_ep(*tm)));
            memset(big->mr->addr, 0, LONG);
            before();
            peer_connect(peer->fd, *ep, peer_exchange(peer->fd, *ep, tm->mem));
            stop_within();
            after();
            if (tm->is_empty()) {
                return;
            }
        }
        FAIL() << "no sender was stopped in time";
    }

    void stop_within()
    {
        volatile uint8_t *first = (uint8_t *)big->mr->addr;

        EXPECT_TRUE(hca_until([&] { return *first != 0; }));
        EXPECT_EQ(0, kill(peer->pid, SIGSTOP));
        EXPECT_EQ(peer->pid, waitpid(peer->pid, NULL, WUNTRACED));
    }

    void go_on() { EXPECT_EQ(0, kill(peer->pid, SIGCONT)); }

    hca_device dev;
    int turn = 0;
    std::unique_ptr<long_mem> big{new long_mem(dev.pd)};
    std::unique_ptr<tm_srq> tm{new tm_srq(dev)};
    std::unique_ptr<verbs_ep> ep;
    std::unique_ptr<peer_process> peer;
};

/* Messages of others and calls of the owner wait for the stopped sender. */
TEST_P(verbs_tm_stopped, keeps_others)
{
    struct ibv_srq_attr attr = {};
    verbs_pair other(dev, {}, tm_ep(*tm));
    tm_msg msg(IBV_TMH_EAGER, 5, 64);

    ASSERT_NO_FATAL_FAILURE(stop_sender());
    memcpy(tm->at(0), msg.bytes.data(), msg.bytes.size());
    tm->recv(1);
    {
        peer_waiting_call sender([&] {
            EXPECT_EQ(0, verbs_op(IBV_WR_SEND)
                             .local(tm->mem, msg.bytes.size())
                             .post(other.a.qp));
        });
        peer_waiting_call owner([&] {
            EXPECT_EQ(0, ibv_modify_srq(tm->srq, &attr, IBV_SRQ_LIMIT));
        });
        go_on();
    }
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(other.a.send_cq).status);
    EXPECT_EQ(IBV_WC_TM_RECV, tm->wait().opcode);
    EXPECT_EQ(IBV_WC_TM_RECV, tm->wait().opcode);
    ep.reset();
}

/* A queue that the stopped sender has locked is not destroyed. */
TEST_P(verbs_tm_stopped, keeps_its_queues)
{
    hca_log_reader log;
    std::string text;

    ASSERT_NO_FATAL_FAILURE(stop_sender());
    EXPECT_EQ(ETIMEDOUT, ibv_destroy_qp(ep->qp));
    text = log.take();
    EXPECT_NE(std::string::npos, text.find("a stopped process has it")) << text;
    go_on();
    EXPECT_EQ(IBV_WC_TM_RECV, tm->wait().opcode); /* may take more than 2 s */
    ep.reset();
}

/* A stopped sender that is killed uses no key any longer, though this process
 * had no connection to it before. */
TEST_P(verbs_tm_stopped, is_killed)
{
    hca_log_reader log;

    ASSERT_NO_FATAL_FAILURE(stop_sender());
    peer.reset();
    big.reset();
    EXPECT_EQ(std::string::npos, log.take().find("that does not go on"));
}

/* The stopped sender of a rendezvous also holds the queue pair that it copies
 * for. */
TEST_P(verbs_tm_stopped, keeps_a_queue_pair_that_awaits_a_rendezvous)
{
    ASSERT_NO_FATAL_FAILURE(stop_rndv_sender());
    {
        /* in error at its end, if it had no receive for the FIN */
        peer_waiting_call query([&] { ep->state(); });
        go_on();
    }
    EXPECT_EQ(LONG, tm->wait().byte_len);
    ep.reset();
}

INSTANTIATE_TEST_SUITE_P(plain, verbs_tm_stopped, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"plain", {}},
            {"info", {{"SOFTHCA_LOG", "info"}}},
            {"late", {{"SOFTHCA_DELAY", "20"}}},
            {"slow", {{"SOFTHCA_DELAY", "100000"}}},
            {"lost", {{"SOFTHCA_FAULT", "drop_ack:op=send:nth=2"}}},
            {"fatal", {{"SOFTHCA_FAULT", "device_fatal:op=read"}}},
            {"scatter", {{"MLX5_SCATTER_TO_CQE", "1"}}},
            {"large_cqe",
             {{"MLX5_SCATTER_TO_CQE", "1"}, {"MLX5_CQE_SIZE", "128"}}},
        });
}
