/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CQE compression, read as a driver does: a title, then mini CQEs. Part of the
 * program of test_devx_objects.cc.
 */
#include "devx_bench.h"

#include <climits>
#include <common/prm.h>

namespace {

struct ibv_cq *create_cq(struct ibv_context *ctx, unsigned cqe,
                         uint8_t format    = MLX5DV_CQE_RES_FORMAT_HASH,
                         uint16_t cqe_size = 64)
{
    struct ibv_cq_init_attr_ex attr = {};
    struct mlx5dv_cq_init_attr dv   = {};
    struct ibv_cq_ex *cq;

    attr.cqe     = cqe;
    dv.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE |
                   MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    dv.cqe_comp_res_format = format;
    dv.cqe_size            = cqe_size;
    cq                     = mlx5dv_create_cq(ctx, &attr, &dv);
    return (cq == NULL) ? NULL : ibv_cq_ex_to_cq(cq);
}

/* A queue whose entries the test reads itself */
class mini_cq {
public:
    /* A completion, and the number of completions in its session */
    struct completion {
        uint8_t opcode, wqe_opcode;
        uint16_t wqe_counter;
        uint32_t byte_cnt, of;
    };

    mini_cq(const hca_device &dev, unsigned cqe) : cq(create_cq(dev.ctx, cqe))
    {
        struct mlx5dv_obj obj = {};

        HCA_CHECK_CALL(cq != NULL);
        obj.cq.in  = cq;
        obj.cq.out = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) == 0);
    }

    ~mini_cq() { EXPECT_EQ(0, ibv_destroy_cq(cq)); }

    std::vector<completion> poll()
    {
        const uint8_t *at = entry(m_ci);
        std::vector<completion> got;
        uint8_t op_own = __atomic_load_n(at + 63, __ATOMIC_ACQUIRE);
        struct mlx5_cqe64 title;

        if (((op_own >> 4) == MLX5_CQE_INVALID) ||
            ((op_own & 1) != !!(m_ci & m_dv.cqe_cnt))) {
            return got;
        }
        memcpy(&title, at, sizeof(title));
        expand(title, &got);
        for (unsigned i = 0; i < got.size(); i++) { /* bytes of the mini CQEs */
            entry(m_ci + i)[63] = MLX5_CQE_INVALID << 4;
        }
        m_ci += got.size();
        __atomic_store_n(&m_dv.dbrec[0], htobe32(m_ci & 0xffffff),
                         __ATOMIC_RELEASE);
        return got;
    }

    struct ibv_cq *cq;

private:
    uint8_t *entry(uint32_t i) const
    {
        return (uint8_t *)m_dv.buf + (i & (m_dv.cqe_cnt - 1)) * 64;
    }

    void expand(const struct mlx5_cqe64 &title, std::vector<completion> *got)
    {
        const bool is_send   = (title.op_own >> 4) == MLX5_CQE_REQ;
        const uint32_t sop   = be32toh(title.sop_drop_qpn);
        const uint32_t count = be32toh(title.byte_cnt);
        completion one = {(uint8_t)(title.op_own >> 4), (uint8_t)(sop >> 24),
                          be16toh(title.wqe_counter), count, 1};

        if ((title.op_own & PRM_CQE_FORMAT) != PRM_CQE_FORMAT_COMPRESSED) {
            got->push_back(one);
            return;
        }
        ASSERT_GT(count, 1u);
        ASSERT_LE(count, m_dv.cqe_cnt);
        for (unsigned i = 0; i < count; i++) {
            const struct prm_mini_cqe *minis =
                (const struct prm_mini_cqe *)entry(m_ci +
                                                   ((i < 8) ? 1 : i / 8 * 8));
            const struct prm_mini_cqe &mini = minis[i % 8];

            one.of       = count;
            one.byte_cnt = be32toh(mini.byte_cnt);
            if (is_send) {
                one.wqe_counter = be16toh(mini.send.wqe_counter);
                one.wqe_opcode  = mini.send.opcode;
            } else {
                one.wqe_counter = be16toh(title.wqe_counter) + i;
                EXPECT_EQ(0u, mini.rx_hash_result);
            }
            got->push_back(one);
        }
    }

    struct mlx5dv_cq m_dv = {};
    uint32_t m_ci         = 0;
};

