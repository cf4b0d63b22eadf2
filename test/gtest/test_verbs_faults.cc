/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Errors of work requests: receivers that are not ready, peers that do not
 * answer or were killed, missing rights, queues in error, and async events.
 * Statuses and events are those of the InfiniBand specification, volume 1,
 * chapters 9.7, 10.3.1 and 11.6.
 */
#include "verbs_peer.h"

namespace {

class verbs_faults : public verbs_test {
protected:
    static constexpr uint8_t rnr_forever = 7;

    /* Connects @a by a wrong @attr, and sends: @b receives nothing. */
    enum ibv_wc_status send_to(const struct ibv_qp_attr &attr, verbs_ep &a,
                               verbs_ep &b)
    {
        enum ibv_wc_status status;

        a.connect(attr);
        b.connect(a);
        EXPECT_EQ(0, verbs_recv(b.qp, dst, 64));
        status = run(a, send());
        EXPECT_TRUE(verbs_is_empty(b.recv_cq));
        EXPECT_EQ(0x22, dst.addr[0]);
        return status;
    }

    /* Checks the receiver of a refused request. */
    void expect_responder_fails(verbs_ep &ep, enum ibv_event_type type)
    {
        struct ibv_async_event event = verbs_event(dev.ctx);

        EXPECT_EQ(type, event.event_type);
        EXPECT_EQ(ep.qp, event.element.qp);
        EXPECT_EQ(IBV_QPS_ERR, ep.state());
    }
};

/* --- receivers that are not ready ----------------------------------------- */

TEST_P(verbs_faults, rnr_is_retried_until_a_receive_comes)
{
    verbs_options options;

    options.rnr_retry = rnr_forever;
    verbs_pair pair(dev, options);
    ASSERT_EQ(0, send(1, 10).post(pair.a.qp));
    ASSERT_EQ(0, send(2, 20).post(pair.a.qp));
    EXPECT_TRUE(verbs_is_empty(pair.a.send_cq));
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 1));
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 2));

    verbs_expect_wcs(pair.a.send_cq, IBV_WC_SUCCESS, 1, 2);
    EXPECT_EQ(10u, verbs_wait(pair.b.recv_cq).byte_len);
    EXPECT_EQ(20u, verbs_wait(pair.b.recv_cq).byte_len);
}

TEST_P(verbs_faults, rnr_gives_up_after_its_retries)
{
    verbs_options options;

    options.rnr_retry     = 3;
    options.min_rnr_timer = 12; /* 640 us: table 45 */
    verbs_pair pair(dev, options);
    uint64_t start = time_now_us();
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, send()));
    EXPECT_LE(3 * 640u, time_now_us() - start);
    EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
    EXPECT_EQ(IBV_QPS_RTS, pair.b.state());
}

TEST_P(verbs_faults, write_with_immediate_needs_a_receive_too)
{
    verbs_pair pair(dev);
    verbs_op op = write();

    op.wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, op));
}

/* --- peers that do not answer --------------------------------------------- */

TEST_P(verbs_faults, retry_is_exceeded_to_a_qp_that_is_gone)
{
    verbs_options options;

    options.retry_cnt = 3;
    options.timeout   = 10; /* 4.2 ms */
    verbs_pair pair(dev, options);
    pair.b.destroy_qp();
    uint64_t start = time_now_us();
    ASSERT_EQ(0, write(1).post(pair.a.qp));
    ASSERT_EQ(0, write(2).post(pair.a.qp));
    verbs_expect_wcs(pair.a.send_cq, IBV_WC_RETRY_EXC_ERR, 1, 1);
    EXPECT_LE(4 * 4194u, time_now_us() - start);
    verbs_expect_wcs(pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 2, 2);
}

TEST_P(verbs_faults, retry_is_exceeded_to_a_wrong_qpn)
{
    verbs_ep a(dev), b(dev);

    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR,
              send_to(a.attr(b.qp->qp_num ^ 0x800000), a, b));
}

TEST_P(verbs_faults, retry_is_exceeded_to_a_port_that_is_not_there)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    if (dev.is_roce()) { /* found earlier: its MAC is unknown */
        attr.ah_attr.grh.dgid.raw[15] ^= 0x55;
        EXPECT_THROW(a.connect(attr), std::runtime_error);
        EXPECT_EQ(EHOSTUNREACH, errno);
        return;
    }
    attr.ah_attr.dlid ^= 0x55;
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, send_to(attr, a, b));
}

TEST_P(verbs_faults, retry_is_exceeded_when_sequence_numbers_differ)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.sq_psn = 5;
    EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, send_to(attr, a, b));
}

