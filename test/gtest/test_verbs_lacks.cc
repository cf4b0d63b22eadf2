/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A device with fewer features (SOFTHCA_LACKS, SOFTHCA_LIMITS), and memory that
 * counts as locked (SOFTHCA_MEMLOCK): missing features are neither reported nor
 * available, with the errors of the kernel's mlx5_ib.
 */
#include "privileges.h"
#include "tm_bench.h"

#include <fcntl.h>
#include <sys/resource.h>

namespace {

class verbs_limits : public testing::TestWithParam<int> {
protected:
    struct ibv_qp *make_qp(struct ibv_cq *cq, uint32_t max_wr)
    {
        struct ibv_qp_init_attr attr = {};

        attr.send_cq = attr.recv_cq = cq;
        attr.qp_type                = IBV_QPT_RC;
        attr.cap                    = {max_wr, 1, 1, 1, 0};
        return ibv_create_qp(m_dev.pd, &attr);
    }

    hca_device m_dev;
};

TEST_P(verbs_limits, are_reported_and_hold)
{
    struct ibv_device_attr attr;
    struct ibv_srq_init_attr srq_attr = {NULL, {100, 1, 0}};
    struct ibv_qp *qps[2];

    ASSERT_EQ(0, ibv_query_device(m_dev.ctx, &attr));
    EXPECT_EQ(2, attr.max_qp);
    EXPECT_EQ(64, attr.max_qp_wr);
    EXPECT_EQ(511, attr.max_cqe);
    EXPECT_EQ(127, attr.max_srq_wr);

    struct ibv_cq *cq = ibv_create_cq(m_dev.ctx, 511, NULL, NULL, 0);
    ASSERT_NE(nullptr, cq);
    EXPECT_EQ(nullptr, ibv_create_cq(m_dev.ctx, 512, NULL, NULL, 0));
    EXPECT_NE(0, ibv_resize_cq(cq, 512));
    EXPECT_EQ(nullptr, make_qp(cq, 65));
    for (auto &qp : qps) {
        qp = make_qp(cq, 8);
        ASSERT_NE(nullptr, qp);
    }
    EXPECT_EQ(nullptr, make_qp(cq, 1));
    EXPECT_EQ(0, ibv_destroy_qp(qps[0]));
    qps[0] = make_qp(cq, 1);
    EXPECT_NE(nullptr, qps[0]) << "one of two is free again";
    for (auto &qp : qps) {
        EXPECT_EQ(0, ibv_destroy_qp(qp));
    }
    EXPECT_EQ(0, ibv_destroy_cq(cq));

    struct ibv_srq *srq = ibv_create_srq(m_dev.pd, &srq_attr);
    ASSERT_NE(nullptr, srq);
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    srq_attr.attr.max_wr = 200;
    EXPECT_EQ(nullptr, ibv_create_srq(m_dev.pd, &srq_attr));
}

TEST_P(verbs_limits, of_tags)
{
    struct ibv_device_attr_ex attr = {};
    struct ibv_cq_ex *cq           = tm_srq::create_cq(m_dev, {});

    ASSERT_EQ(0, ibv_query_device_ex(m_dev.ctx, NULL, &attr));
    EXPECT_EQ(63u, attr.tm_caps.max_num_tags);
    EXPECT_EQ(nullptr, tm_srq::create(m_dev, cq, {.tags = 64, .max_ops = 8}));
    struct ibv_srq *srq = tm_srq::create(m_dev, cq, {.tags = 63, .max_ops = 8});
    ASSERT_NE(nullptr, srq);
    EXPECT_EQ(0, ibv_destroy_srq(srq));
    EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

TEST_P(verbs_limits, of_device_memory)
{
    struct ibv_device_attr_ex attr  = {};
    struct ibv_alloc_dm_attr memory = {8193, 0, 0};

    ASSERT_EQ(0, ibv_query_device_ex(m_dev.ctx, NULL, &attr));
    EXPECT_EQ(8192u, attr.max_dm_size);
    EXPECT_EQ(nullptr, ibv_alloc_dm(m_dev.ctx, &memory));
    memory.length     = 4097; /* two pages */
    struct ibv_dm *dm = ibv_alloc_dm(m_dev.ctx, &memory);
    ASSERT_NE(nullptr, dm);
    memory.length = 1;
    EXPECT_EQ(nullptr, ibv_alloc_dm(m_dev.ctx, &memory));
    EXPECT_EQ(ENOMEM, errno);
    EXPECT_EQ(0, ibv_free_dm(dm));
}

INSTANTIATE_TEST_SUITE_P(limits, verbs_limits, testing::Values(0));

/* --- missing features ----------------------------------------------------- */

class verbs_lacks : public testing::TestWithParam<int> {};

TEST_P(verbs_lacks, devx_and_dc)
{
    struct ibv_device **list        = ibv_get_device_list(NULL);
    struct mlx5dv_context_attr devx = {};
    struct ibv_qp_init_attr_ex attr = {};
    struct mlx5dv_qp_init_attr dv   = {};

    devx.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    EXPECT_EQ(nullptr, mlx5dv_open_device(list[0], &devx));
    EXPECT_EQ(EINVAL, errno);

    struct ibv_context *ctx = ibv_open_device(list[0]);
    ASSERT_NE(nullptr, ctx);
    ibv_free_device_list(list);
    attr.pd      = ibv_alloc_pd(ctx);
    attr.send_cq = attr.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    attr.qp_type                = IBV_QPT_DRIVER;
    attr.comp_mask              = IBV_QP_INIT_ATTR_PD;
    attr.cap                    = {1, 0, 1, 0, 0};
    dv.comp_mask                = MLX5DV_QP_INIT_ATTR_MASK_DC;
    dv.dc_init_attr.dc_type     = MLX5DV_DCTYPE_DCI;
    EXPECT_EQ(nullptr, mlx5dv_create_qp(ctx, &attr, &dv));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_EQ(0, ibv_destroy_cq(attr.send_cq));
    EXPECT_EQ(0, ibv_dealloc_pd(attr.pd));
    EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST_P(verbs_lacks, tag_matching)
{
    struct ibv_device **list       = ibv_get_device_list(NULL);
    struct ibv_context *ctx        = ibv_open_device(list[0]);
    struct ibv_device_attr_ex attr = {};

    ibv_free_device_list(list);
    ASSERT_NE(nullptr, ctx);
    ASSERT_EQ(0, ibv_query_device_ex(ctx, NULL, &attr));
    EXPECT_EQ(0u, attr.tm_caps.max_num_tags);
    EXPECT_EQ(0u, attr.tm_caps.max_ops);

    struct ibv_cq_init_attr_ex cq_attr   = {};
    struct ibv_cq_ex *cq                 = NULL;
    struct ibv_srq_init_attr_ex srq_attr = {};
    cq_attr.cqe                          = 15;
    cq                                   = ibv_create_cq_ex(ctx, &cq_attr);
    srq_attr.attr                        = {15, 1, 0};
    srq_attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                         IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
    srq_attr.srq_type = IBV_SRQT_TM;
    srq_attr.pd       = ibv_alloc_pd(ctx);
    srq_attr.cq       = ibv_cq_ex_to_cq(cq);
    srq_attr.tm_cap   = {1, 1};
    EXPECT_EQ(nullptr, ibv_create_srq_ex(ctx, &srq_attr));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_EQ(0, ibv_destroy_cq(srq_attr.cq));
    EXPECT_EQ(0, ibv_dealloc_pd(srq_attr.pd));
    EXPECT_EQ(0, ibv_close_device(ctx));
}

TEST_P(verbs_lacks, device_memory)
{
    struct ibv_device **list        = ibv_get_device_list(NULL);
    struct ibv_context *ctx         = ibv_open_device(list[0]);
    struct ibv_device_attr_ex attr  = {};
    struct ibv_alloc_dm_attr memory = {64, 0, 0};

    ibv_free_device_list(list);
    ASSERT_NE(nullptr, ctx);
    ASSERT_EQ(0, ibv_query_device_ex(ctx, NULL, &attr));
    EXPECT_EQ(0u, attr.max_dm_size);
    EXPECT_EQ(nullptr, ibv_alloc_dm(ctx, &memory));
    EXPECT_EQ(0, ibv_close_device(ctx));
}

/* Fails with EOPNOTSUPP, as the kernel's ib_check_mr_access() does for a device
 * without on-demand paging. */
TEST_P(verbs_lacks, on_demand_paging)
{
    struct ibv_device **list       = ibv_get_device_list(NULL);
    struct ibv_context *ctx        = ibv_open_device(list[0]);
    struct ibv_device_attr_ex attr = {};
    struct ibv_pd *pd;

    ibv_free_device_list(list);
    ASSERT_NE(nullptr, ctx);
    ASSERT_EQ(0, ibv_query_device_ex(ctx, NULL, &attr));
    EXPECT_EQ(0u, attr.odp_caps.general_caps);
    EXPECT_EQ(0u, attr.odp_caps.per_transport_caps.rc_odp_caps);
    pd = ibv_alloc_pd(ctx);
    EXPECT_EQ(nullptr,
              ibv_reg_mr(pd, &attr, sizeof(attr), IBV_ACCESS_ON_DEMAND));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_EQ(0, ibv_dealloc_pd(pd));
    EXPECT_EQ(0, ibv_close_device(ctx));
}

/* A thread domain needs a page with BlueFlame registers. */
TEST_P(verbs_lacks, write_combining)
{
    struct ibv_device **list     = ibv_get_device_list(NULL);
    struct ibv_context *ctx      = ibv_open_device(list[0]);
    struct ibv_td_init_attr attr = {};

    ibv_free_device_list(list);
    ASSERT_NE(nullptr, ctx);
    errno = 0;
    EXPECT_EQ(nullptr, ibv_alloc_td(ctx, &attr));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_EQ(0, ibv_close_device(ctx));
}

/* The port has a link, but no subnet manager has configured it. */
TEST_P(verbs_lacks, subnet_manager)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx  = ibv_open_device(list[0]);
    struct ibv_port_attr attr;

    ibv_free_device_list(list);
    ASSERT_EQ(0, ibv_query_port(ctx, 1, &attr));
    EXPECT_EQ(IBV_PORT_INIT, attr.state);
    EXPECT_EQ(5, attr.phys_state);
    EXPECT_EQ(0, attr.sm_lid);
    EXPECT_EQ(0, ibv_close_device(ctx));
}

INSTANTIATE_TEST_SUITE_P(lacks, verbs_lacks, testing::Values(0));

/* --- locked memory -------------------------------------------------------- */

class verbs_memlock : public verbs_test {
protected:
    static constexpr size_t page = 4096;

    verbs_memlock()
    {
        set_limit(40 * page); /* src and dst have 8 pages */
        m_mem = (char *)mmap(NULL, 64 * page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        HCA_CHECK_CALL(m_mem != MAP_FAILED);
        set_privileged(false);
    }

    ~verbs_memlock()
    {
        munmap(m_mem, 64 * page);
        set_privileged(true);
    }

    static void set_limit(size_t bytes)
    {
        struct rlimit limit = {};

        HCA_CHECK_CALL(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
        limit.rlim_cur = bytes;
        HCA_CHECK_CALL(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    }

    struct ibv_mr *reg(size_t first, size_t length, int access = 0)
    {
        return ibv_reg_mr(dev.pd, m_mem + first, length,
                          access | IBV_ACCESS_LOCAL_WRITE);
    }

    void expect_full()
    {
        EXPECT_EQ(nullptr, reg(0, 1));
        EXPECT_EQ(ENOMEM, errno);
    }

    char *m_mem;
};

TEST_P(verbs_memlock, is_counted_in_pages)
{
    struct ibv_mr *one, *all;

    one = reg(page - 1, 2); /* in two pages */
    ASSERT_NE(nullptr, one);
    EXPECT_EQ(nullptr, reg(0, 31 * page));
    EXPECT_EQ(ENOMEM, errno);
    all = reg(0, 30 * page);
    ASSERT_NE(nullptr, all);
    expect_full();

    struct ibv_mr *odp = reg(0, page, IBV_ACCESS_ON_DEMAND);
    EXPECT_NE(nullptr, odp) << "an on-demand region is not locked";
    EXPECT_EQ(0, ibv_dereg_mr(odp));
    EXPECT_EQ(0, ibv_dereg_mr(one));
    one = reg(0, 2 * page);
    EXPECT_NE(nullptr, one) << "two pages are free again";
    expect_full();

    EXPECT_EQ(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                              IBV_ACCESS_REMOTE_READ));
    EXPECT_NE(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m_mem,
                              page, 0))
        << "new pages are counted before the old ones are released";
    EXPECT_EQ(0, ibv_dereg_mr(all));
    EXPECT_EQ(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, m_mem,
                              4 * page, 0));
    all = reg(0, 28 * page);
    EXPECT_NE(nullptr, all);
    expect_full();

    EXPECT_EQ(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                              IBV_ACCESS_ON_DEMAND));
    odp = reg(0, 4 * page);
    ASSERT_NE(nullptr, odp) << "on-demand pages still count as locked";
    EXPECT_NE(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                              IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(0, ibv_dereg_mr(odp));
    EXPECT_EQ(0, ibv_rereg_mr(one, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                              IBV_ACCESS_LOCAL_WRITE));
    expect_full();
    EXPECT_EQ(0, ibv_dereg_mr(one));
    EXPECT_EQ(0, ibv_dereg_mr(all));
}

TEST_P(verbs_memlock, is_counted_for_umems)
{
    struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg(dev.ctx, m_mem,
                                                         32 * page, 0);

    ASSERT_NE(nullptr, umem);
    expect_full();
    EXPECT_EQ(0, mlx5dv_devx_umem_dereg(umem));
    EXPECT_EQ(nullptr, mlx5dv_devx_umem_reg(dev.ctx, m_mem, 33 * page, 0));
    struct ibv_mr *mr = reg(0, 32 * page);
    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* Fails with EPERM, not ENOMEM, if the limit is 0, as the kernel's
 * can_do_mlock() requires. */
TEST_P(verbs_memlock, is_not_permitted_without_any)
{
    set_limit(1);
    expect_full();
    set_limit(0);
    EXPECT_EQ(nullptr, reg(0, 1));
    EXPECT_EQ(EPERM, errno);
    EXPECT_EQ(nullptr, mlx5dv_devx_umem_reg(dev.ctx, m_mem, page, 0));
    EXPECT_EQ(EPERM, errno);

    struct ibv_mr *odp = reg(0, page, IBV_ACCESS_ON_DEMAND);
    EXPECT_NE(nullptr, odp) << "is not locked";
    EXPECT_EQ(0, ibv_dereg_mr(odp));
}

TEST_P(verbs_memlock, is_free_to_the_privileged)
{
    set_privileged(true);
    struct ibv_mr *mr = reg(0, 64 * page);
    if ((mr == NULL) && (geteuid() != 0)) {
        GTEST_SKIP() << "no CAP_IPC_LOCK";
    }
    ASSERT_NE(nullptr, mr);
    EXPECT_EQ(0, ibv_dereg_mr(mr));
}

INSTANTIATE_TEST_SUITE_P(memlock, verbs_memlock, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(
        argc, argv,
        {
            {"limits",
             {{"SOFTHCA_LIMITS",
               "max_qp=2,max_qp_wr=64,max_cqe=511,max_srq_wr=127,"
               "max_num_tags=63,max_dm_size=8192"}}},
            {"lacks", {{"SOFTHCA_LACKS", "dc,devx,dm,sm,tm,wc,odp"}}},
            {"memlock", {{"SOFTHCA_MEMLOCK", "y"}}},
        });
}
