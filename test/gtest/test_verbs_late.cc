/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_DELAY: results arrive as late as on a NIC, so that programs that do
 * not wait for them fail here, too. Part of the program of
 * test_verbs_faults.cc.
 */
#include "create_qp_hook.h"
#include "verbs_bench.h"

namespace {

class verbs_late : public verbs_test {
protected:
    /* Posts `first`, which fetches to src, and a write from src to m_far, in
     * one doorbell. Returns the byte that was written. */
    uint8_t write_behind(verbs_op first, unsigned flags)
    {
        verbs_op second = verbs_op(IBV_WR_RDMA_WRITE, 2)
                              .local(src, 8)
                              .remote(m_far)
                              .flags(flags | IBV_SEND_SIGNALED);

        memset(src.addr, 0x11, 64);
        memset(dst.addr, 0x22, 64);
        memset(m_far.addr, 0x33, 64);
        second.attach();
        first.wr.next = &second.wr;
        EXPECT_EQ(0, first.post(m_pair.a.qp));
        if (first.wr.send_flags & IBV_SEND_SIGNALED) {
            verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
        }
        verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 2, 2);
        EXPECT_EQ(0x22, src.addr[0])
            << "the data arrives before the completion";
        return m_far.addr[0];
    }

    verbs_op read(unsigned flags = 0) const
    {
        return verbs_op(IBV_WR_RDMA_READ, 1)
            .local(src, 64)
            .remote(dst)
            .flags(flags);
    }

    verbs_op fetch_add() const
    {
        verbs_op op =
            verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD, 1).local(src, 8).flags(0);

        op.wr.wr.atomic.remote_addr = (uintptr_t)dst.addr;
        op.wr.wr.atomic.rkey        = dst.mr->rkey;
        op.wr.wr.atomic.compare_add = 1;
        return op;
    }

    /* Writes a WQE into the ring of `queue`, at basic block `idx`. */
    static void put(raw_qp &queue, uint16_t idx, raw_wqe wqe,
                    uint8_t fm_ce_se = 0)
    {
        wqe.finish(idx, queue.qpn);
        wqe.bytes[11] = fm_ce_se;
        queue.pi      = idx;
        queue.write(wqe);
    }

    raw_wqe raw_read(const void *to, uint32_t length, uint32_t lkey) const
    {
        raw_wqe wqe(MLX5_OPCODE_RDMA_READ);

        return wqe.raddr(dst.addr, dst.mr->rkey).data(to, length, lkey);
    }

    /* Returns a WQE whose first bytes ring the doorbell of `queue`. */
    static std::vector<uint8_t> head(const raw_qp &queue)
    {
        raw_wqe nop(MLX5_OPCODE_NOP);

        nop.finish(queue.pi, queue.qpn);
        return nop.bytes;
    }

    /* Expects one successful completion. Does not wait for one of a queue in
     * error. */
    static void expect_success(const verbs_ep &ep)
    {
        struct ibv_wc wc = {};

        wc.status = IBV_WC_GENERAL_ERR;
        EXPECT_TRUE(hca_until([&] {
            return (ibv_poll_cq(ep.send_cq, 1, &wc) != 0) ||
                   (ep.state() != IBV_QPS_RTS);
        }));
        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
    }

    /* Posts a read and a NOP in one doorbell, and waits for the completion of
     * the NOP. Returns true if the read's data had not arrived by then. */
    bool read_then_nop(raw_qp &queue, uint8_t fence)
    {
        uint16_t idx = queue.pi;

        memset(src.addr, 0x77, 64);
        put(queue, idx, raw_read(src.addr, 64, src.mr->lkey));
        put(queue, idx + 1, raw_wqe(MLX5_OPCODE_NOP),
            MLX5_WQE_CTRL_CQ_UPDATE | fence);
        queue.pi = idx;
        queue.ring(2, head(queue).data());
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(m_pair.a.send_cq).status);
        return src.addr[0] == 0x77;
    }

    strict_mem m_far{dev.pd, ACCESS_ALL, 0x33};
    verbs_pair m_pair{dev};
};

TEST_P(verbs_late, results_wait_for_a_fence_or_their_completion)
{
    EXPECT_EQ(0x11, write_behind(read(), 0));
    EXPECT_EQ(0x11, write_behind(read(IBV_SEND_SIGNALED), 0));
    EXPECT_EQ(0x11, write_behind(fetch_add(), 0));
    EXPECT_EQ(0x22, write_behind(read(), IBV_SEND_FENCE));
    EXPECT_EQ(0x22, write_behind(read(IBV_SEND_SIGNALED), IBV_SEND_FENCE));
    EXPECT_EQ(0x22, write_behind(fetch_add(), IBV_SEND_FENCE));
}

