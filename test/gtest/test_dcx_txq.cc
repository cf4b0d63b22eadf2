/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queue of dcx on a QP that is not an initiator: an RC QP, connected
 * to itself, posts and completes NOPs and writes. Ring, doorbell and
 * completions are dcx's own code; libmlx5 creates the objects.
 */
#include "hca_fixture.h"
#include "strict_bench.h"

extern "C" {
#include "uct/dcx/queue/dcx_txq.h"
}

namespace {

class dcx_txq : public testing::TestWithParam<int> {
protected:
    enum { MAX_BB = 1, SEND_WR = 64, MODERATION = 4 };

    dcx_txq() :
        m_from(m_dev.pd, IBV_ACCESS_LOCAL_WRITE, 0x11),
        m_to(m_dev.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0x22)
    {
        uct_dcx_cq_params_t params = {};

        params.ctx       = m_dev.ctx;
        params.length    = 4 * SEND_WR;
        params.cqe_size  = sizeof(struct mlx5_cqe64);
        params.what      = "sends";
        params.log_level = UCS_LOG_LEVEL_ERROR;
        HCA_CHECK_CALL(uct_dcx_cq_init(&m_cq, &params) == UCS_OK);
        create_qp();
        init_txq();
    }

    ~dcx_txq()
    {
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        uct_dcx_txq_cleanup(&m_txq);
        uct_dcx_cq_cleanup(&m_cq);
    }

    /* Writes @length bytes at @offset from the one buffer to the other. */
    void post_write(unsigned offset, unsigned length, uint32_t rkey)
    {
        uct_dcx_post_t post = {};
        uct_dcx_wqe_t wqe;

        begin(&wqe);
        uct_dcx_wqe_raddr(&wqe, (uintptr_t)m_to.addr + offset, rkey);
        uct_dcx_wqe_data(&wqe, (char *)m_from.addr + offset, length,
                         m_from.mr->lkey);
        post.opcode = MLX5_OPCODE_RDMA_WRITE;
        finish(&wqe, &post);
    }

    void post_nop()
    {
        uct_dcx_post_t post = {};
        uct_dcx_wqe_t wqe;

        begin(&wqe);
        post.opcode = MLX5_OPCODE_NOP;
        finish(&wqe, &post);
    }

    /* Polls the next completion, which must come. Returns its opcode. */
    unsigned poll()
    {
        const struct mlx5_cqe64 *cqe;
        dcx_deadline deadline;
        unsigned opcode;

        while ((cqe = uct_dcx_cq_next(&m_cq)) == NULL) {
            if (deadline.is_over()) {
                ADD_FAILURE() << "no completion";
                return MLX5_CQE_INVALID;
            }
        }
        uct_dcx_cq_advance(&m_cq, sizeof(*cqe));
        EXPECT_EQ(m_qp->qp_num, uct_dcx_cqe_qpn(cqe));
        opcode = cqe->op_own >> 4;
        if (opcode == MLX5_CQE_REQ) {
            EXPECT_TRUE(uct_dcx_txq_retire(
                &m_txq, uct_dcx_sq_end(&m_txq.sq, be16toh(cqe->wqe_counter))));
        }
        uct_dcx_cq_update(&m_cq);
        return opcode;
    }

    void poll_all()
    {
        while (m_ended < m_posted) {
            ASSERT_EQ(MLX5_CQE_REQ, poll());
        }
        EXPECT_TRUE(uct_dcx_txq_is_idle(&m_txq));
    }

