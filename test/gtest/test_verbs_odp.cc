/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * On-demand paging: the time that an access to a missing page takes
 * (SOFTHCA_PAGE_FAULT), at both ends; prefetch; memory that is gone; fork. Part
 * of the program of test_verbs_faults.cc.
 */
#include "verbs_bench.h"

#include <memory>
#include <set>
#include <sys/mman.h>

namespace {

class verbs_odp : public verbs_test {
protected:
    static constexpr size_t page      = 4096;
    static constexpr size_t num_pages = 128;
    static constexpr uint64_t fault   = 100000; /* us, of the mode */

    verbs_odp()
    {
        m_mem = (uint8_t *)mmap(NULL, num_pages * page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(m_mem != MAP_FAILED);
        HCA_CHECK_CALL(madvise(m_mem, num_pages * page, MADV_NOHUGEPAGE) == 0);
        m_mr = ibv_reg_mr(dev.pd, m_mem, num_pages * page,
                          ACCESS_ALL | IBV_ACCESS_ON_DEMAND);
        HCA_CHECK_CALL(m_mr != NULL);
    }

    ~verbs_odp()
    {
        EXPECT_EQ(0, ibv_dereg_mr(m_mr));
        munmap(m_mem, num_pages * page);
    }

    uint8_t *at(unsigned index) { return m_mem + index * page; }

    verbs_op to(verbs_op op, unsigned index)
    {
        return op.remote((uintptr_t)at(index), m_mr->rkey);
    }

    verbs_op from(enum ibv_wr_opcode opcode, unsigned index, uint32_t length)
    {
        return verbs_op(opcode).local((uintptr_t)at(index), length, m_mr->lkey);
    }

    /* Runs the request. Returns true if it took the time of a fault. */
    bool faults(verbs_op op, verbs_ep &ep)
    {
        uint64_t start = time_now_us();

        EXPECT_EQ(IBV_WC_SUCCESS, run(ep, op));
        return time_now_us() - start >= fault;
    }

    bool faults(verbs_op op) { return faults(op, m_pair.a); }

    uint8_t *m_mem;
    struct ibv_mr *m_mr;
    verbs_pair m_pair{dev, {.rnr_retry = 7}};
};

TEST_P(verbs_odp, page_of_the_peer_is_waited_for_once)
{
    EXPECT_TRUE(faults(to(write(), 0)));
    EXPECT_FALSE(faults(to(write(), 0)));
    EXPECT_FALSE(faults(write())) << "is no region on demand";
    EXPECT_EQ(0x11, at(0)[63]);
    EXPECT_EQ(0, at(0)[64]);

    EXPECT_TRUE(faults(to(verbs_op(IBV_WR_RDMA_READ).local(src, 64), 1)));
    EXPECT_EQ(0, src.addr[0]);
    EXPECT_FALSE(faults(to(write(), 1)));

    verbs_op add = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);

    add.wr.wr.atomic = {(uintptr_t)at(2), 7, 0, m_mr->rkey};
    EXPECT_TRUE(faults(add));
    EXPECT_EQ(7, at(2)[0]);
    EXPECT_FALSE(faults(add));
    EXPECT_EQ(14, at(2)[0]);
}

/* The device faults in each page by itself, although the program has it. */
TEST_P(verbs_odp, page_of_the_program_is_waited_for_once)
{
    verbs_pair local(dev);

    memset(m_mem, 0x66, num_pages * page);
    EXPECT_TRUE(faults(to(write(), 0)));
    EXPECT_FALSE(faults(to(write(), 0)));
    EXPECT_EQ(0x66, at(0)[64]);
    EXPECT_TRUE(faults(from(IBV_WR_RDMA_WRITE, 1, 64).remote(dst), local.a));
    EXPECT_FALSE(faults(from(IBV_WR_RDMA_WRITE, 1, 64).remote(dst), local.a));
    EXPECT_EQ(0x66, dst.addr[63]);
    EXPECT_FALSE(faults(to(write(), 1))) << "either end faults it in";
}

/* Each region has translations of its own. */
TEST_P(verbs_odp, page_of_another_region_is_waited_for)
{
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, m_mem, num_pages * page,
                                   ACCESS_ALL | IBV_ACCESS_ON_DEMAND);

