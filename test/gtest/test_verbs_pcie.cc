/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_PCIE: PCIe traffic of simple requests, to the byte. docs/softhca.md
 * has the kinds that are counted. Part of the program of test_verbs_faults.cc.
 */
#include "verbs_bench.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <ostream>

namespace {

/* Times, bytes, lines */
typedef std::array<uint64_t, 3> pcie_count;
typedef std::map<std::string, pcie_count> pcie_counts;

class verbs_pcie : public verbs_test {
protected:
    static pcie_counts total()
    {
        auto get = (int (*)(const char *, uint64_t *, uint64_t *,
                            uint64_t *))dlsym(RTLD_DEFAULT, "softhca_pcie");
        pcie_counts counts;

        HCA_CHECK_CALL(get != NULL);
        for (const char *kind :
             {"mmio_write", "wqe_read", "wqe_wait", "list_read", "gather_read",
              "result_write", "recv_wqe_read", "recv_dbrec_read", "remote_read",
              "payload_write", "send_cqe_write", "recv_cqe_write"}) {
            auto &count = counts[kind];

            HCA_CHECK_CALL(get(kind, &count[0], &count[1], &count[2]) == 0);
        }
        return counts;
    }

    /* Returns the traffic since the last call. */
    pcie_counts moved()
    {
        static const pcie_count none = {};
        pcie_counts now              = total(), diff;

        for (auto &entry : now) {
            for (int i = 0; i < 3; i++) {
                diff[entry.first][i] = entry.second[i] - m_last[entry.first][i];
            }
            if (diff[entry.first] == none) {
                diff.erase(entry.first);
            }
        }
        m_last = now;
        return diff;
    }

    /* Posts two in a row: libmlx5 pushes only single ones. */
    void post_two(verbs_op first, verbs_op second)
    {
        second.attach();
        first.wr.next = &second.wr;
        first.flags(first.wr.send_flags & ~IBV_SEND_SIGNALED);
        EXPECT_EQ(0, first.post(pair.a.qp));
        EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair.a.send_cq).status);
    }

    verbs_pair pair{dev};
    pcie_counts m_last = total();
};

TEST_P(verbs_pcie, writes_are_read_and_written)
{
    post_two(write(1, 8), write(2, 200));
    EXPECT_EQ(
        (pcie_counts{{"wqe_read", {2, 96, 2}}, /* ctrl, raddr, data each */
                     {"mmio_write", {1, 8, 1}},
                     {"wqe_wait", {1, 48, 1}}, /* the second WQE is read
                                                * meanwhile */
                     {"gather_read", {2, 208, 5}},
                     {"payload_write", {2, 208, 5}},
                     {"send_cqe_write", {1, 64, 1}}}),
        moved());
}

TEST_P(verbs_pcie, inline_data_is_read_with_its_wqe)
{
    struct ibv_qp_init_attr init = {};
    struct ibv_qp_attr attr;

    ASSERT_EQ(0, ibv_query_qp(pair.a.qp, &attr, IBV_QP_CAP, &init));
    ASSERT_GE(init.cap.max_inline_data, 24u);
    post_two(write(1, 24).flags(IBV_SEND_INLINE),
             write(2, 8).flags(IBV_SEND_INLINE | IBV_SEND_SIGNALED));
    EXPECT_EQ((pcie_counts{{"wqe_read", {2, 64 + 48, 2}},
                           {"mmio_write", {1, 8, 1}},
                           {"wqe_wait", {1, 64, 1}},
                           {"payload_write", {2, 32, 2}},
                           {"send_cqe_write", {1, 64, 1}}}),
              moved());
}

TEST_P(verbs_pcie, lines_are_those_that_are_touched)
{
    auto at = [&](uint64_t offset, uint32_t length) {
        return verbs_op(IBV_WR_RDMA_WRITE)
            .local((uintptr_t)src.addr + offset, length, src.mr->lkey)
            .local((uintptr_t)src.addr, 1, src.mr->lkey)
            .remote((uintptr_t)dst.addr + 63, dst.mr->rkey);
    };

    post_two(at(63, 2), at(64, 64));
    EXPECT_EQ((pcie_counts{{"wqe_read", {2, 128, 2}},
                           {"mmio_write", {1, 8, 1}},
                           {"wqe_wait", {1, 64, 1}},
                           {"gather_read", {4, 3 + 65, 3 + 2}},
                           {"payload_write", {2, 3 + 65, 2 + 2}},
                           {"send_cqe_write", {1, 64, 1}}}),
              moved());
}

/* Device memory: the processor has stored two lines, and nothing is read. What
 * is read into it, or written by a peer, does not leave the device. */