    hca_device m_dev;
    strict_mem m_from, m_to;
    uct_dcx_txq_t m_txq = {};
    unsigned m_posted = 0, m_ended = 0, m_failed = 0;

private:
    void create_qp()
    {
        struct ibv_qp_init_attr init = {};
        struct ibv_qp_attr attr;

        init.qp_type          = IBV_QPT_RC;
        init.send_cq          = m_cq.cq;
        init.recv_cq          = m_cq.cq;
        init.cap.max_send_wr  = SEND_WR;
        init.cap.max_send_sge = 1;
        HCA_CHECK_CALL((m_qp = ibv_create_qp(m_dev.pd, &init)) != NULL);

        attr = hca_qp_attr(m_dev, m_qp->qp_num);
        hca_modify(m_qp, attr, IBV_QPS_INIT,
                   IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        hca_modify(m_qp, attr, IBV_QPS_RTR,
                   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                       IBV_QP_MIN_RNR_TIMER);
        hca_modify(m_qp, attr, IBV_QPS_RTS,
                   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    }

    void init_txq()
    {
        uct_dcx_txq_params_t params = {};

        params.qp         = m_qp;
        params.cq         = &m_cq;
        params.max_bb     = MAX_BB;
        params.num_bb     = 4 * SEND_WR;
        params.moderation = MODERATION;
        HCA_CHECK_CALL(uct_dcx_txq_init(&m_txq, &params) == UCS_OK);
    }

    /* Waits for room, and requests completions as operations of dcx do. */
    void begin(uct_dcx_wqe_t *wqe)
    {
        uct_dcx_sq_t *sq = &m_txq.sq;

        if (!uct_dcx_sq_is_clear(sq)) {
            while (!uct_dcx_sq_is_available(sq)) {
                ASSERT_EQ(MLX5_CQE_REQ, poll());
            }
            uct_dcx_sq_signal(sq);
        }
        uct_dcx_wqe_begin(wqe, sq->start, sq->mask, sq->pi);
    }

    void finish(const uct_dcx_wqe_t *wqe, uct_dcx_post_t *post)
    {
        post->done   = count;
        post->buffer = this;
        uct_dcx_txq_post(&m_txq, wqe, post);
        ++m_posted;
    }

    static void count(uct_dcx_txq_t *, uct_dcx_slot_t *slot,
                      ucs_status_t status)
    {
        dcx_txq *self = (dcx_txq *)slot->buffer;

        ++self->m_ended;
        self->m_failed += (status != UCS_OK);
    }

    uct_dcx_cq_t m_cq;
    struct ibv_qp *m_qp;
};

TEST_P(dcx_txq, nop)
{
    post_nop();
    EXPECT_EQ(MLX5_CQE_REQ, poll());
    EXPECT_EQ(1u, m_ended);
    EXPECT_EQ(0u, m_failed);
    EXPECT_TRUE(uct_dcx_txq_is_idle(&m_txq));
}

/* More than twice around the ring; one in four is signaled. */
TEST_P(dcx_txq, writes)
{
    const unsigned count = 2 * (m_txq.sq.mask + 1) + 7;

    for (unsigned i = 0; i < count; i++) {
        unsigned offset = (i % 500) * 8;

        memset((char *)m_from.addr + offset, i + 1, 8);
        post_write(offset, 8, m_to.mr->rkey);
        if (i % 3 == 0) {
            post_nop();
        }
    }

    /* the last ones may be unsignaled */
    uct_dcx_sq_stop(&m_txq.sq);
    post_nop();
    poll_all();
    EXPECT_EQ(0u, m_failed);
    EXPECT_EQ(0, memcmp(m_from.addr, m_to.addr, 4000));
}

/* An operation waits for a WQE and for an event. */
TEST_P(dcx_txq, operation)
{
    uct_completion_t comp = {};
    uct_dcx_op_set_t set;
    uct_dcx_op_t *op;

    ASSERT_EQ(UCS_OK, uct_dcx_op_set_init(&set));
    comp.func   = [](uct_completion_t *) {};
    comp.count  = 2;
    comp.status = UCS_OK;

    op = uct_dcx_op_new(&set, NULL, &comp, NULL);
    uct_dcx_op_wait_events(op, 1);
    post_write(0, 64, m_to.mr->rkey);
    uct_dcx_op_wait_wqe(op, &m_txq.ops, m_txq.sq.last);
    EXPECT_EQ(MLX5_CQE_REQ, poll());
    EXPECT_EQ(2, comp.count) << "the event has not come";
    uct_dcx_op_event(op, UCS_OK);
    EXPECT_EQ(1, comp.count);
    EXPECT_EQ(UCS_OK, comp.status);
    uct_dcx_op_set_cleanup(&set);
}

TEST_P(dcx_txq, refused)
{
    post_write(0, 8, m_to.mr->rkey ^ 0x100);
    EXPECT_EQ(MLX5_CQE_REQ_ERR, poll());
    EXPECT_EQ(0u, m_ended) << "ends with the queue";
}

INSTANTIATE_TEST_SUITE_P(ib, dcx_txq, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(roce, dcx_txq, testing::Values(0));

} /* namespace */

int main(int argc, char **argv)
{
    return hca_test_main(argc, argv,
                         {{"ib", {}}, {"roce", {{"SOFTHCA_LINK", "roce"}}}});
}
