/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Streams of a DC initiator: each is in order, none waits for another's peer,
 * completions are in the order of the queue. An error fails one stream only, up
 * to the requested number of them, and can be reset. See mlx5dv_create_qp(3),
 * mlx5dv_wr_post(3), mlx5dv_dci_stream_id_reset(3).
 */
#include "create_qp_hook.h"
#include "streams_bench.h"
#include "verbs_peer.h"

#include <malloc.h>

namespace {

class verbs_streams : public verbs_test {
protected:
    void send(streams_dci &dci, uint16_t stream, const streams_target &to,
              uint32_t imm = 0)
    {
        dci.send(stream, to, imm, src);
    }

    void write(streams_dci &dci, uint16_t stream, const streams_target &to)
    {
        dci.write(stream, to.qp->qp_num, src, dst.mr->rkey, dst.addr);
    }

    /* Sends from memory to which the QP has no access. */
    void send_bad(streams_dci &dci, uint16_t stream, const streams_target &to)
    {
        dci.send(stream, to, 0, m_foreign);
    }

    struct mlx5dv_dci_streams_caps caps()
    {
        struct mlx5dv_context attrs = {};

        attrs.comp_mask = MLX5DV_CONTEXT_MASK_DCI_STREAMS;
        HCA_CHECK_CALL(mlx5dv_query_device(dev.ctx, &attrs) == 0);
        EXPECT_TRUE(attrs.comp_mask & MLX5DV_CONTEXT_MASK_DCI_STREAMS);
        return attrs.dci_streams_caps;
    }

    bool can_create(uint8_t log_streams, uint8_t log_errored)
    {
        struct ibv_cq *cq = ibv_create_cq(dev.ctx, 15, NULL, NULL, 0);
        struct ibv_qp *qp = streams_dci::create(dev, cq,
                                                {log_streams, log_errored});

        EXPECT_TRUE((qp != NULL) || (errno == EINVAL));
        if (qp != NULL) {
            ibv_destroy_qp(qp);
        }
        ibv_destroy_cq(cq);
        return qp != NULL;
    }

private:
    struct own_pd {
        explicit own_pd(struct ibv_context *ctx) : pd(ibv_alloc_pd(ctx)) {}
        ~own_pd() { ibv_dealloc_pd(pd); }
        struct ibv_pd *pd;
    };

    own_pd m_pd{dev.ctx};

protected:
    strict_mem m_foreign{m_pd.pd, ACCESS_ALL, 0x44};
};

/* --- attributes ----------------------------------------------------------- */

TEST_P(verbs_streams, limits_are_reported_and_kept)
{
    EXPECT_EQ(8, caps().max_log_num_concurent);
    EXPECT_EQ(4, caps().max_log_num_errored);
    EXPECT_TRUE(can_create(8, 4));
    EXPECT_TRUE(can_create(0, 0));
    EXPECT_FALSE(can_create(9, 0));
    EXPECT_FALSE(can_create(0, 5));
}

/* --- order ---------------------------------------------------------------- */

TEST_P(verbs_streams, each_is_in_order_and_any_number_is_one)
{
    streams_target a(dev, dst), b(dev, dst);
    streams_dci dci(dev, {});

    a.recv(4);
    b.recv(2);
    send(dci, 0, a, 10);
    send(dci, 0xffff, b, 20);
    send(dci, 0, a, 11);
    send(dci, 77, a, 12);
    send(dci, 0xffff, b, 21);
    send(dci, 0, a, 13);
    a.expect({10, 11, 12, 13});
    b.expect({20, 21});
    for (uint64_t id = 0; id < 6; id++) {
        dci.expect(id);
    }
}

TEST_P(verbs_streams, one_that_waits_holds_up_no_other)
{
    streams_target slow(dev, dst), other(dev, dst);
    streams_dci dci(dev, {});

    other.recv(3);
    send(dci, 1, slow, 10);
    send(dci, 2, other, 20);
    send(dci, 1, slow, 11);
    send(dci, 3, other, 21);
    send(dci, 2, other, 22);
    other.expect({20, 21, 22});
    EXPECT_TRUE(verbs_is_empty(dci.cq)) << "completions keep the ring's order";
    slow.recv(1);
    slow.expect({10});
    dci.expect(0);
    dci.expect(1);
    EXPECT_TRUE(verbs_is_empty(dci.cq));
    slow.recv(1);
    slow.expect({11});
    dci.expect(2);
    dci.expect(3);
    dci.expect(4);
}

/* When 2^1 streams have requests that wait, a third one waits for them, though
 * its target is ready. */
TEST_P(verbs_streams, no_more_wait_than_were_asked_for)
{
    streams_target slow(dev, dst), other(dev, dst);
    streams_dci dci(dev, {.log_streams = 1});

    other.recv(2);
    send(dci, 1, slow, 10);
    send(dci, 2, other, 20);
    send(dci, 3, slow, 11);
    send(dci, 4, other, 21);
    other.expect({20});
    EXPECT_TRUE(verbs_is_empty(other.cq));
    slow.recv(1);
    other.expect({21});
    slow.recv(1);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(slow.cq).status);
    EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(slow.cq).status);
    for (uint64_t id = 0; id < 4; id++) {
        dci.expect(id);
    }
}

