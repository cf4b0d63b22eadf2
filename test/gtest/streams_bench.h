/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of DCI streams: an initiator with streams, targets with a
 * shared receive queue each, and requests that name a stream, by libmlx5's
 * builders.
 */
#ifndef DCX_TEST_STREAMS_BENCH_H
#define DCX_TEST_STREAMS_BENCH_H

#include "verbs_bench.h"

/* --- a target ------------------------------------------------------------- */

/* A target, at first without receives: it answers RNR */
class streams_target {
public:
    static constexpr uint64_t key = 0x1122334455667788;

    streams_target(const hca_device &dev, const strict_mem &mem) : m_mem(mem)
    {
        struct ibv_srq_init_attr srq_attr = {};

        srq_attr.attr.max_wr  = 63;
        srq_attr.attr.max_sge = 1;
        HCA_CHECK_CALL((cq = ibv_create_cq(dev.ctx, 127, NULL, NULL, 0)));
        HCA_CHECK_CALL((srq = ibv_create_srq(dev.pd, &srq_attr)));
        qp = hca_create_dct(dev, cq, srq, key, ACCESS_QP_ALL);
    }

    ~streams_target()
    {
        destroy();
        EXPECT_EQ(0, ibv_destroy_srq(srq));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
    }

    void destroy()
    {
        if (qp != NULL) {
            EXPECT_EQ(0, ibv_destroy_qp(qp));
            qp = NULL;
        }
    }

    void recv(unsigned count)
    {
        for (unsigned i = 0; i < count; i++) {
            EXPECT_EQ(0, verbs_recv(qp, m_mem, 64));
        }
    }

    /* Expects messages with these immediates, in this order. */
    void expect(const std::vector<uint32_t> &imms)
    {
        for (uint32_t imm : imms) {
            struct ibv_wc wc = verbs_wait(cq);

            EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
            EXPECT_EQ(imm, be32toh(wc.imm_data));
        }
    }

    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;

private:
    const strict_mem &m_mem;
};

/* --- an initiator --------------------------------------------------------- */

class streams_dci {
public:
    struct options {
        uint8_t log_streams = 2, log_errored = 1;
        bool has_streams      = true;
        uint32_t send_wr      = 16;
        uint8_t max_rd_atomic = 1;
    };

    streams_dci(const hca_device &dev, const options &given) :
        m_dev(dev), m_max_rd_atomic(given.max_rd_atomic)
    {
        struct ibv_ah_attr ah_attr = dev.ah_attr(true);

        HCA_CHECK_CALL((m_ah = ibv_create_ah(dev.pd, &ah_attr)));
        HCA_CHECK_CALL((cq = ibv_create_cq(dev.ctx, 511, NULL, NULL, 0)));
        HCA_CHECK_CALL((qp = create(dev, cq, given)));
        connect();
    }

    ~streams_dci()
    {
        EXPECT_EQ(0, ibv_destroy_qp(qp));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
    }

    static struct ibv_qp *create(const hca_device &dev, struct ibv_cq *cq,
                                 const options &given)
    {
        const struct mlx5dv_dci_streams streams = {given.log_streams,
                                                   given.log_errored};
        struct ibv_qp_cap cap                   = {given.send_wr, 0, 1, 0, 0};

        return hca_create_dci(
            dev, cq,
            IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
            cap, given.has_streams ? &streams : NULL);
    }

    /* Moves the initiator from RESET to RTS. It retries without a limit while
     * targets are not ready, but waits only a short time for answers. */
    void connect()
    {
        struct ibv_qp_attr attr = hca_qp_attr(m_dev, 0);

        attr.rnr_retry     = 7;
        attr.max_rd_atomic = m_max_rd_atomic;
        hca_connect_dci(qp, attr);
    }

    /* Rings one doorbell for all requests that @fn posts. */
    template <typename F> void together(F fn)
    {
        m_is_open = true;
        ibv_wr_start(ex());
        fn();
        EXPECT_EQ(0, ibv_wr_complete(ex()));
        m_is_open = false;
    }

    /* Rings no doorbell: the requests that @fn posts are only in the ring, and
     * libmlx5 has forgotten them. */
    template <typename F> void leave(F fn)
    {
        m_is_open = true;
        ibv_wr_start(ex());
        fn();
        ibv_wr_abort(ex());
        m_is_open = false;
    }

