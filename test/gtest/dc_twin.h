/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator whose WQEs are all built by libmlx5 ("twin"), and a target for
 * it. Tests read the WQEs from the ring, where they stay after the device has
 * executed them. A twin without a target is in the error state: its WQEs are
 * flushed, so that their keys and addresses need not be valid.
 */
#ifndef DCX_TEST_DC_TWIN_H
#define DCX_TEST_DC_TWIN_H

#include "hca_fixture.h"
#include "wqe_fields.h"

#include <endian.h>

/* One operation, with the parameters of ibv_wr_*(3) */
struct dc_op {
    uint8_t opcode;                       /* MLX5_OPCODE_* */
    unsigned flags                   = 0; /* IBV_SEND_* */
    std::vector<uint8_t> inl         = {};
    std::vector<struct ibv_sge> sges = {};
    uint64_t raddr                   = 0;
    uint32_t rkey                    = 0;
    uint64_t swap_add = 0, compare = 0;
    uint32_t imm    = 0;
    uint16_t stream = 0; /* if the initiator has streams */
};

/* DC target whose shared receive queue is never empty; all its receives use one
 * buffer */
class dc_target {
public:
    static constexpr uint64_t key    = 0x1122334455667788;
    static constexpr size_t buf_size = 8192;

    explicit dc_target(hca_device &dev) : m_buf(buf_size)
    {
        struct ibv_srq_init_attr srq_attr = {};

        HCA_CHECK_CALL((m_cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0)));
        HCA_CHECK_CALL((m_mr = ibv_reg_mr(dev.pd, m_buf.data(), buf_size,
                                          IBV_ACCESS_LOCAL_WRITE)));
        srq_attr.attr.max_wr  = 16;
        srq_attr.attr.max_sge = 1;
        HCA_CHECK_CALL((m_srq = ibv_create_srq(dev.pd, &srq_attr)));

        m_qp = hca_create_dct(dev, m_cq, m_srq, key,
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_ATOMIC);
        for (unsigned i = 0; i < 8; i++) {
            post_recv();
        }
    }

    ~dc_target()
    {
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        EXPECT_EQ(0, ibv_destroy_srq(m_srq));
        EXPECT_EQ(0, ibv_dereg_mr(m_mr));
        EXPECT_EQ(0, ibv_destroy_cq(m_cq));
    }

    uint32_t dctn() const { return m_qp->qp_num; }

    /* Polls the messages that have arrived, and posts a receive for each. */
    void drain()
    {
        struct ibv_wc wc;

        while (ibv_poll_cq(m_cq, 1, &wc) > 0) {
            EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
            post_recv();
        }
    }

    const std::vector<uint8_t> &last_message() const { return m_buf; }

private:
    void post_recv()
    {
        struct ibv_sge sge    = {(uintptr_t)m_buf.data(), buf_size, m_mr->lkey};
        struct ibv_recv_wr wr = {}, *bad;

        wr.sg_list = &sge;
        wr.num_sge = 1;
        HCA_CHECK_CALL(ibv_post_srq_recv(m_srq, &wr, &bad) == 0);
    }

    std::vector<uint8_t> m_buf;
    struct ibv_cq *m_cq;
    struct ibv_mr *m_mr;
    struct ibv_srq *m_srq;
    struct ibv_qp *m_qp;
};

class dc_twin {
public:
    static constexpr unsigned max_sge = 16;

    dc_twin(hca_device &dev, dc_target &target, bool has_streams = false) :
        m_target(&target), m_dctn(target.dctn()), m_key(dc_target::key),
        m_has_streams(has_streams)
    {
        create(dev);
    }

    /* Creates a twin without a target; its WQEs name this DCT and DC key. */
    dc_twin(hca_device &dev, uint32_t dctn, uint64_t key) :
        m_target(NULL), m_dctn(dctn), m_key(key)
    {
        create(dev);
        hca_modify(m_qp, {}, IBV_QPS_ERR, 0);
    }

    ~dc_twin()
    {
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        EXPECT_EQ(0, ibv_destroy_cq(m_cq));
    }

    uint32_t qpn() const { return m_qp->qp_num; }

    unsigned num_bb() const { return m_dv.sq.wqe_cnt; }

    unsigned max_inline() const { return m_max_inline; }

    /* Returns the doorbell record: the 16-bit index of the next block. */
    uint32_t dbrec() const { return be32toh(m_dv.dbrec[MLX5_SND_DBR]); }

    uint16_t index() const { return dbrec(); }

    /* Posts through the library, waits for the completion, and returns the
     * WQE. */
    wqe_bytes post(const dc_op &op, struct ibv_ah *ah)
    {
        struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(m_qp);
        uint16_t at           = index();

        ibv_wr_start(qpx);
        qpx->wr_id    = at;
        qpx->wr_flags = op.flags | IBV_SEND_SIGNALED;
        begin(qpx, op);
        set_address(mlx5dv_qp_ex_from_ibv_qp_ex(qpx), op, ah);
        set_data(qpx, op);
        HCA_CHECK_CALL(ibv_wr_complete(qpx) == 0);
        complete();
        return wqe_at((const uint8_t *)m_dv.sq.buf, num_bb(), at);
    }