TEST_P(verbs_streams, of_one_at_a_time_is_as_none)
{
    streams_target slow(dev, dst), other(dev, dst);
    streams_dci dci(dev, {.log_streams = 0});

    other.recv(1);
    send(dci, 1, slow, 10);
    send(dci, 2, other, 20);
    EXPECT_TRUE(verbs_is_empty(other.cq));
    slow.recv(1);
    other.expect({20});
    slow.expect({10});
    dci.expect(0);
    dci.expect(1);
}

/* Many times around the ring, with few completions, and sometimes with a stream
 * that waits across the end of the ring */
TEST_P(verbs_streams, ring_goes_around)
{
    streams_target a(dev, dst), slow(dev, dst);
    streams_dci dci(dev, {});
    const unsigned rounds = 200, each = 4;

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < each; i++) {
            bool is_last = (i == each - 1);

            dci.send(round + i, is_last ? slow : a, round * each + i, src,
                     is_last ? IBV_SEND_SIGNALED : 0);
        }
        a.recv(each - 1);
        slow.recv(1);
        dci.expect(dci.next_id - 1);
        slow.expect({round * each + each - 1});
        for (unsigned i = 0; i < each - 1; i++) {
            EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(a.cq).status);
        }
    }
    EXPECT_TRUE(verbs_is_empty(dci.cq));
}

/* --- errors --------------------------------------------------------------- */

TEST_P(verbs_streams, error_is_of_one_until_it_is_reset)
{
    streams_target a(dev, dst);
    streams_dci dci(dev, {});
    uint8_t out[16] = {};

    a.recv(4);
    send(dci, 1, a, 10);
    send_bad(dci, 2, a);
    send(dci, 2, a, 20);
    send(dci, 1, a, 11);
    dci.expect(0);
    dci.expect(1, IBV_WC_LOC_PROT_ERR);
    dci.expect(2, IBV_WC_WR_FLUSH_ERR);
    dci.expect(3);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
    a.expect({10, 11});

    EXPECT_EQ(EREMOTEIO, dci.reset_stream(1, out)) << "it is in order";
    EXPECT_EQ(3, out[0]) << "bad parameter";
    EXPECT_EQ(EREMOTEIO, dci.reset_stream(3));
    EXPECT_EQ(0, dci.reset_stream(2));
    EXPECT_EQ(EREMOTEIO, dci.reset_stream(2)) << "it is again";
    send(dci, 2, a, 21);
    dci.expect(4);
    a.expect({21});
}

TEST_P(verbs_streams, mailbox_of_a_reset_may_be_longer_than_its_layout)
{
    streams_target a(dev, dst);
    streams_dci dci(dev, {});
    std::vector<uint8_t> in = dci.reset_in(2);
    uint8_t out[16]         = {};

    send_bad(dci, 2, a);
    dci.expect(0, IBV_WC_LOC_PROT_ERR);
    in.resize(4096);
    in.back() = 1;
    EXPECT_EQ(EREMOTEIO, dci.reset_stream(in, out));
    EXPECT_EQ(0x50, out[0]) << "bad length";
    in.back() = 0;
    EXPECT_EQ(0, dci.reset_stream(in, out));
}