/* --- flush ---------------------------------------------------------------- */

TEST_P(verbs_faults, error_state_flushes_both_queues_in_order)
{
    verbs_options options;

    options.rnr_retry = rnr_forever; /* so that sends wait */
    verbs_pair pair(dev, options);
    for (uint64_t i = 1; i <= 5; i++) {
        ASSERT_EQ(0, send(i).post(pair.a.qp));
        ASSERT_EQ(0, verbs_recv(pair.a.qp, dst, 64, 100 + i));
    }
    hca_modify(pair.a.qp, {}, IBV_QPS_ERR, 0);
    verbs_expect_wcs(pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 1, 5);
    verbs_expect_wcs(pair.a.recv_cq, IBV_WC_WR_FLUSH_ERR, 101, 105);
}

TEST_P(verbs_faults, error_state_flushes_what_comes_later)
{
    verbs_pair pair(dev);

    hca_modify(pair.a.qp, {}, IBV_QPS_ERR, 0);
    for (uint64_t i = 1; i <= 3; i++) {
        ASSERT_EQ(0, verbs_recv(pair.a.qp, dst, 64, i));
        verbs_expect_wcs(pair.a.recv_cq, IBV_WC_WR_FLUSH_ERR, i, i);
        ASSERT_EQ(0, write(i).flags(0).post(pair.a.qp));
        verbs_expect_wcs(pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, i, i);
    }
}

TEST_P(verbs_faults, reset_makes_a_failed_pair_usable)
{
    verbs_pair pair(dev);

    ASSERT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, send()));
    hca_modify(pair.a.qp, {}, IBV_QPS_RESET, 0);
    hca_modify(pair.b.qp, {}, IBV_QPS_RESET, 0);
    pair.a.connect(pair.b);
    pair.b.connect(pair.a);
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 7));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, send()));
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_SUCCESS, 7, 7);
    EXPECT_EQ(0x11, dst.addr[63]);
}

/* --- rights --------------------------------------------------------------- */

TEST_P(verbs_faults, remote_key_that_does_not_fit_is_an_access_error)
{
    struct ibv_pd *other = ibv_alloc_pd(dev.ctx);

    ASSERT_NE(nullptr, other);
    {
        strict_mem alien(other, ACCESS_ALL, 0), local(dev.pd, 0, 0);
        uint64_t addr = (uintptr_t)dst.addr;
        struct {
            const char *what;
            uint64_t addr;
            uint32_t rkey;
        } cases[] = {
            {"no such key", addr, dst.mr->rkey ^ 0xdead00},
            {"an old key", addr, dst.mr->rkey ^ 1},
            {"another domain", (uintptr_t)alien.addr, alien.mr->rkey},
            {"local only", (uintptr_t)local.addr, local.mr->rkey},
            {"beyond the end", addr + dst.size - 63, dst.mr->rkey},
            {"before the start", addr - 1, dst.mr->rkey},
            {"around the end of addresses", -32ull, dst.mr->rkey},
        };
        for (const auto &c : cases) {
            SCOPED_TRACE(c.what);
            verbs_pair pair(dev);
            ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 9));
            EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
                      run(pair.a, write().remote(c.addr, c.rkey)));
            expect_responder_fails(pair.b, IBV_EVENT_QP_ACCESS_ERR);
            verbs_expect_wcs(pair.b.recv_cq, IBV_WC_WR_FLUSH_ERR, 9, 9);
        }
    }
    EXPECT_EQ(0x22, dst.addr[0]);
    EXPECT_EQ(0, ibv_dealloc_pd(other));
}

TEST_P(verbs_faults, local_key_that_does_not_fit_is_a_protection_error)
{
    strict_mem readonly(dev.pd, 0, 0);
    uint64_t addr = (uintptr_t)src.addr;
    struct {
        const char *what;
        enum ibv_wr_opcode opcode;
        uint64_t addr;
        uint32_t lkey;
    } cases[] = {
        {"no such key", IBV_WR_RDMA_WRITE, addr, src.mr->lkey ^ 0xdead00},
        {"beyond the end", IBV_WR_RDMA_WRITE, addr + src.size - 63,
         src.mr->lkey},
        {"read into what is read only", IBV_WR_RDMA_READ,
         (uintptr_t)readonly.addr, readonly.mr->lkey},
    };

    for (const auto &c : cases) {
        SCOPED_TRACE(c.what);
        verbs_pair pair(dev);
        EXPECT_EQ(
            IBV_WC_LOC_PROT_ERR,
            run(pair.a,
                verbs_op(c.opcode).local(c.addr, 64, c.lkey).remote(dst)));
        EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
        EXPECT_EQ(IBV_QPS_RTS, pair.b.state()) << "it has seen nothing";
    }
}