class devx_minis : public verbs_test {
protected:
    /* Posts @count signaled writes of 1, 2, ... bytes, or sends, by one
     * doorbell. */
    void post(verbs_ep &ep, unsigned count, bool is_send = false,
              unsigned solicited_at = UINT_MAX)
    {
        std::vector<verbs_op> ops;

        for (unsigned i = 0; i < count; i++) {
            ops.push_back(is_send ? send(i, i + 1) : write(i, i + 1));
            if (i == solicited_at) {
                ops.back().flags(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
            }
        }
        for (unsigned i = 0; i < count; i++) {
            ops[i].attach();
            ops[i].wr.next = (i + 1 < count) ? &ops[i + 1].wr : NULL;
        }
        EXPECT_EQ(0, ops[0].post(ep.qp));
    }
};

TEST_P(devx_minis, stand_for_what_one_doorbell_completes)
{
    mini_cq cq(dev, 31);
    /* libmlx5, which polls nothing here, needs room for all */
    verbs_pair pair(dev, {.send_cq = cq.cq, .send_wr = 128});
    uint16_t counter = 0;

    /* also across the end of the ring, with 1 to 4 entries of mini CQEs */
    for (unsigned count : {1, 2, 7, 8, 9, 17, 32, 25, 16, 3}) {
        auto got = (post(pair.a, count), cq.poll());

        ASSERT_EQ(count, got.size());
        for (const auto &one : got) {
            EXPECT_EQ(MLX5_CQE_REQ, one.opcode);
            EXPECT_EQ(MLX5_OPCODE_RDMA_WRITE, one.wqe_opcode);
            EXPECT_EQ(counter++, one.wqe_counter);
            EXPECT_EQ(count, one.of);
            EXPECT_EQ(1u + (&one - &got[0]), one.byte_cnt);
        }
        EXPECT_TRUE(cq.poll().empty());
    }
}

TEST_P(devx_minis, of_receives_count_on_from_the_title)
{
    mini_cq cq(dev, 31);
    struct ibv_qp_init_attr attr = {};
    verbs_ep from(dev, {.rnr_retry = 7});
    struct ibv_qp *to;

    attr.send_cq = attr.recv_cq = cq.cq;
    attr.qp_type                = IBV_QPT_RC;
    attr.cap                    = {1, 16, 1, 1, 0};
    to                          = ibv_create_qp(dev.pd, &attr);
    ASSERT_NE(nullptr, to);
    hca_modify(to, hca_qp_attr(dev, from.qp->qp_num), IBV_QPS_INIT,
               IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    hca_modify(to, hca_qp_attr(dev, from.qp->qp_num), IBV_QPS_RTR,
               verbs_ep::rtr_mask);
    from.connect(from.attr(to->qp_num));
    for (unsigned i = 0; i < 10; i++) {
        ASSERT_EQ(0, verbs_recv(to, dst, 64));
    }
    post(from, 10, true, 6);

    std::vector<mini_cq::completion> all;
    std::vector<unsigned> sessions;
    while (all.size() < 10) {
        auto got = cq.poll();

        ASSERT_FALSE(got.empty());
        sessions.push_back(got.size());
        all.insert(all.end(), got.begin(), got.end());
    }
    EXPECT_EQ((std::vector<unsigned>{6, 1, 3}), sessions) << "one solicited";
    for (unsigned i = 0; i < 10; i++) {
        EXPECT_EQ(MLX5_CQE_RESP_SEND, all[i].opcode);
        EXPECT_EQ(i, all[i].wqe_counter);
        EXPECT_EQ(i + 1, all[i].byte_cnt);
    }
    EXPECT_EQ(0, ibv_destroy_qp(to));
}

/* The entry of an error comes after completions that were held. */
TEST_P(devx_minis, end_with_an_error)
{
    mini_cq cq(dev, 31);
    verbs_pair pair(dev, {.send_cq = cq.cq});
    verbs_op good = write(0), more = write(1), bad = write(2).remote(0, 0);
    hca_log_reader log;

    good.wr.next = &more.wr;
    more.wr.next = &bad.wr;
    more.attach();
    bad.attach();
    ASSERT_EQ(0, good.post(pair.a.qp));
    EXPECT_EQ(2u, cq.poll().size());
    auto got = cq.poll();
    ASSERT_EQ(1u, got.size());
    EXPECT_EQ(MLX5_CQE_REQ_ERR, got[0].opcode);
    log.take();
}

TEST_P(devx_minis, overrun_as_entries_do)
{
    mini_cq cq(dev, 7);
    verbs_pair pair(dev, {.send_cq = cq.cq});
    hca_log_reader log;

    post(pair.a, 9);
    EXPECT_EQ(8u, cq.poll().size());
    EXPECT_NE(std::string::npos, log.take().find("overrun"));
}

TEST_P(devx_minis, are_announced)
{
    struct mlx5dv_context attr = {};

    attr.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION;
    ASSERT_EQ(0, mlx5dv_query_device(dev.ctx, &attr));
    EXPECT_EQ(64u, attr.cqe_comp_caps.max_num);
    EXPECT_EQ(
        (uint32_t)(MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM),
        attr.cqe_comp_caps.supported_format);
    EXPECT_EQ(nullptr, create_cq(dev.ctx, 7, MLX5DV_CQE_RES_FORMAT_HASH, 128));
    EXPECT_EQ(EOPNOTSUPP, errno);
    EXPECT_EQ(nullptr,
              create_cq(dev.ctx, 7, MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX));
    EXPECT_EQ(EINVAL, errno) << "by the library";
    EXPECT_EQ(nullptr, create_cq(dev.ctx, 7,
                                 MLX5DV_CQE_RES_FORMAT_HASH |
                                     MLX5DV_CQE_RES_FORMAT_CSUM));
    EXPECT_EQ(EINVAL, errno) << "two formats";
}

INSTANTIATE_TEST_SUITE_P(ib, devx_minis, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, devx_minis, testing::Values(0));

} /* namespace */
