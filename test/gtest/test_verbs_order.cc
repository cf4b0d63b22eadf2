/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_ORDER: RDMA operations and atomics are reordered at their target, if
 * nothing orders them; other operations are not. The operations of a pair
 * access the same bytes, which show their order. Verbs has no flag for strong
 * order: test_dcx_order.cc tests it.
 */
#include "verbs_peer.h"

namespace {

constexpr unsigned PAIRS = 200;

/* Several, so that some hit reordered pairs */
constexpr const char *FAULTS =
    "drop:op=write:nth=11,drop:op=write:nth=22,drop_ack:op=write:nth=33,"
    "drop_ack:op=write:nth=44,drop:op=atomic:nth=55,drop:op=atomic:nth=66,"
    "drop_ack:op=atomic:nth=77,drop_ack:op=atomic:nth=88";
/* Only the first of a pair is dropped: the operation that has passed it waits
 * for it. */
constexpr const char *DROPS =
    "drop:op=write:nth=11,drop:op=write:nth=22,drop:op=write:nth=33,"
    "drop:op=write:nth=44,drop:op=write:nth=55,drop:op=write:nth=66,"
    "drop:op=write:nth=77,drop:op=write:nth=88";

class verbs_order : public verbs_test {
protected:
    static constexpr int access = ACCESS_ALL | IBV_ACCESS_RELAXED_ORDERING;

    verbs_op put(const strict_mem &from, unsigned flags = IBV_SEND_SIGNALED)
    {
        return verbs_op(IBV_WR_RDMA_WRITE)
            .local(from, 8)
            .remote(*m_target)
            .flags(flags);
    }

    /* Posts both in one doorbell, and expects their completions in order. */
    void post(verbs_op first, verbs_op second)
    {
        first.wr.wr_id  = 1;
        second.wr.wr_id = 2;
        second.attach();
        first.wr.next = &second.wr;
        ASSERT_EQ(0, first.post(m_pair.a.qp));
        if (first.wr.send_flags & IBV_SEND_SIGNALED) {
            verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
        }
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 2, 2);
    }

    /* Flushes all data to memory by a read (test_verbs_posted.cc). */
    void push()
    {
        ASSERT_EQ(0, verbs_op(IBV_WR_RDMA_READ)
                         .local(m_far, 8)
                         .remote(*m_target)
                         .post(m_pair.a.qp));
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
    }

    /* Returns a character for each pair of writes: 'x' if the first one came
     * last. */
    std::string writes(unsigned flags = 0, unsigned first_flags = 0)
    {
        std::string order;

        memset(src.addr, 1, 8);
        memset(m_other.addr, 2, 8);
        for (unsigned i = 0; i < PAIRS; i++) {
            post(put(src, first_flags),
                 put(m_other, IBV_SEND_SIGNALED | flags));
            push();
            order += (m_target->addr[0] == 1) ? 'x' : '.';
        }
        return order;
    }

    static void expect_some(const std::string &order)
    {
        size_t count = std::count(order.begin(), order.end(), 'x');

        EXPECT_GT(count, order.size() / 4) << order;
        EXPECT_LT(count, order.size() * 3 / 4) << order;
    }

    static void expect_none(const std::string &order)
    {
        EXPECT_EQ(std::string(order.size(), '.'), order);
    }

    verbs_op fetch_add(unsigned flags = IBV_SEND_SIGNALED)
    {
        verbs_op op = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD)
                          .local(m_other, 8)
                          .flags(flags);

        op.wr.wr.atomic.remote_addr = (uintptr_t)m_target->addr;
        op.wr.wr.atomic.rkey        = m_target->mr->rkey;
        op.wr.wr.atomic.compare_add = 1;
        return op;
    }

    /* Returns a character for each pair of a write and a fetch after it: 'x' if
     * the fetch got the previous value. */
    template <typename F> std::string fetches(F make)
    {
        std::string order;

        for (unsigned i = 0; i < PAIRS; i++) {
            memset(src.addr, 1 + i % 2, 8);
            memset(m_target->addr, 7, 8);
            post(put(src), make());
            order += (m_other.addr[0] == 7) ? 'x' : '.';
            push();
        }
        return order;
    }

    verbs_op read()
    {
        return verbs_op(IBV_WR_RDMA_READ).local(m_other, 8).remote(*m_target);
    }

    strict_mem m_other{dev.pd, ACCESS_ALL, 0}, m_relaxed{dev.pd, access, 0};
    strict_mem m_far{dev.pd, ACCESS_ALL, 0};
    strict_mem *m_target = &dst;
    verbs_pair m_pair{dev};
};