TEST_P(verbs_faults, message_longer_than_its_receive_fails_both_sides)
{
    verbs_pair pair(dev);

    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 63, 1));
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64, 2));
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, run(pair.a, send()));
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_LOC_LEN_ERR, 1, 1);
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_WR_FLUSH_ERR, 2, 2);
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0))
        << "an event beside the completion";
}

TEST_P(verbs_faults, unaligned_atomic_is_an_invalid_request)
{
    verbs_pair pair(dev);
    verbs_op op(IBV_WR_ATOMIC_FETCH_AND_ADD);

    op.local(src, 8);
    op.wr.wr.atomic.remote_addr = (uintptr_t)dst.addr + 4;
    op.wr.wr.atomic.rkey        = dst.mr->rkey;
    op.wr.wr.atomic.compare_add = 1;
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, run(pair.a, op));
    expect_responder_fails(pair.b, IBV_EVENT_QP_ACCESS_ERR);
}

TEST_P(verbs_faults, receive_that_completes_in_error_is_no_event)
{
    verbs_pair pair(dev);
    strict_mem readonly(dev.pd, 0, 0);

    ASSERT_EQ(0, verbs_recv(pair.b.qp, readonly, 64, 1));
    EXPECT_EQ(IBV_WC_REM_OP_ERR, run(pair.a, send()));
    verbs_expect_wcs(pair.b.recv_cq, IBV_WC_LOC_PROT_ERR, 1, 1);
    EXPECT_EQ(IBV_QPS_ERR, pair.b.state());
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0));
}

/* A sender of eight reads in one doorbell, limited to `max`; its peer allows
 * 4. */
class verbs_reads : public verbs_faults {
protected:
    enum ibv_wc_status run_eight(uint8_t max, unsigned flags)
    {
        std::vector<verbs_op> ops(8, verbs_op(IBV_WR_RDMA_READ));
        verbs_ep a(dev), b(dev);
        struct ibv_qp_attr attr = b.attr(a.qp->qp_num);

        attr.max_dest_rd_atomic = 3; /* rounded up */
        b.connect(attr);
        attr               = a.attr(b.qp->qp_num);
        attr.max_rd_atomic = max;
        a.connect(attr);
        for (unsigned i = 0; i < ops.size(); i++) {
            ops[i].local(src, 64).remote(dst).flags(flags);
            ops[i].wr.next = (i < 7) ? &ops[i + 1].wr : NULL;
        }
        ops[7].flags(flags | IBV_SEND_SIGNALED);
        for (auto &op : ops) {
            op.attach();
        }

        enum ibv_wc_status status = run(a, ops[0]);
        if (status != IBV_WC_SUCCESS) {
            expect_responder_fails(b, IBV_EVENT_QP_ACCESS_ERR);
        }
        return status;
    }
};

TEST_P(verbs_reads, are_as_many_as_the_peer_keeps)
{
    EXPECT_EQ(IBV_WC_SUCCESS, run_eight(4, 0));
    EXPECT_EQ(IBV_WC_SUCCESS, run_eight(16, IBV_SEND_FENCE));
    EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, run_eight(5, 0));
}

/* --- async events --------------------------------------------------------- */

TEST_P(verbs_faults, overrun_of_a_cq_is_an_event)
{
    verbs_options options;

    options.send_cqe = 3;
    verbs_pair pair(dev, options);
    for (int i = 0; i < pair.a.send_cq->cqe + 2; i++) {
        ASSERT_EQ(0, write().post(pair.a.qp));
    }
    struct ibv_async_event event = verbs_event(dev.ctx);
    EXPECT_EQ(IBV_EVENT_CQ_ERR, event.event_type);
    EXPECT_EQ(pair.a.send_cq, event.element.cq);
}

/* A peer's message causes the overrun. Idle queue pairs fail, too, and so do
 * queue pairs that use the CQ for receives only. */