    ASSERT_NE(nullptr, mr);
    EXPECT_TRUE(faults(to(write(), 0)));
    EXPECT_TRUE(faults(write().remote((uintptr_t)at(0), mr->rkey)));
    EXPECT_FALSE(faults(write().remote((uintptr_t)at(0), mr->rkey)));
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_P(verbs_odp, changed_region_has_no_pages)
{
    EXPECT_TRUE(faults(to(write(), 3)));
    EXPECT_EQ(0, ibv_rereg_mr(m_mr, IBV_REREG_MR_CHANGE_TRANSLATION, dev.pd,
                              m_mem, num_pages * page, 0));
    EXPECT_TRUE(faults(to(write(), 3)));
    EXPECT_FALSE(faults(to(write(), 3)));
}

TEST_P(verbs_odp, page_of_the_sender_is_waited_for_once)
{
    verbs_pair pair(dev); /* no RNR here */

    EXPECT_TRUE(faults(from(IBV_WR_RDMA_WRITE, 0, 64).remote(dst), pair.a));
    EXPECT_EQ(0, dst.addr[63]);
    EXPECT_FALSE(faults(from(IBV_WR_RDMA_WRITE, 0, 64).remote(dst), pair.a));

    dst.addr[0] = 0x44;
    EXPECT_TRUE(faults(from(IBV_WR_RDMA_READ, 1, 8).remote(dst), pair.a));
    EXPECT_EQ(0x44, at(1)[0]);
}

/* All pages that a message needs are faulted in together. */
TEST_P(verbs_odp, long_message_waits_once)
{
    uint64_t start = time_now_us();

    EXPECT_TRUE(faults(to(from(IBV_WR_RDMA_WRITE, 0, 8 * page), 8)));
    EXPECT_LT(time_now_us() - start, 8 * fault);
    at(3)[1] = 0x77;
    EXPECT_FALSE(faults(to(from(IBV_WR_RDMA_WRITE, 0, 8 * page), 8)));
    EXPECT_EQ(0x77, at(11)[1]);

    EXPECT_TRUE(faults(to(from(IBV_WR_RDMA_WRITE, 20, page + 1), 8)));
}

TEST_P(verbs_odp, dropped_page_is_missing_again)
{
    EXPECT_TRUE(faults(to(write(), 5)));
    ASSERT_EQ(0, madvise(at(5), page, MADV_DONTNEED));
    EXPECT_TRUE(faults(to(write(), 5)));
    EXPECT_EQ(0x11, at(5)[0]);

    /* without swap space the kernel keeps the page */
    ASSERT_EQ(0, madvise(at(5), page, MADV_PAGEOUT));
    EXPECT_EQ(IBV_WC_SUCCESS,
              run(m_pair.a, to(verbs_op(IBV_WR_RDMA_READ).local(dst, 64), 5)));
    EXPECT_EQ(0x11, dst.addr[63]);
}

/* Pages of a file leave the page table without swap space. */
TEST_P(verbs_odp, evicted_page_has_its_data)
{
    char path[] = "/tmp/dcx-odp-XXXXXX";
    int fd      = mkstemp(path);
    uint8_t *file;

    ASSERT_EQ(0, unlink(path));
    ASSERT_EQ(0, ftruncate(fd, page));
    file = (uint8_t *)mmap(m_mem, page, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_FIXED, fd, 0);
    ASSERT_EQ(m_mem, file);
    EXPECT_TRUE(faults(to(write(), 0)));
    for (unsigned i = 0; i < 4; i++) {
        ASSERT_EQ(0, fsync(fd));
        ASSERT_EQ(0, madvise(file, page, MADV_PAGEOUT));
        file[100 + i] = i;
        ASSERT_EQ(0, fsync(fd));
        ASSERT_EQ(0, madvise(file, page, MADV_DONTNEED));
        EXPECT_TRUE(faults(to(verbs_op(IBV_WR_RDMA_READ).local(dst, 200), 0)));
        EXPECT_EQ(0x11, dst.addr[63]);
        EXPECT_EQ(i, dst.addr[100 + i]);
    }
    close(fd);
}

TEST_P(verbs_odp, prefetched_pages_are_there)
{
    struct ibv_sge sge = {(uintptr_t)at(0), num_pages * page, m_mr->lkey};

    ASSERT_EQ(0, ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                               IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
    for (unsigned i = 0; i < num_pages; i += 7) {
        EXPECT_FALSE(faults(to(write(), i))) << i;
    }
    EXPECT_FALSE(faults(to(from(IBV_WR_RDMA_WRITE, 0, 16 * page), 32)));
}

/* NO_FAULT takes the pages that the program has, and touches no other. */
TEST_P(verbs_odp, prefetch_without_faults_takes_pages_that_are_there)
{
    struct ibv_sge sge = {(uintptr_t)at(0), 3 * page, m_mr->lkey};

    at(0)[0] = 1;
    ASSERT_EQ(0, ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
                               IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
    at(2)[0] = 1; /* the program's from now on, not the device's */
    EXPECT_FALSE(faults(to(write(), 0)));
    EXPECT_TRUE(faults(to(write(), 1)));
    EXPECT_TRUE(faults(to(write(), 2)));
}

TEST_P(verbs_odp, peer_that_does_not_retry_gets_an_error)
{
    verbs_pair pair(dev, {.rnr_retry = 0});

    EXPECT_EQ(IBV_WC_RNR_RETRY_EXC_ERR, run(pair.a, to(write(), 0)));
    EXPECT_EQ(0, at(0)[0]);
}

TEST_P(verbs_odp, memory_that_is_gone_is_an_error)
{
    verbs_pair local(dev), remote(dev, {.rnr_retry = 7});

    ASSERT_EQ(0, mprotect(at(0), page, PROT_NONE));
    EXPECT_EQ(IBV_WC_REM_OP_ERR,
              run(local.a, from(IBV_WR_RDMA_WRITE, 0, 64).remote(dst)));
    EXPECT_EQ(0x22, dst.addr[0]);
    EXPECT_EQ(IBV_WC_REM_OP_ERR, run(remote.a, to(write(), 0)));
}

/* The receive stays in its queue meanwhile. */
TEST_P(verbs_odp, buffer_of_a_receive_is_waited_for)
{
    struct ibv_sge sge    = {(uintptr_t)at(4), 64, m_mr->lkey};
    struct ibv_recv_wr wr = {}, *bad;

    wr.wr_id   = 9;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (bool is_missing : {true, false}) {
        ASSERT_EQ(0, ibv_post_recv(m_pair.b.qp, &wr, &bad));
        EXPECT_EQ(is_missing, faults(send()));
        verbs_expect_wcs(m_pair.b.recv_cq, IBV_WC_SUCCESS, 9, 9);
        EXPECT_EQ(0x11, at(4)[63]);
    }
}

/* A receive of an SRQ goes back, and another message does not lose it. */
TEST_P(verbs_odp, buffer_of_a_shared_receive_is_waited_for)
{
    struct ibv_srq_init_attr attr = {NULL, {16, 1, 0}};
    struct ibv_srq *srq           = ibv_create_srq(dev.pd, &attr);
    struct ibv_sge sge            = {(uintptr_t)at(4), 64, m_mr->lkey};
    struct ibv_recv_wr wr         = {}, *bad;

    ASSERT_NE(nullptr, srq);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    for (unsigned i = 0; i < 40; i++) { /* round the queue */
        verbs_pair pair(dev, {.srq = srq, .rnr_retry = 7});

        wr.wr_id = i;
        ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
        EXPECT_EQ(i == 0, faults(send(), pair.a));
        verbs_expect_wcs(pair.b.recv_cq, IBV_WC_SUCCESS, i, i);
        EXPECT_EQ(0x11, at(4)[63]);
        memset(at(4), 0, 64);
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

TEST_P(verbs_odp, shared_receives_that_wait_are_all_used)
{
    struct ibv_srq_init_attr attr = {NULL, {32, 1, 0}};
    struct ibv_srq *srq           = ibv_create_srq(dev.pd, &attr);
    std::set<uint64_t> ids;

    ASSERT_NE(nullptr, srq);
    {
        std::vector<std::unique_ptr<verbs_pair>> pairs;

        /* more than the SRQ takes back */
        for (unsigned i = 0; i < 20; i++) {
            struct ibv_sge sge    = {(uintptr_t)at(i), 64, m_mr->lkey};
            struct ibv_recv_wr wr = {i, NULL, &sge, 1}, *bad;

            ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
            pairs.emplace_back(
                new verbs_pair(dev, {.srq = srq, .rnr_retry = 7}));
        }
        for (auto &pair : pairs) {
            ASSERT_EQ(0, send().post(pair->a.qp));
        }
        for (auto &pair : pairs) {
            struct ibv_wc wc = verbs_wait(pair->b.recv_cq);

            EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
            EXPECT_TRUE(ids.insert(wc.wr_id).second);
            EXPECT_EQ(0x11, at(wc.wr_id)[63]);
            EXPECT_EQ(IBV_WC_SUCCESS, verbs_wait(pair->a.send_cq).status);
        }
    }
    EXPECT_EQ(20u, ids.size());
    EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* The message is executed once, with the key that it invalidates. */
TEST_P(verbs_odp, message_that_invalidates_waits_for_its_buffer)
{
    struct ibv_mw *mw     = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
    struct ibv_sge sge    = {(uintptr_t)at(4), 64, m_mr->lkey};
    struct ibv_recv_wr wr = {1, NULL, &sge, 1}, *bad;
    verbs_op bind(IBV_WR_BIND_MW), op = send();

    ASSERT_NE(nullptr, mw);
    bind.wr.bind_mw.mw        = mw;
    bind.wr.bind_mw.rkey      = ibv_inc_rkey(mw->rkey);
    bind.wr.bind_mw.bind_info = {dst.mr, (uintptr_t)dst.addr, 64,
                                 IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(IBV_WC_SUCCESS, run(m_pair.b, bind));
    ASSERT_EQ(0, ibv_post_recv(m_pair.b.qp, &wr, &bad));
    op.wr.opcode          = IBV_WR_SEND_WITH_INV;
    op.wr.invalidate_rkey = bind.wr.bind_mw.rkey;
    EXPECT_TRUE(faults(op));
    EXPECT_TRUE(verbs_wait(m_pair.b.recv_cq).wc_flags & IBV_WC_WITH_INV);
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
              write_to((uintptr_t)dst.addr, op.wr.invalidate_rkey));
    EXPECT_EQ(0, ibv_dealloc_mw(mw));
}

/* --- services that cannot page: uc_odp_caps, ud_odp_caps ------------------ */

TEST_P(verbs_odp, unreliable_connection_refuses_it)
{
    verbs_ep a(dev, {.type = IBV_QPT_UC}), b(dev, {.type = IBV_QPT_UC});

    for (verbs_ep *ep : {&a, &b}) {
        auto attr = ep->attr(((ep == &a) ? b : a).qp->qp_num);

        hca_modify(ep->qp, attr, IBV_QPS_INIT,
                   IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        hca_modify(ep->qp, attr, IBV_QPS_RTR,
                   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN);
        hca_modify(ep->qp, attr, IBV_QPS_RTS, IBV_QP_SQ_PSN);
    }
    EXPECT_EQ(IBV_WC_SUCCESS, run(a, write()));
    EXPECT_EQ(0x11, dst.addr[63]);
    EXPECT_EQ(IBV_WC_SUCCESS, run(a, to(write(), 0)));
    EXPECT_EQ(0, at(0)[0]) << "was dropped";
    EXPECT_EQ(IBV_WC_LOC_PROT_ERR,
              run(a, from(IBV_WR_RDMA_WRITE, 0, 64).remote(dst)));
}

TEST_P(verbs_odp, datagrams_can_only_be_sent_from_it)
{
    struct ibv_sge sge    = {(uintptr_t)at(0), 256, m_mr->lkey};
    struct ibv_recv_wr wr = {5, NULL, &sge, 1}, *bad;
    verbs_datagrams pair(dev);
    verbs_op op = pair.to_b(from(IBV_WR_SEND, 2, 64));

    EXPECT_TRUE(faults(op, pair.a));
    ASSERT_EQ(0, ibv_post_recv(pair.b.qp, &wr, &bad));
    EXPECT_EQ(IBV_WC_SUCCESS, run(pair.a, op));
    EXPECT_EQ(IBV_WC_LOC_PROT_ERR, verbs_wait(pair.b.recv_cq).status);
}

/* Later requests of the queue keep their order behind the one that waits. */
TEST_P(verbs_odp, queue_keeps_its_order)
{
    uint32_t *word = (uint32_t *)at(6);

    for (uint32_t i = 1; i <= 8; i++) {
        ((uint32_t *)src.addr)[i] = i;
        verbs_op op               = verbs_op(IBV_WR_RDMA_WRITE, i)
                          .local((uintptr_t) & ((uint32_t *)src.addr)[i], 4,
                                 src.mr->lkey);

        ASSERT_EQ(0, to(op, 6).post(m_pair.a.qp));
    }
    verbs_expect_wcs(m_pair.a.send_cq, IBV_WC_SUCCESS, 1, 8);
    EXPECT_EQ(8u, *word);
}

/* The child has a copy; the device writes to the parent's page. */
TEST_P(verbs_odp, fork_leaves_the_region_to_the_parent)
{
    int go[2], status;
    char byte = 0;
    pid_t pid;

    EXPECT_TRUE(faults(to(write(), 7)));
    ASSERT_EQ(0, pipe(go));
    pid = fork();
    if (pid == 0) {
        bool same = (::read(go[0], &byte, 1) == 1) && (at(7)[0] == 0x11);

        memset(at(7), 0x33, 64);
        _exit(same ? 0 : 1);
    }
    memset(src.addr, 0x55, 64);
    EXPECT_EQ(IBV_WC_SUCCESS, run(m_pair.a, to(write(), 7)));
    EXPECT_EQ(1, ::write(go[1], &byte, 1));
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status) << "the child sees its own copy";
    EXPECT_EQ(0x55, at(7)[0]);
    close(go[0]);
    close(go[1]);
}

INSTANTIATE_TEST_SUITE_P(odp, verbs_odp, testing::Values(0));

/* --- a device that has no atomics on demand ------------------------------- */

class verbs_odp_lacks : public verbs_odp {};

TEST_P(verbs_odp_lacks, atomics_are_refused)
{
    verbs_op add = verbs_op(IBV_WR_ATOMIC_FETCH_AND_ADD).local(src, 8);
    struct mlx5dv_context dv     = {};
    struct ibv_device_attr_ex ex = {};

    ASSERT_EQ(0, ibv_query_device_ex(dev.ctx, NULL, &ex));
    EXPECT_EQ((uint32_t)IBV_ODP_SUPPORT_SRQ_RECV,
              ex.odp_caps.per_transport_caps.rc_odp_caps &
                  (IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV));
    EXPECT_EQ(0u, ex.odp_caps.per_transport_caps.uc_odp_caps);
    dv.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS;
    ASSERT_EQ(0, mlx5dv_query_device(dev.ctx, &dv));
    EXPECT_EQ((uint32_t)(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE |
                         IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV),
              dv.dc_odp_caps);

    EXPECT_EQ(IBV_WC_SUCCESS, run(m_pair.a, to(write(), 0)));
    add.wr.wr.atomic = {(uintptr_t)at(2), 7, 0, m_mr->rkey};
    EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, run(m_pair.a, add));
    EXPECT_EQ(0, at(2)[0]);
}

INSTANTIATE_TEST_SUITE_P(odp_lacks, verbs_odp_lacks, testing::Values(0));

} /* namespace */