class verbs_order_ooo : public verbs_order {};
class verbs_order_lost : public verbs_order {
protected:
    hca_log_reader m_log;
};
class verbs_order_late : public verbs_order {};
class verbs_order_relaxed : public verbs_order {};

TEST_P(verbs_order_ooo, writes_change_places)
{
    expect_some(writes());
    expect_some(writes(IBV_SEND_FENCE));
    expect_some(writes(0, IBV_SEND_SIGNALED));
}

TEST_P(verbs_order_ooo, fetches_pass_writes)
{
    expect_some(fetches([&] { return read(); }));
    expect_some(fetches([&] { return fetch_add(); }));
}

/* The device holds a write back so that another operation may pass it, but not
 * for long. */
TEST_P(verbs_order_ooo, write_alone_is_placed)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(src.addr, i, 8);
        ASSERT_EQ(0, put(src).post(m_pair.a.qp));
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
        ASSERT_EQ((uint8_t)i, m_target->addr[7]);
    }
}

TEST_P(verbs_order_ooo, result_may_come_with_the_completion)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(dst.addr, i, 8);
        verbs_read_to_cqe(dev, src, dst);
    }
}

/* A WQE may pass one of an earlier doorbell. */
TEST_P(verbs_order_ooo, next_doorbell_passes)
{
    std::string order;

    memset(src.addr, 1, 8);
    memset(m_other.addr, 2, 8);
    for (unsigned i = 0; i < PAIRS; i++) {
        ASSERT_EQ(0, put(src).post(m_pair.a.qp));
        ASSERT_EQ(0, put(m_other).post(m_pair.a.qp));
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
        order += (m_target->addr[0] == 1) ? 'x' : '.';
    }
    EXPECT_NE(std::string::npos, order.find('x')) << order;
    EXPECT_NE(std::string::npos, order.find('.')) << order;
}

TEST_P(verbs_order_ooo, message_does_not_pass_data)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(src.addr, i, 8);
        ASSERT_EQ(0, verbs_recv(m_pair.b.qp, m_other, 64));
        ASSERT_EQ(0, put(src).post(m_pair.a.qp));
        ASSERT_EQ(0, send().post(m_pair.a.qp));
        verbs_expect_wcs(m_pair.b.recv_cq, IBV_WC_SUCCESS, 0, 0);
        ASSERT_EQ((uint8_t)i, m_target->addr[7]);
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 0, 0);
    }
}

/* A read before a fence has its data before the fenced operation is
 * executed. */
TEST_P(verbs_order_ooo, fence_holds_behind_a_read)
{
    for (unsigned i = 0; i < PAIRS; i++) {
        memset(m_target->addr, i, 8);
        memset(src.addr, 0xee, 8);
        post(read(), put(src, IBV_SEND_SIGNALED | IBV_SEND_FENCE));
        ASSERT_EQ((uint8_t)i, m_other.addr[7]);
    }
}

TEST_P(verbs_order_ooo, seed_determines_the_order)
{
    verbs_pair other(dev);
    std::string order = writes();

    std::swap(m_pair.a.qp, other.a.qp);
    std::swap(m_pair.a.send_cq, other.a.send_cq);
    EXPECT_EQ(order, writes());
    std::swap(m_pair.a.qp, other.a.qp);
    std::swap(m_pair.a.send_cq, other.a.send_cq);
    EXPECT_NE(order, writes()) << "other messages";
}

/* The operation that passed fails: its error is reported in order. */
TEST_P(verbs_order_ooo, error_comes_in_its_turn)
{
    for (unsigned i = 0; i < 20; i++) {
        verbs_pair pair(dev);
        verbs_op wrong = verbs_op(IBV_WR_RDMA_WRITE, 2)
                             .local((uintptr_t)src.addr, 8,
                                    src.mr->lkey ^ 0xdead00)
                             .remote(dst);
        verbs_op first = put(src);

        memset(src.addr, i + 1, 8);
        first.wr.wr_id = 1;
        wrong.attach();
        first.wr.next = &wrong.wr;
        ASSERT_EQ(0, first.post(pair.a.qp));
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_LOC_PROT_ERR, 2, 2);
        EXPECT_EQ(i + 1, dst.addr[0]);
    }
}

/* A queue is destroyed, reset or put in error while it holds a WQE. */
TEST_P(verbs_order_ooo, queue_ends_with_a_held_request)
{
    for (unsigned i = 0; i < 50; i++) {
        verbs_pair pair(dev);

        ASSERT_EQ(0, put(src).post(pair.a.qp));
        if (i % 2) {
            hca_modify(pair.a.qp, {},
                       (i % 4 == 1) ? IBV_QPS_RESET : IBV_QPS_ERR, 0);
        }
    }
}