/* A NOP waits for reads only if it has a fence. An attempt in which the device
 * was faster than this process is repeated. */
TEST_P(verbs_late, nop_completes_before_reads_that_it_does_not_wait_for)
{
    raw_qp queue(m_pair.a.qp);

    EXPECT_TRUE(hca_until([&] { return read_then_nop(queue, 0); }));
    for (unsigned i = 0; i < 20; i++) {
        EXPECT_FALSE(read_then_nop(queue, 4 << 5)) << i;
    }
}

/* The completion of the NOP completes the read before it, too: the program may
 * use the whole ring. */
TEST_P(verbs_late, nop_that_completes_early_makes_room_in_the_ring)
{
    raw_qp queue(m_pair.a.qp);
    auto fill = [&] {
        read_then_nop(queue, 0);
        uint16_t idx = queue.pi, end = idx + queue.num_bb();

        while (++idx != end) {
            put(queue, idx - 1, raw_wqe(MLX5_OPCODE_NOP));
        }
        put(queue, end - 1, raw_wqe(MLX5_OPCODE_NOP), MLX5_WQE_CTRL_CQ_UPDATE);
        queue.pi = end - queue.num_bb();
        queue.ring(queue.num_bb(), head(queue).data());
        bool was_early = src.addr[0] == 0x77;
        expect_success(m_pair.a);
        return was_early || HasFailure();
    };

    EXPECT_TRUE(hca_until(fill));
}

/* A program rings the doorbell while the device executes the queue, and has
 * overwritten a WQE that is done. */
TEST_P(verbs_late, ring_is_used_again_in_the_middle_of_a_run)
{
    const size_t size = 16 << 20;
    void *big         = mmap(NULL, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, big, size, ACCESS_ALL);

    ASSERT_NE(nullptr, mr);
    for (unsigned i = 0; (i < 10) && !HasFailure(); i++) {
        verbs_ep a(dev), b(dev);
        raw_wqe flag(MLX5_OPCODE_RDMA_WRITE), slow(MLX5_OPCODE_RDMA_READ);
        struct ibv_qp_attr attr = a.attr(b.qp->qp_num);
        raw_qp queue(a.qp);
        uint16_t n = queue.num_bb();

        attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
        a.connect(attr);
        attr.dest_qp_num = a.qp->qp_num;
        b.connect(attr);
        memset(dst.addr, 0x22, 64);
        flag.raddr(m_far.addr, m_far.mr->rkey).data(src.addr, 1, src.mr->lkey);
        slow.raddr(big, mr->rkey).data(big, size, mr->lkey);
        m_far.addr[0] = 0;
        src.addr[0]   = 1;
        put(queue, 0, raw_read(src.addr + 64, 64, src.mr->lkey));
        put(queue, 1, flag);
        put(queue, 2, slow);
        for (uint16_t idx = 3; idx < n; idx++) {
            put(queue, idx, raw_wqe(MLX5_OPCODE_NOP));
        }
        queue.pi = 0;
        queue.ring(3, head(queue).data());
        EXPECT_TRUE(hca_until([&] { return m_far.addr[0] == 1; }));
        put(queue, n, raw_read(src.addr + 128, 64, src.mr->lkey),
            MLX5_WQE_CTRL_CQ_UPDATE);
        queue.pi = 3;
        queue.ring(n - 2, head(queue).data());
        expect_success(a);
        EXPECT_EQ(0, memcmp(dst.addr, src.addr + 64, 64));
        EXPECT_EQ(0, memcmp(dst.addr, src.addr + 128, 64));
    }
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    munmap(big, size);
}

/* A read of no bytes counts as outstanding only until it is executed. */
TEST_P(verbs_late, empty_reads_end_at_once)
{
    verbs_ep a(dev), b(dev);
    struct ibv_qp_attr attr = a.attr(b.qp->qp_num);

    attr.max_rd_atomic = 16;
    a.connect(attr);
    b.connect(a);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(IBV_WC_SUCCESS,
                  run(a, verbs_op(IBV_WR_RDMA_READ).remote(dst)))
            << i;
    }
}

/* Without their flag, the counts of DCI streams in a command are ignored: the
 * first error fails the queue. */
TEST_P(verbs_late, counts_of_streams_need_their_flag)
{
    create_qp_hook = [](struct mlx5_ib_create_qp *cmd) {
        cmd->dci_streams = {5, 5};
    };
    verbs_pair pair(dev);
    create_qp_hook = nullptr;

    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
              run(pair.a, write().remote((uintptr_t)dst.addr,
                                         dst.mr->rkey ^ 0xdead00)));
    EXPECT_EQ(IBV_QPS_ERR, pair.a.state());
}