/* A request that the peer refuses, and a peer that is gone: other streams
 * continue meanwhile. */
TEST_P(verbs_streams, error_may_be_the_peers)
{
    streams_target a(dev, dst), gone(dev, dst);
    uint32_t dctn = gone.qp->qp_num;
    streams_dci dci(dev, {.log_errored = 2});

    a.recv(1);
    gone.destroy();
    dci.write(1, dctn, src, dst.mr->rkey, dst.addr);
    dci.write(1, dctn, src, dst.mr->rkey, dst.addr);
    dci.write(2, a.qp->qp_num, src, dst.mr->rkey ^ 1, dst.addr);
    send(dci, 3, a, 30);
    dci.write(1, dctn, src, dst.mr->rkey, dst.addr);
    a.expect({30});
    dci.expect(0, IBV_WC_RETRY_EXC_ERR);
    dci.expect(1, IBV_WC_WR_FLUSH_ERR);
    dci.expect(2, IBV_WC_REM_ACCESS_ERR);
    dci.expect(3);
    dci.expect(4, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
    EXPECT_EQ(0, dci.reset_stream(1));
    EXPECT_EQ(0, dci.reset_stream(2));
    write(dci, 2, a);
    write(dci, 1, a);
    dci.expect(5);
    dci.expect(6);
}

/* More than 2^1 streams: the initiator is in error, and works again after
 * RESET. */
TEST_P(verbs_streams, too_many_errors_are_that_of_all)
{
    streams_target slow(dev, dst);
    streams_dci dci(dev, {});

    send_bad(dci, 1, slow);
    send_bad(dci, 1, slow);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
    send(dci, 3, slow);
    write(dci, 4, slow);
    send_bad(dci, 2, slow);
    write(dci, 4, slow);
    dci.expect(0, IBV_WC_LOC_PROT_ERR);
    dci.expect(1, IBV_WC_WR_FLUSH_ERR);
    dci.expect(2, IBV_WC_WR_FLUSH_ERR);
    dci.expect(3);
    dci.expect(4, IBV_WC_LOC_PROT_ERR);
    dci.expect(5, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(IBV_QPS_ERR, dci.state());
    EXPECT_EQ(EREMOTEIO, dci.reset_stream(1)) << "too late";

    hca_modify(dci.qp, {}, IBV_QPS_RESET, 0);
    dci.connect();
    write(dci, 1, slow);
    write(dci, 2, slow);
    dci.expect(6);
    dci.expect(7);
}

/* With 2^0 the first error is one too many. */
TEST_P(verbs_streams, first_error_is_that_of_all)
{
    streams_target a(dev, dst);
    streams_dci dci(dev, {.log_errored = 0});

    send_bad(dci, 1, a);
    write(dci, 2, a);
    dci.expect(0, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(IBV_QPS_ERR, dci.state());
    dci.expect(1, IBV_WC_WR_FLUSH_ERR);
}

/* A malformed request belongs to no stream. */
TEST_P(verbs_streams, bad_format_is_an_error_of_all)
{
    streams_target slow(dev, dst);
    streams_dci dci(dev, {.log_errored = 4});
    raw_qp raw(dci.qp);
    raw_wqe wqe(0x7f);

    send(dci, 1, slow);
    raw.pi = 2; /* 16 of ctrl, 48 of the address, 16 of data */
    wqe.finish(raw.pi, raw.qpn);
    raw.write(wqe);
    raw.ring(wqe.num_bb(), wqe.bytes.data());
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, verbs_wait(dci.cq).status);
    EXPECT_EQ(IBV_WC_LOC_QP_OP_ERR, verbs_wait(dci.cq).status);
    EXPECT_EQ(IBV_QPS_ERR, dci.state());
}

/* The initiator is put in error while some requests wait, and others behind
 * them are done. */
TEST_P(verbs_streams, what_waits_is_flushed_in_order)
{
    streams_target slow(dev, dst), other(dev, dst);
    streams_dci dci(dev, {});

    other.recv(1);
    send(dci, 1, slow, 10);
    send(dci, 2, other, 20);
    send(dci, 1, slow, 11);
    send(dci, 3, slow, 12);
    write(dci, 2, other);
    other.expect({20});
    hca_modify(dci.qp, {}, IBV_QPS_ERR, 0);
    dci.expect(0, IBV_WC_WR_FLUSH_ERR);
    dci.expect(1);
    dci.expect(2, IBV_WC_WR_FLUSH_ERR);
    dci.expect(3, IBV_WC_WR_FLUSH_ERR);
    dci.expect(4);
    EXPECT_TRUE(verbs_is_empty(dci.cq));
}

/* Requests that wait are neither lost nor executed again. */
TEST_P(verbs_streams, doorbell_record_that_goes_back_rings_nothing)
{
    streams_target slow(dev, dst);
    streams_dci dci(dev, {});
    raw_qp raw(dci.qp);

    send(dci, 1, slow, 10);
    send(dci, 2, slow, 11);
    raw.pi = 4; /* 16 of ctrl, 48 of the address, 16 of data; twice */
    for (int num_bb : {-1, 1}) {
        raw.announce(num_bb);
        raw.ring_nameless();
    }
    slow.recv(2);
    dci.expect(0);
    dci.expect(1);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
}

/* --- results in completions ----------------------------------------------- */

/* A doorbell may ring in a signal handler that interrupts malloc(). */
TEST_P(verbs_streams, results_wait_for_their_completions_without_the_heap)
{
    const unsigned reads  = 12; /* more than free() keeps of one size */
    struct mlx5dv_cq cq   = {};
    struct mlx5dv_obj obj = {};
    streams_target slow(dev, dst), other(dev, dst);
    create_qp_hook = [](struct mlx5_ib_create_qp *cmd) {
        cmd->flags |= MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE;
    };
    streams_dci dci(dev, {.send_wr = 32});
    create_qp_hook = nullptr;
    size_t heap;

    for (unsigned i = 0; i < 64; i++) {
        dst.addr[i] = i;
    }
    write(dci, 2, other);
    dci.expect(0);
    obj.cq.in  = dci.cq;
    obj.cq.out = &cq;
    ASSERT_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    auto cqe = [&](unsigned i) {
        return (uint8_t *)cq.buf + (i + 1) * cq.cqe_size - 64;
    };
    auto wait = [&](unsigned i) {
        return hca_until([&] {
            return (__atomic_load_n(cqe(i) + 63, __ATOMIC_ACQUIRE) >> 4) !=
                   MLX5_CQE_INVALID;
        });
    };

    send(dci, 1, slow);
    heap = mallinfo2().uordblks;
    for (unsigned i = 0; i < reads; i++) {
        dci.read(2, other.qp->qp_num, src, dst.mr->rkey, dst.addr + i,
                 IBV_SEND_SIGNALED, 8);
    }
    EXPECT_EQ(heap, mallinfo2().uordblks);
    slow.recv(1);
    ASSERT_TRUE(wait(1));
    for (unsigned i = 0; i < reads; i++) {
        ASSERT_TRUE(wait(2 + i));
        EXPECT_EQ(MLX5_INLINE_SCATTER_32, cqe(2 + i)[63] & 0xc);
        EXPECT_EQ(0, memcmp(cqe(2 + i), dst.addr + i, 8)) << i;
    }
    EXPECT_EQ(0x11, src.addr[0]) << "nothing comes to memory";
}

/* --- without streams ------------------------------------------------------ */

/* An initiator without streams fails with its first error. */
TEST_P(verbs_streams, not_for_all)
{
    streams_target a(dev, dst);
    streams_dci dci(dev, {.has_streams = false});

    write(dci, 0, a);
    dci.expect(0);
    EXPECT_EQ(EREMOTEIO, dci.reset_stream(0));
    send_bad(dci, 0, a);
    dci.expect(1, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(IBV_QPS_ERR, dci.state());
}

/* Firmware that stops at the first error, as some does */
class verbs_streams_few : public verbs_streams {};

TEST_P(verbs_streams_few, limits_are_the_variables)
{
    EXPECT_EQ(3, caps().max_log_num_concurent);
    EXPECT_EQ(0, caps().max_log_num_errored);
    EXPECT_TRUE(can_create(3, 0));
    EXPECT_FALSE(can_create(4, 0));
    EXPECT_FALSE(can_create(3, 1));
}

class verbs_streams_none : public verbs_streams {};

TEST_P(verbs_streams_none, are_refused)
{
    EXPECT_EQ(0, caps().max_log_num_concurent);
    EXPECT_FALSE(can_create(0, 0));
}

/* --- a late device -------------------------------------------------------- */

class verbs_streams_late : public verbs_streams {
protected:
    static constexpr uint8_t FENCE = 4 << 5;

    static void nop(raw_qp &raw, uint8_t stream, uint8_t fence)
    {
        raw_wqe nop(MLX5_OPCODE_NOP);

        nop.finish(raw.pi, raw.qpn);
        nop.bytes[9]  = stream;
        nop.bytes[11] = MLX5_WQE_CTRL_CQ_UPDATE | fence;
        raw.write(nop);
        raw.ring(nop.num_bb(), nop.bytes.data());
    }
};

/* A NOP waits for nothing, except with a fence; then also for other streams, as
 * completions are in the order of the queue. Attempts in which the device was
 * faster than the test prove nothing. */
TEST_P(verbs_streams_late, nop_completes_before_reads_that_it_does_not_wait_for)
{
    streams_target a(dev, dst);
    auto read_then_nop = [&](uint8_t stream, uint8_t fence) {
        streams_dci dci(dev, {});
        raw_qp raw(dci.qp);
        uint8_t found;

        memset(src.addr, 0x77, 64);
        memset(dst.addr, 0x22, 64);
        dci.leave(
            [&] { dci.read(1, a.qp->qp_num, src, dst.mr->rkey, dst.addr, 0); });
        raw.pi = 2; /* 16 of ctrl, 48 of the address, 16 and 16 */
        nop(raw, stream, fence);
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(dci.cq).status);
        found = src.addr[0];
        nop(raw, stream, FENCE);
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(dci.cq).status);
        EXPECT_EQ(0x22, src.addr[0]);
        EXPECT_TRUE(verbs_is_empty(dci.cq)) << "each completes once";
        return found;
    };

    for (uint8_t stream : {1, 2}) {
        EXPECT_TRUE(hca_until([&] { return read_then_nop(stream, 0) == 0x77; }))
            << (int)stream;
        EXPECT_EQ(0x22, read_then_nop(stream, FENCE)) << (int)stream;
    }
}

/* Two results of one stream without memory are one error of it. */
TEST_P(verbs_streams_late, error_is_of_what_is_behind_it)
{
    strict_mem gone(dev.pd, ACCESS_ALL, 0);
    streams_target a(dev, dst);
    streams_dci dci(dev, {});

    dci.together([&] {
        for (unsigned i = 0; i < 2; i++) {
            dci.read(1, a.qp->qp_num, gone, dst.mr->rkey, dst.addr);
        }
        write(dci, 1, a);
        write(dci, 2, a);
    });
    gone.unmap();
    dci.expect(0, IBV_WC_LOC_PROT_ERR);
    dci.expect(1, IBV_WC_WR_FLUSH_ERR);
    dci.expect(2, IBV_WC_WR_FLUSH_ERR);
    dci.expect(3);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
}

/* A stream with two failed requests counts once. */
TEST_P(verbs_streams_late, stream_is_in_error_once)
{
    strict_mem gone(dev.pd, ACCESS_ALL, 0);
    streams_target a(dev, dst);
    streams_dci dci(dev, {});

    dci.together([&] {
        dci.read(1, a.qp->qp_num, gone, dst.mr->rkey, dst.addr);
        dci.write(1, a.qp->qp_num, src, dst.mr->rkey ^ 0xdead00, dst.addr);
    });
    gone.unmap();
    dci.expect(0, IBV_WC_LOC_PROT_ERR);
    dci.expect(1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(IBV_QPS_RTS, dci.state());
    EXPECT_EQ(0, dci.reset_stream(1));
    write(dci, 1, a);
    dci.expect(2);
}

/* More results without memory than streams may be in error */
TEST_P(verbs_streams_late, errors_of_a_queue_in_error_count_no_more)
{
    const unsigned reads = 16;
    strict_mem gone(dev.pd, ACCESS_ALL, 0);
    streams_target a(dev, dst);
    streams_dci dci(
        dev, {.log_streams = 4, .log_errored = 0, .max_rd_atomic = reads});

    dci.together([&] {
        for (unsigned i = 0; i < reads; i++) {
            dci.read(i, a.qp->qp_num, gone, dst.mr->rkey, dst.addr);
        }
    });
    gone.unmap();
    for (unsigned i = 0; i < reads; i++) {
        dci.expect(i, IBV_WC_LOC_PROT_ERR);
    }
    EXPECT_EQ(IBV_QPS_ERR, dci.state());
}

/* --- out of order --------------------------------------------------------- */

class verbs_streams_order : public verbs_streams {
protected:
    static constexpr unsigned PAIRS = 100;

    void write_to(streams_dci &dci, uint16_t stream, const strict_mem &from,
                  unsigned flags = IBV_SEND_SIGNALED)
    {
        dci.write(stream, m_target.qp->qp_num, from, dst.mr->rkey, dst.addr,
                  flags);
    }

    /* Returns a character for each pair of writes on these streams: 'x' if the
     * first one came last. */
    std::string writes(uint16_t first, uint16_t second)
    {
        std::string order;

        memset(src.addr, 1, 64);
        memset(m_other.addr, 2, 64);
        for (unsigned i = 0; i < PAIRS; i++) {
            m_dci.together([&] {
                write_to(m_dci, first, src);
                write_to(m_dci, second, m_other);
            });
            m_dci.expect(m_dci.next_id - 2);
            m_dci.expect(m_dci.next_id - 1);
            order += (dst.addr[0] == 1) ? 'x' : '.';
        }
        return order;
    }

    /* Fewer than half change places: if both streams wait, they continue in
     * order. */
    static void expect_some(const std::string &order)
    {
        size_t count = std::count(order.begin(), order.end(), 'x');

        EXPECT_GT(count, order.size() / 10) << order;
        EXPECT_LT(count, order.size() * 3 / 4) << order;
    }

    strict_mem m_other{dev.pd, ACCESS_ALL, 0}, m_far{dev.pd, ACCESS_ALL, 0};
    streams_target m_target{dev, dst};
    streams_dci m_dci{dev, {}};
};

TEST_P(verbs_streams_order, writes_change_places)
{
    expect_some(writes(1, 1));
    expect_some(writes(1, 2));
}

/* Many requests of one stream with others between them: each is executed
 * once. */
TEST_P(verbs_streams_order, each_is_executed_once)
{
    const unsigned each = 5, rounds = 200;

    memset(m_far.addr, 0, 8);
    for (unsigned round = 0; round < rounds; round++) {
        m_dci.together([&] {
            for (unsigned i = 0; i < each; i++) {
                uint16_t stream = round * i % 3;

                if (i % 2) {
                    m_dci.fetch_add(stream, m_target.qp->qp_num, m_other,
                                    m_far.mr->rkey, m_far.addr);
                } else {
                    write_to(m_dci, stream, src);
                }
            }
        });
        for (unsigned i = each; i > 0; i--) {
            m_dci.expect(m_dci.next_id - i);
        }
    }
    EXPECT_EQ(rounds * (each / 2), *(uint64_t *)m_far.addr);
}

/* A read before a fence has its data before later requests are executed. */
TEST_P(verbs_streams_order, fence_holds_behind_a_read)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(dst.addr, i, 64);
        memset(src.addr, 0xee, 64);
        m_dci.together([&] {
            m_dci.read(1, m_target.qp->qp_num, m_other, dst.mr->rkey, dst.addr);
            write_to(m_dci, 1, src, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
        });
        m_dci.expect(m_dci.next_id - 2);
        m_dci.expect(m_dci.next_id - 1);
        ASSERT_EQ((uint8_t)i, m_other.addr[7]);
    }
}

/* The failed one of a pair is reported in order. Later requests of its stream
 * are flushed, although they were executed. */
TEST_P(verbs_streams_order, error_comes_in_its_turn)
{
    for (unsigned i = 0; i < 20; i++) {
        for (bool is_first : {false, true}) {
            m_dci.together([&] {
                write_to(m_dci, 1, is_first ? m_foreign : src);
                write_to(m_dci, 1, is_first ? src : m_foreign);
                write_to(m_dci, 2, src);
            });
            m_dci.expect(m_dci.next_id - 3,
                         is_first ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
            m_dci.expect(m_dci.next_id - 2,
                         is_first ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_PROT_ERR);
            m_dci.expect(m_dci.next_id - 1);
            EXPECT_EQ(IBV_QPS_RTS, m_dci.state());
            EXPECT_EQ(0, m_dci.reset_stream(1));
        }
    }
}

/* A held WQE is removed with its queue. */
TEST_P(verbs_streams_order, queue_ends_with_what_is_held)
{
    for (unsigned i = 0; i < 50; i++) {
        streams_dci dci(dev, {});

        write_to(dci, 1, src);
        write_to(dci, 2, src);
        if (i % 2) {
            hca_modify(dci.qp, {}, (i % 4 == 1) ? IBV_QPS_RESET : IBV_QPS_ERR,
                       0);
        }
    }
}

/* --- another process ------------------------------------------------------ */

class verbs_streams_process : public testing::TestWithParam<int> {};

constexpr unsigned ROUND = 16;

/* Sends rounds of messages until the other's queue pair is in error. */
void send_rounds(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    enum ibv_wc_status status = IBV_WC_SUCCESS;

    peer_connect(fd, ep, peer_exchange(fd, ep, mem));
    while (status == IBV_WC_SUCCESS) {
        peer_meet(fd);
        for (unsigned i = 0; (i < ROUND) && (status == IBV_WC_SUCCESS); i++) {
            EXPECT_EQ(0, verbs_op(IBV_WR_SEND).local(mem, 64).post(ep.qp));
            status = verbs_wait(ep.send_cq).status;
        }
        peer_meet(fd);
    }
}

/* The sender puts the initiator in error; the initiator's streams are in the
 * memory of another process. */
TEST_P(verbs_streams_process, sender_overruns_the_queue_of_an_initiator)
{
    peer_process peer(send_rounds);
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    raw_qp queue(ep.qp); /* libmlx5 waits for completions that are polled */
    struct ibv_qp *dci = streams_dci::create(dev, ep.recv_cq, {});

    ASSERT_NE(nullptr, dci);
    hca_connect_dci(dci, dev);
    peer_connect(peer.fd, ep, peer_exchange(peer.fd, ep, mem));
    while (ep.state() != IBV_QPS_ERR) {
        for (unsigned i = 0; i < ROUND; i++) {
            queue.post_recv(mem.addr, 64, mem.mr->lkey);
        }
        peer_meet(peer.fd);
        peer_meet(peer.fd);
    }
    EXPECT_EQ(0, peer.wait());
    EXPECT_EQ(0, ibv_destroy_qp(dci));
}

INSTANTIATE_TEST_SUITE_P(ib, verbs_streams_process, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, verbs_streams_late, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ooo, verbs_streams_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late_ooo, verbs_streams_order, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_streams, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(strict, verbs_streams, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_streams, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(few, verbs_streams_few, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(none, verbs_streams_none, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"ib", {}},
         {"strict", {{"SOFTHCA_STRICT", "1"}}},
         {"roce", {{"SOFTHCA_LINK", "roce"}}},
         {"few", {{"SOFTHCA_DCI_STREAMS", "3"}, {"SOFTHCA_DCI_ERRORED", "0"}}},
         {"none", {{"SOFTHCA_DCI_STREAMS", "0"}}},
         {"late", {{"SOFTHCA_DELAY", "50000"}}},
         {"ooo", {{"SOFTHCA_ORDER", "ooo"}}},
         {"late_ooo", {{"SOFTHCA_DELAY", "200"}, {"SOFTHCA_ORDER", "ooo"}}}});
}