    /* Posts empty messages until the next block is at `index` of the ring. */
    void advance(unsigned index, struct ibv_ah *ah)
    {
        dc_op op = {.opcode = MLX5_OPCODE_SEND};

        while ((this->index() & (num_bb() - 1)) != (index & (num_bb() - 1))) {
            post(op, ah);
        }
    }

    /* Returns the WQE at block `at` of a ring. */
    static wqe_bytes wqe_at(const uint8_t *ring, unsigned num_bb, uint16_t at)
    {
        size_t size   = num_bb * 64;
        size_t offset = (at * 64) & (size - 1);
        wqe_bytes wqe((ring[offset + 7] & 0x3f) * 16);

        for (size_t i = 0; i < wqe.size(); i++) {
            wqe[i] = ring[(offset + i) % size];
        }
        return wqe;
    }

private:
    void create(hca_device &dev)
    {
        const struct mlx5dv_dci_streams streams = {3, 0};
        struct ibv_qp_cap cap                   = {4, 0, max_sge, 0, 900};
        struct mlx5dv_obj obj                   = {};

        HCA_CHECK_CALL((m_cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0)));
        m_qp = hca_create_dci(
            dev, m_cq,
            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
            cap, m_has_streams ? &streams : NULL);
        HCA_CHECK_CALL(m_qp != NULL);
        m_max_inline = cap.max_inline_data;
        hca_connect_dci(m_qp, dev);

        obj.qp.in  = m_qp;
        obj.qp.out = &m_dv;
        HCA_CHECK_CALL(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0);
        EXPECT_EQ(64u, m_dv.sq.stride);
    }

    static void begin(struct ibv_qp_ex *qpx, const dc_op &op)
    {
        switch (op.opcode) {
        case MLX5_OPCODE_SEND:
            return ibv_wr_send(qpx);
        case MLX5_OPCODE_SEND_IMM:
            return ibv_wr_send_imm(qpx, htobe32(op.imm));
        case MLX5_OPCODE_RDMA_WRITE:
            return ibv_wr_rdma_write(qpx, op.rkey, op.raddr);
        case MLX5_OPCODE_RDMA_READ:
            return ibv_wr_rdma_read(qpx, op.rkey, op.raddr);
        case MLX5_OPCODE_ATOMIC_CS:
            return ibv_wr_atomic_cmp_swp(qpx, op.rkey, op.raddr, op.compare,
                                         op.swap_add);
        case MLX5_OPCODE_ATOMIC_FA:
            return ibv_wr_atomic_fetch_add(qpx, op.rkey, op.raddr, op.swap_add);
        default:
            HCA_CHECK_CALL(!"libmlx5 has a builder for this opcode");
        }
    }

    void set_address(struct mlx5dv_qp_ex *qpx, const dc_op &op,
                     struct ibv_ah *ah)
    {
        if (m_has_streams) {
            mlx5dv_wr_set_dc_addr_stream(qpx, ah, m_dctn, m_key, op.stream);
        } else {
            mlx5dv_wr_set_dc_addr(qpx, ah, m_dctn, m_key);
        }
    }

    static void set_data(struct ibv_qp_ex *qpx, const dc_op &op)
    {
        if (!op.inl.empty()) {
            ibv_wr_set_inline_data(qpx, (void *)op.inl.data(), op.inl.size());
        } else if (op.sges.size() == 1) {
            ibv_wr_set_sge(qpx, op.sges[0].lkey, op.sges[0].addr,
                           op.sges[0].length);
        } else {
            ibv_wr_set_sge_list(qpx, op.sges.size(), op.sges.data());
        }
    }

    void complete()
    {
        struct ibv_wc wc = {};
        int count        = 0;
        dcx_deadline deadline;

        while (count == 0) {
            deadline.check("a completion");
            count = ibv_poll_cq(m_cq, 1, &wc);
        }
        HCA_CHECK_CALL(count == 1);
        if (m_target == NULL) {
            HCA_CHECK_CALL(wc.status == IBV_WC_WR_FLUSH_ERR);
            return;
        }
        EXPECT_EQ(IBV_WC_SUCCESS, wc.status)
            << "the device refused what libmlx5 wrote, vendor syndrome "
            << wc.vendor_err;
        HCA_CHECK_CALL(wc.status == IBV_WC_SUCCESS);
        m_target->drain();
    }

    dc_target *m_target;
    uint32_t m_dctn;
    uint64_t m_key;
    bool m_has_streams = false;
    struct ibv_cq *m_cq;
    struct ibv_qp *m_qp;
    struct mlx5dv_qp m_dv = {};
    unsigned m_max_inline;
};

/* Converts a WQE to the compact form. libmlx5 always writes the extended one,
 * whose second part has no meaning without a GRH. The PRM ("UD address vector")
 * allows to leave it out, and UCX's dc_mlx5 does so. */
inline wqe_bytes dc_compacted(wqe_bytes wqe)
{
    for (unsigned i = 32; i < 64; i++) {
        EXPECT_EQ(0, wqe[i]) << "libmlx5 uses byte " << i << " of the WQE";
    }
    wqe.erase(wqe.begin() + 32, wqe.begin() + 64);
    wqe[24] &= 0x7f; /* bit 31 of dqp_dct */
    wqe[7] -= 2;     /* ds */
    return wqe;
}

#endif