TEST_P(verbs_late, result_may_come_with_the_completion)
{
    verbs_read_to_cqe(dev, src, dst);
}

/* Late atomics change their target once. */
TEST_P(verbs_late, atomics_are_executed_once)
{
    for (unsigned i = 0; i < 20; i++) {
        ASSERT_EQ(0, fetch_add().flags(IBV_SEND_SIGNALED).post(m_pair.a.qp));
    }
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
    for (unsigned i = 1; i < 20; i++) {
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(m_pair.a.send_cq).status);
    }
    EXPECT_EQ(0x22 + 20, dst.addr[0]);
    EXPECT_EQ(0x22 + 19, src.addr[0]);
}

/* An attempt in which the device was faster than this process is repeated. */
TEST_P(verbs_late, sources_are_read_late)
{
    EXPECT_TRUE(hca_until([&] {
        struct ibv_wc wc;
        bool was_late;

        src.addr[0] = 0x44;
        EXPECT_EQ(0, write(1).post(m_pair.a.qp));
        src.addr[0] = 0x55;
        was_late    = ibv_poll_cq(m_pair.a.send_cq, 1, &wc) == 0;
        if (was_late) {
            verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
            EXPECT_EQ(0x55, dst.addr[0]);
        }
        return was_late || HasFailure();
    }));
}

TEST_P(verbs_late, result_without_its_region_is_a_protection_error)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, m_far.addr, 64, ACCESS_ALL);

    ASSERT_NE(nullptr, mr);
    verbs_op op = verbs_op(IBV_WR_RDMA_READ, 1)
                      .local((uintptr_t)m_far.addr, 64, mr->lkey)
                      .remote(dst);
    ASSERT_EQ(0, op.post(m_pair.a.qp));
    ASSERT_EQ(0, write(2).post(m_pair.a.qp));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_LOC_PROT_ERR, 1, 1);
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 2, 2);
    EXPECT_EQ(0x33, m_far.addr[0]);
    EXPECT_EQ(IBV_QPS_ERR, m_pair.a.state());
}

/* An error completes in the order of the queue: after an earlier read. */
TEST_P(verbs_late, error_comes_after_an_earlier_read)
{
    verbs_op wrong = verbs_op(IBV_WR_RDMA_WRITE, 2)
                         .local(src, 8)
                         .remote((uintptr_t)dst.addr, dst.mr->rkey ^ 0xdead00);
    verbs_op first = read(IBV_SEND_SIGNALED);

    memset(src.addr, 0x11, 64);
    memset(dst.addr, 0x22, 64);
    wrong.attach();
    first.wr.next = &wrong.wr;
    ASSERT_EQ(0, first.post(m_pair.a.qp));
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 1);
    EXPECT_EQ(0x22, src.addr[0]);
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_REM_ACCESS_ERR, 2, 2);
}

/* A result whose memory was unmapped is the first error: a later request is
 * flushed, although it had failed earlier. */
TEST_P(verbs_late, error_behind_a_result_without_memory_is_flushed)
{
    strict_mem gone(dev.pd, ACCESS_ALL, 0);
    verbs_op op    = verbs_op(IBV_WR_RDMA_READ, 1).local(gone, 64).remote(dst);
    verbs_op wrong = verbs_op(IBV_WR_RDMA_WRITE, 2)
                         .local(src, 8)
                         .remote((uintptr_t)dst.addr, dst.mr->rkey ^ 0xdead00);

    wrong.attach();
    op.wr.next = &wrong.wr;
    ASSERT_EQ(0, op.post(m_pair.a.qp));
    gone.unmap();
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_LOC_PROT_ERR, 1, 1);
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_WR_FLUSH_ERR, 2, 2);
}

/* The queue is destroyed at different times of its operations; under
 * AddressSanitizer, nothing is leaked or used afterwards. */
TEST_P(verbs_late, queue_ends_with_outstanding_operations)
{
    for (unsigned i = 0; i < 50; i++) {
        verbs_pair pair(dev);
        uint64_t until = time_now_us() + i * STEP_LATE;

        ASSERT_EQ(0, read().post(pair.a.qp));
        ASSERT_EQ(0, write(2).post(pair.a.qp));
        EXPECT_TRUE(hca_until([&] { return time_now_us() >= until; }));
        if (i % 2) {
            hca_modify(pair.a.qp, {},
                       (i % 4 == 1) ? IBV_QPS_RESET : IBV_QPS_ERR, 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(late, verbs_late, testing::Values(0));

} /* namespace */