TEST_P(verbs_pcie, device_memory_is_not_read)
{
    struct ibv_alloc_dm_attr attr = {4096, 0, 0};
    struct ibv_dm *dm             = ibv_alloc_dm(dev.ctx, &attr);
    ASSERT_NE(nullptr, dm);
    struct ibv_mr *mr = ibv_reg_dm_mr(dev.pd, dm, 0, 4096,
                                      IBV_ACCESS_ZERO_BASED |
                                          IBV_ACCESS_LOCAL_WRITE |
                                          IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(nullptr, mr);
    verbs_op from =
        verbs_op(IBV_WR_RDMA_WRITE).local(60, 8, mr->lkey).remote(dst);
    verbs_op read = verbs_op(IBV_WR_RDMA_READ)
                        .local(0, 100, mr->lkey)
                        .remote((uintptr_t)dst.addr, dst.mr->rkey);

    post_two(from, read.flags(IBV_SEND_SIGNALED));
    EXPECT_EQ((pcie_counts{{"wqe_read", {2, 96, 2}},
                           {"mmio_write", {1 + 2, 8 + 128, 1 + 2}},
                           {"wqe_wait", {1, 48, 1}},
                           {"payload_write", {1, 8, 1}},
                           {"remote_read", {1, 100, 2}},
                           {"send_cqe_write", {1, 64, 1}}}),
              moved());

    post_two(write(1, 8), verbs_op(IBV_WR_RDMA_WRITE)
                              .local(src, 200)
                              .remote(0, mr->rkey)
                              .flags(IBV_SEND_SIGNALED));
    EXPECT_EQ((pcie_counts{{"wqe_read", {2, 96, 2}},
                           {"mmio_write", {1, 8, 1}},
                           {"wqe_wait", {1, 48, 1}},
                           {"gather_read", {2, 208, 5}},
                           {"payload_write", {1, 8, 1}},
                           {"send_cqe_write", {1, 64, 1}}}),
              moved());
    EXPECT_EQ(0, ibv_dereg_mr(mr));
    EXPECT_EQ(0, ibv_free_dm(dm));
}

TEST_P(verbs_pcie, reads_and_atomics_bring_results)
{
    verbs_op read = verbs_op(IBV_WR_RDMA_READ).local(src, 100).remote(dst);
    verbs_op add  = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);

    add.wr.wr.atomic.remote_addr = (uintptr_t)dst.addr;
    add.wr.wr.atomic.rkey        = dst.mr->rkey;
    post_two(read, add.flags(IBV_SEND_SIGNALED | IBV_SEND_FENCE));
    EXPECT_EQ((pcie_counts{{"wqe_read", {2, 48 + 64, 2}},
                           {"mmio_write", {1, 8, 1}},
                           {"wqe_wait", {1, 48, 1}},
                           {"result_write", {2, 108, 3}},
                           {"remote_read", {2, 108, 3}},
                           {"payload_write", {1, 8, 1}},
                           {"send_cqe_write", {1, 64, 1}}}),
              moved());
}

/* Pushed in words of 8 bytes, the first of which is like a doorbell, or of
 * 16 */
TEST_P(verbs_pcie, pushed_wqe_is_not_read)
{
    for (unsigned width : {8, 16}) {
        strict_bench bench(SERVICE_RC, {});
        raw_wqe wqe = bench.write();
        struct mlx5_err_cqe cqe;
        pcie_counts counts;

        bench.finish(wqe);
        bench.sq->write(wqe);
        wqe.bytes.resize(64);
        m_last = total();
        bench.sq->push(1, wqe.bytes, width);
        ASSERT_TRUE(bench.wait(*bench.send_cq, &cqe));
        counts = moved();
        EXPECT_EQ((pcie_count{1, 64, 1}), counts["mmio_write"]) << width;
        EXPECT_EQ(0u, counts.count("wqe_read")) << width;
        EXPECT_EQ(0u, counts.count("wqe_wait")) << width;
        EXPECT_EQ(1u, counts["gather_read"][0]) << width;
    }
}

/* Receives of 16 bytes, four to a line, and a doorbell record that announced
 * three of them */
TEST_P(verbs_pcie, receives_are_read_by_the_line)
{
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
    }
    post_two(send(1, 8), send(2, 8));
    ASSERT_EQ(0, verbs_recv(pair.b.qp, dst, 64));
    post_two(send(3, 8), send(4, 8));
    EXPECT_EQ(
        (pcie_counts{{"wqe_read", {4, 128, 4}},
                     {"mmio_write", {2, 16, 2}},
                     {"wqe_wait", {2, 64, 2}},
                     {"gather_read", {4, 32, 4}},
                     {"recv_wqe_read", {2, 128, 2}}, /* again for the fourth */
                     {"recv_dbrec_read", {2, 8, 2}},
                     {"payload_write", {4, 32, 4}},
                     {"send_cqe_write", {2, 128, 2}},
                     {"recv_cqe_write", {4, 256, 4}}}),
        moved());
}

/* The error does not make the device read the queue pair's own receives. */
TEST_P(verbs_pcie, failed_receive_of_an_srq_is_read_once)
{
    struct ibv_srq_init_attr init = {NULL, {16, 1, 0}};
    verbs_options options;

    options.srq = ibv_create_srq(dev.pd, &init);
    ASSERT_NE(nullptr, options.srq);
    {
        verbs_pair shared(dev, {}, options);

        m_last = total();
        ASSERT_EQ(0, verbs_recv(shared.b.qp, dst, 8));
        EXPECT_EQ(IBV_WC_REM_INV_REQ_ERR, run(shared.a, send(1, 64)));
        EXPECT_EQ(IBV_WC_LOC_LEN_ERR, verbs_wait(shared.b.recv_cq).status);
        EXPECT_EQ((pcie_count{1, 64, 1}), moved()["recv_wqe_read"]);
    }
    EXPECT_EQ(0, ibv_destroy_srq(options.srq));
}

TEST_P(verbs_pcie, queues_are_printed_when_they_go)
{
    hca_log_reader log;
    char line[128];

    {
        verbs_pair other(dev);

        snprintf(line, sizeof(line),
                 "pcie: qp 0x%x: payload_write: 1, 64 bytes,"
                 " 1 lines\n",
                 other.b.qp->qp_num);
        EXPECT_EQ(IBV_WC_SUCCESS, run(other.a, write()));
        EXPECT_EQ("", log.take());
    }
    EXPECT_NE(std::string::npos, log.take().find(line)) << line;
    EXPECT_EQ(1u, moved()["payload_write"][0]) << "it still counts";
}

INSTANTIATE_TEST_SUITE_P(pcie, verbs_pcie, testing::Values(0));

} /* namespace */