TEST_P(verbs_faults, overrun_of_a_cq_fails_all_its_queue_pairs)
{
    verbs_options sends, others;
    verbs_ep receives(dev);
    struct ibv_cq *cq = receives.recv_cq;

    sends.send_cq = cq;
    sends.send_wr = cq->cqe + 1;
    verbs_pair busy(dev, sends), idle(dev, sends, others);
    verbs_ep from(dev);
    receives.connect(from);
    from.connect(receives);
    for (int i = 0; i < cq->cqe + 1; i++) { /* the ring has one more */
        ASSERT_EQ(0, write().post(busy.a.qp));
    }
    ASSERT_EQ(0, verbs_recv(receives.qp, dst, 64));
    EXPECT_EQ(IBV_WC_REM_OP_ERR, run(from, send()));

    EXPECT_EQ(IBV_EVENT_CQ_ERR, verbs_event(dev.ctx).event_type);
    std::vector<struct ibv_qp *> failed;
    for (int i = 0; i < 4; i++) {
        struct ibv_async_event event = verbs_event(dev.ctx);
        EXPECT_EQ(IBV_EVENT_QP_FATAL, event.event_type);
        failed.push_back(event.element.qp);
    }
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 0)) << "more than one each";
    for (auto ep : {&receives, &busy.a, &busy.b, &idle.a}) {
        EXPECT_EQ(1, std::count(failed.begin(), failed.end(), ep->qp));
        EXPECT_EQ(IBV_QPS_ERR, ep->state());
    }
    EXPECT_EQ(IBV_QPS_RTS, idle.b.state()) << "it has other queues";
}

TEST_P(verbs_faults, failed_pair_reports_the_last_use_of_its_srq)
{
    struct ibv_srq_init_attr init = {NULL, {16, 1, 0}};
    struct ibv_srq *srq           = ibv_create_srq(dev.pd, &init);
    verbs_options options;

    ASSERT_NE(nullptr, srq);
    options.srq = srq;
    {
        verbs_pair pair(dev, {}, options);
        ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
        hca_modify(pair.b.qp, {}, IBV_QPS_ERR, 0);
        struct ibv_async_event event = verbs_event(dev.ctx);
        EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
        EXPECT_EQ(pair.b.qp, event.element.qp);
        EXPECT_TRUE(verbs_is_empty(pair.b.recv_cq)) << "others may use it";
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* --- killed peers --------------------------------------------------------- */

/* Writes rising numbers to its parent until it is killed. */
void write_for_ever(int fd)
{
    hca_device dev;
    strict_mem mem(dev.pd, ACCESS_ALL, 0);
    verbs_ep ep(dev);
    peer_card card = peer_exchange(fd, ep, mem);

    peer_connect(fd, ep, card);
    do {
        ++*(uint64_t *)mem.addr;
        verbs_op op(IBV_WR_RDMA_WRITE);
        op.local(mem, 4096).remote(card.addr, card.rkey).post(ep.qp);
    } while (verbs_wait(ep.send_cq).status == IBV_WC_SUCCESS);
}

TEST_P(verbs_faults, killed_peer_is_a_retry_error_and_no_more)
{
    verbs_op op(IBV_WR_RDMA_WRITE);
    peer_process peer(write_for_ever);

    {
        verbs_ep ep(dev);
        peer_card card = peer_exchange(peer.fd, ep, dst);

        peer_connect(peer.fd, ep, card);
        op.local(src, 4096).remote(card.addr + 4096, card.rkey);
        EXPECT_TRUE(hca_until([&] {
            EXPECT_EQ(IBV_WC_SUCCESS, run(ep, op));
            uint64_t count = __atomic_load_n((uint64_t *)dst.addr,
                                             __ATOMIC_ACQUIRE);
            return ((count >= 1000) && (count < 1ull << 32)) || HasFailure();
        }));
        kill(peer.pid, SIGKILL);
        enum ibv_wc_status result = IBV_WC_SUCCESS;
        EXPECT_TRUE(hca_until(
            [&] { return (result = run(ep, op)) != IBV_WC_SUCCESS; }));
        EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, result);
        EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, run(ep, op));
    }
    EXPECT_TRUE(WIFSIGNALED(peer.wait()));
    verbs_pair pair(dev);
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write())) << "others go on";
}

/* --- a device that fails -------------------------------------------------- */

class verbs_fatal : public verbs_faults {};

/* The device fails at the second write: nothing completes, no message arrives,
 * commands end with EIO, and objects can be destroyed. The device of another
 * process works. */