    /* Sends a message with an immediate. As for all requests, its wr_id is the
     * number of requests before it. */
    void send(uint16_t stream, const streams_target &to, uint32_t imm,
              const strict_mem &mem, unsigned flags = IBV_SEND_SIGNALED)
    {
        begin(flags);
        ibv_wr_send_imm(ex(), htobe32(imm));
        end(stream, to.qp->qp_num, mem.mr->lkey, mem.addr);
    }

    void write(uint16_t stream, uint32_t dctn, const strict_mem &from,
               uint32_t rkey, const void *raddr,
               unsigned flags = IBV_SEND_SIGNALED)
    {
        begin(flags);
        ibv_wr_rdma_write(ex(), rkey, (uintptr_t)raddr);
        end(stream, dctn, from.mr->lkey, from.addr);
    }

    void read(uint16_t stream, uint32_t dctn, const strict_mem &to,
              uint32_t rkey, const void *raddr,
              unsigned flags = IBV_SEND_SIGNALED, uint32_t length = 64)
    {
        begin(flags);
        ibv_wr_rdma_read(ex(), rkey, (uintptr_t)raddr);
        end(stream, dctn, to.mr->lkey, to.addr, length);
    }

    void fetch_add(uint16_t stream, uint32_t dctn, const strict_mem &to,
                   uint32_t rkey, const void *raddr)
    {
        begin(IBV_SEND_SIGNALED);
        ibv_wr_atomic_fetch_add(ex(), rkey, (uintptr_t)raddr, 1);
        end(stream, dctn, to.mr->lkey, to.addr, 8);
    }

    /* Returns the command of mlx5dv_dci_stream_id_reset(): rts2rts_qp_in with
     * qpc_ext (mlx5_ifc.h). */
    std::vector<uint8_t> reset_in(uint16_t stream) const
    {
        std::vector<uint8_t> in(464);

        set16(&in[0], 0x505);
        set16(&in[8], 0x8000 | (qp->qp_num >> 16));
        set16(&in[10], qp->qp_num);
        in[271] = 1; /* opt_param_mask_95_32 */
        set16(&in[274], stream);
        return in;
    }

    /* Returns 0 or an errno; out[0] is the status of the command. */
    int reset_stream(const std::vector<uint8_t> &in, uint8_t *out)
    {
        return mlx5dv_devx_qp_modify(qp, in.data(), in.size(), out, 16);
    }

    int reset_stream(uint16_t stream, uint8_t *out)
    {
        return reset_stream(reset_in(stream), out);
    }

    int reset_stream(uint16_t stream)
    {
        uint8_t out[16] = {};

        return reset_stream(stream, out);
    }

    enum ibv_qp_state state() const
    {
        struct ibv_qp_init_attr init_attr;
        struct ibv_qp_attr attr;

        HCA_CHECK_CALL(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init_attr) == 0);
        return attr.qp_state;
    }

    /* Expects the next completion to be of this request, with this status. */
    void expect(uint64_t wr_id, enum ibv_wc_status status = IBV_WC_SUCCESS)
    {
        struct ibv_wc wc = verbs_wait(cq);

        EXPECT_EQ(wr_id, wc.wr_id);
        EXPECT_EQ(status, wc.status) << "request " << wr_id;
    }

    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint64_t next_id = 0;

private:
    static void set16(uint8_t *at, uint16_t value)
    {
        at[0] = value >> 8;
        at[1] = value;
    }

    struct ibv_qp_ex *ex() const { return ibv_qp_to_qp_ex(qp); }

    void begin(unsigned flags)
    {
        if (!m_is_open) {
            ibv_wr_start(ex());
        }
        ex()->wr_id    = next_id++;
        ex()->wr_flags = flags;
    }

    void end(uint16_t stream, uint32_t dctn, uint32_t lkey, const void *addr,
             uint32_t length = 64)
    {
        mlx5dv_wr_set_dc_addr_stream(mlx5dv_qp_ex_from_ibv_qp_ex(ex()), m_ah,
                                     dctn, streams_target::key, stream);
        ibv_wr_set_sge(ex(), lkey, (uintptr_t)addr, length);
        if (!m_is_open) {
            EXPECT_EQ(0, ibv_wr_complete(ex()));
        }
    }

    const hca_device &m_dev;
    const uint8_t m_max_rd_atomic;
    struct ibv_ah *m_ah;
    bool m_is_open = false; /* more requests follow */
};

#endif