/* The first request of a pair, the second, or the answer to one is lost. It is
 * retried and executed once. */
TEST_P(verbs_order_lost, each_is_executed_once)
{
    memset(m_far.addr, 0, 8);
    for (unsigned i = 0; i < PAIRS; i++) {
        verbs_op add = fetch_add();

        add.wr.wr.atomic.remote_addr = (uintptr_t)m_far.addr;
        add.wr.wr.atomic.rkey        = m_far.mr->rkey;
        memset(src.addr, i, 8);
        post(put(src), add);
        ASSERT_EQ((uint8_t)i, m_target->addr[7]);
        ASSERT_EQ(i, *(uint64_t *)m_other.addr);
    }
    EXPECT_EQ(PAIRS, *(uint64_t *)m_far.addr);
    EXPECT_NE("", m_log.take()) << "no fault hit a message";
}

/* A read passes a write that is lost. Its data is late, too, and is freed with
 * the queue: AddressSanitizer checks that. */
TEST_P(verbs_order_late, queue_in_error_drops_late_data)
{
    for (unsigned i = 0; i < 8; i++) {
        verbs_pair pair(dev);
        verbs_op first = put(src), second = read();

        for (unsigned j = 0; j < i; j++) {
            ASSERT_EQ(IBV_WC_SUCCESS, run(pair.a, read()));
        }
        second.attach();
        first.wr.next = &second.wr;
        ASSERT_EQ(0, first.post(pair.a.qp));
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_RETRY_EXC_ERR, 0, 0);
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 0, 0);
    }
}

TEST_P(verbs_order_relaxed, only_relaxed_regions_reorder)
{
    expect_none(writes());
    expect_none(fetches([&] { return fetch_add(); }));
    m_target = &m_relaxed;
    expect_some(writes());
    expect_some(fetches([&] { return fetch_add(); }));
    expect_none(fetches([&] { return read(); }));
}

/* --- another process ------------------------------------------------------ */

class verbs_order_process : public testing::TestWithParam<int> {};

/* Puts both queue pairs in error while the parent's waits for an answer. */
void fail_both(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    peer_card card = peer_exchange(fd, ep, mem);
    verbs_op wrong = verbs_op(IBV_WR_RDMA_WRITE)
                         .local(mem, 8)
                         .remote(card.addr, card.rkey ^ 0xdead00);

    peer_connect(fd, ep, card);
    peer_meet(fd);
    EXPECT_EQ(0, wrong.post(ep.qp));
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, verbs_wait(ep.send_cq).status);
    peer_meet(fd);
}

/* The request waits hours for its answer, which never comes. */
TEST_P(verbs_order_process, queue_that_waits_is_flushed_before_its_timeout)
{
    peer_process peer(fail_both);
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    peer_card card          = peer_exchange(peer.fd, ep, mem);
    struct ibv_qp_attr attr = ep.attr(card.qpn);

    attr.timeout = 31;
    attr.sq_psn  = 77; /* the other one expects 0 */
    ep.connect(attr);
    peer_meet(peer.fd);
    ASSERT_EQ(0, verbs_op(IBV_WR_SEND).local(mem, 8).post(ep.qp));
    peer_meet(peer.fd);
    peer_meet(peer.fd);
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, verbs_wait(ep.send_cq).status);
    EXPECT_EQ(0, peer.wait());
}

INSTANTIATE_TEST_SUITE_P(ooo, verbs_order_process, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ooo, verbs_order_ooo, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(seed, verbs_order_ooo, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(lost, verbs_order_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(dropped, verbs_order_lost, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(late, verbs_order_late, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(relaxed, verbs_order_relaxed, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ooo", {{"SOFTHCA_ORDER", "ooo"}}},
                          {"seed", {{"SOFTHCA_ORDER", "ooo:2"}}},
                          {"lost",
                           {{"SOFTHCA_ORDER", "ooo"},
                            {"SOFTHCA_LOG", "info"},
                            {"SOFTHCA_FAULT", FAULTS}}},
                          {"dropped",
                           {{"SOFTHCA_ORDER", "ooo"},
                            {"SOFTHCA_LOG", "info"},
                            {"SOFTHCA_FAULT", DROPS}}},
                          {"late",
                           {{"SOFTHCA_ORDER", "ooo"},
                            {"SOFTHCA_DELAY", "100"},
                            {"SOFTHCA_FAULT", "drop:op=write:count=1000"}}},
                          {"relaxed", {{"SOFTHCA_ORDER", "relaxed:3"}}}});
}