TEST_P(verbs_fatal, device_is_silent)
{
    verbs_pair pair(dev), idle(dev);
    struct ibv_async_event event;
    struct ibv_port_attr port;

    ASSERT_EQ(0, verbs_recv(idle.b.qp, dst, 64));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write(1)));
    ASSERT_EQ(0, write(2).post(pair.a.qp));
    ASSERT_EQ(0, write(3).post(pair.a.qp));
    ASSERT_EQ(0, send(4).post(idle.a.qp));
    event = verbs_event(dev.ctx);
    EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 20));
    EXPECT_TRUE(verbs_is_empty(pair.a.send_cq));
    EXPECT_TRUE(verbs_is_empty(idle.a.send_cq));
    EXPECT_TRUE(verbs_is_empty(idle.b.recv_cq));
    EXPECT_NE(0, ibv_query_port(dev.ctx, 1, &port));
    EXPECT_EQ(EIO, errno);
    EXPECT_EQ(0, peer_process([](int) { hca_device own; }).wait());
}

/* Stopping a queue pair succeeds and does nothing; other steps fail. */
class verbs_fatal_stop : public verbs_faults {};

TEST_P(verbs_fatal_stop, queue_pairs_are_stopped_already)
{
    verbs_pair pair(dev);
    struct ibv_qp_attr attr = {};

    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, write(1)));
    ASSERT_EQ(0, write(2).post(pair.a.qp));
    EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, verbs_event(dev.ctx).event_type);
    attr.qp_state = IBV_QPS_ERR;
    EXPECT_EQ(0, ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE));
    EXPECT_FALSE(verbs_readable(dev.ctx->async_fd, 20));
    EXPECT_TRUE(verbs_is_empty(pair.a.send_cq)) << "it flushes nothing";
    attr.qp_state = IBV_QPS_RESET;
    EXPECT_EQ(0, ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_INIT;
    EXPECT_EQ(EIO, ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE));
}

/* A datagram that the device does not send is no success either. */
class verbs_fatal_ud : public verbs_faults {};

TEST_P(verbs_fatal_ud, datagram_does_not_complete)
{
    verbs_datagrams ud(dev);

    ASSERT_EQ(0, verbs_recv(ud.b.qp, dst, 128));
    ASSERT_EQ(0, ud.to_b(send()).post(ud.a.qp));
    EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, verbs_event(dev.ctx).event_type);
    time_quiet(20);
    EXPECT_TRUE(verbs_is_empty(ud.a.send_cq));
    EXPECT_TRUE(verbs_is_empty(ud.b.recv_cq));
}

/* The result of a read is late when the device fails with the write. */
class verbs_fatal_late : public verbs_faults {};

TEST_P(verbs_fatal_late, result_is_not_written)
{
    verbs_pair pair(dev), other(dev);

    ASSERT_EQ(
        0,
        verbs_op(IBV_WR_RDMA_READ).local(src, 64).remote(dst).post(pair.a.qp));
    ASSERT_EQ(0, write().post(other.a.qp));
    EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, verbs_event(dev.ctx).event_type);
    time_quiet(40);
    EXPECT_TRUE(verbs_is_empty(pair.a.send_cq));
    EXPECT_TRUE(verbs_is_empty(other.a.send_cq));
    EXPECT_EQ(0x11, src.addr[0]);
}

INSTANTIATE_TEST_SUITE_P(fatal_late, verbs_fatal_late, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal_ud, verbs_fatal_ud, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal_ud_late, verbs_fatal_ud, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal, verbs_fatal, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal_slow, verbs_fatal, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(fatal_stop, verbs_fatal_stop, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_faults, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, verbs_faults, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(ib, verbs_reads, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {{"ib", {}},
         {"roce", {{"SOFTHCA_LINK", "roce"}}},
         {"late", {{"SOFTHCA_DELAY", "2000"}}},
         {"odp", {{"SOFTHCA_PAGE_FAULT", "100000"}}},
         {"odp_lacks", {{"SOFTHCA_LACKS", "odp_atomic"}}},
         {"fatal", {{"SOFTHCA_FAULT", "device_fatal:op=write:nth=2"}}},
         {"fatal_stop", {{"SOFTHCA_FAULT", "device_fatal:op=write:nth=2"}}},
         {"fatal_slow",
          {{"SOFTHCA_FAULT", "device_fatal:op=write:nth=2"},
           {"SOFTHCA_DELAY", "500"}}},
         {"fatal_late",
          {{"SOFTHCA_FAULT", "device_fatal:op=write"},
           {"SOFTHCA_DELAY", "10000"}}},
         {"fatal_ud", {{"SOFTHCA_FAULT", "device_fatal:op=send"}}},
         {"fatal_ud_late",
          {{"SOFTHCA_FAULT", "device_fatal:op=send"},
           {"SOFTHCA_DELAY", "500"}}},
         {"pcie", {{"SOFTHCA_PCIE", "y"}}}});
}
