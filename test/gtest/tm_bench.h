/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared receive queue with tag matching through libibverbs: tagged buffers,
 * receives for unmatched messages, and completions with their tags. Its memory
 * is divided into slots, one for each buffer. Also messages with their headers,
 * for senders.
 */
#ifndef DCX_TEST_TM_BENCH_H
#define DCX_TEST_TM_BENCH_H

#include "verbs_bench.h"

#include <infiniband/tm_types.h>

/* --- completions ---------------------------------------------------------- */

struct tm_wc {
    enum ibv_wc_opcode opcode;
    enum ibv_wc_status status;
    uint64_t wr_id;
    unsigned flags;
    uint32_t byte_len, imm;
    uint64_t tag;
    uint32_t priv;
};

/* Flags of a tagged buffer's completion, both in one; one each in two
 * completions if the data takes more than one packet */
constexpr unsigned TM_MATCH = IBV_WC_TM_MATCH, TM_DATA = IBV_WC_TM_DATA_VALID;

/* --- the queue ------------------------------------------------------------ */

struct tm_options {
    uint32_t tags     = 15;
    uint32_t max_ops  = 32;
    uint32_t max_wr   = 15;
    unsigned cqe      = 127;
    uint32_t cqe_size = 64;
};

class tm_srq {
public:
    static constexpr unsigned SLOT = 1024;

    explicit tm_srq(const hca_device &dev, const tm_options &options = {}) :
        mem(dev.pd, ACCESS_ALL, 0x22)
    {
        HCA_CHECK_CALL((cq = create_cq(dev, options)) != NULL);
        HCA_CHECK_CALL((srq = create(dev, cq, options)) != NULL);
    }

    ~tm_srq()
    {
        EXPECT_EQ(0, ibv_destroy_srq(srq));
        EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    }

    tm_srq(const tm_srq &) = delete;

    static struct ibv_cq_ex *create_cq(const hca_device &dev,
                                       const tm_options &options)
    {
        struct ibv_cq_init_attr_ex attr    = {};
        struct mlx5dv_cq_init_attr dv_attr = {};

        attr.cqe      = options.cqe;
        attr.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                        IBV_WC_EX_WITH_TM_INFO;
        dv_attr.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
        dv_attr.cqe_size  = options.cqe_size;
        return mlx5dv_create_cq(dev.ctx, &attr, &dv_attr);
    }

    static struct ibv_srq *create(const hca_device &dev, struct ibv_cq_ex *cq,
                                  const tm_options &options)
    {
        struct ibv_srq_init_attr_ex attr = {};

        attr.attr.max_wr  = options.max_wr;
        attr.attr.max_sge = 1;
        attr.comp_mask    = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                         IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
        attr.srq_type = IBV_SRQT_TM;
        attr.pd       = dev.pd;
        attr.cq       = ibv_cq_ex_to_cq(cq);
        attr.tm_cap   = {options.tags, options.max_ops};
        return ibv_create_srq_ex(dev.ctx, &attr);
    }

    /* --- operations; each is signaled, and waited for --------------------- */

    struct op {
        uint64_t wr_id = 0, tag = 0, mask = ~0ull;
        unsigned slot        = 0;
        uint32_t length      = SLOT;
        int sync             = -1; /* number of unexpected messages that were
                                    * seen; -1: not reported */
        uint32_t handle      = 0;
        struct ibv_mr *other = NULL; /* memory to use instead of the slot */
    };

    /* Posts without waiting. @return errno */
    int post(enum ibv_ops_wr_opcode opcode, op &what,
             int flags = IBV_OPS_SIGNALED)
    {
        struct ibv_mr *mr    = (what.other != NULL) ? what.other : mem.mr;
        void *addr           = (what.other != NULL) ? mr->addr : at(what.slot);
        struct ibv_sge sge   = {(uintptr_t)addr, what.length, mr->lkey};
        struct ibv_ops_wr wr = {};
        struct ibv_ops_wr *bad;
        int ret;

        wr.wr_id             = what.wr_id + 1000;
        wr.opcode            = opcode;
        wr.flags             = flags;
        wr.tm.handle         = what.handle;
        wr.tm.add.recv_wr_id = what.wr_id;
        wr.tm.add.sg_list    = &sge;
        wr.tm.add.num_sge    = (what.length > 0);
        wr.tm.add.tag        = what.tag;
        wr.tm.add.mask       = what.mask;
        if (what.sync >= 0) {
            wr.flags |= IBV_OPS_TM_SYNC;
            wr.tm.unexpected_cnt = what.sync;
        }
        ret         = ibv_post_srq_ops(srq, &wr, &bad);
        what.handle = wr.tm.handle;
        return ret;
    }

    /* @return the completion; its flags say if a sync is needed */
    tm_wc run(enum ibv_ops_wr_opcode opcode, op &what)
    {
        EXPECT_EQ(0, post(opcode, what));
        tm_wc wc = wait();
        EXPECT_EQ(what.wr_id + 1000, wc.wr_id);
        return wc;
    }

    /* Appends a tagged buffer. @return its handle */
    uint32_t add(op what)
    {
        EXPECT_EQ(IBV_WC_TM_ADD, run(IBV_WR_TAG_ADD, what).opcode);
        return what.handle;
    }

    enum ibv_wc_status del(uint32_t handle)
    {
        op what;

        what.handle = handle;
        tm_wc wc    = run(IBV_WR_TAG_DEL, what);
        EXPECT_EQ(IBV_WC_TM_DEL, wc.opcode);
        return wc.status;
    }

    void sync(int count)
    {
        op what;

        what.sync = count;
        EXPECT_EQ(IBV_WC_TM_SYNC, run(IBV_WR_TAG_SYNC, what).opcode);
    }

    /* Posts a receive for unmatched messages; its wr_id is the slot. */
    void recv(unsigned slot, uint32_t length = SLOT)
    {
        struct ibv_sge sge    = {(uintptr_t)at(slot), length, mem.mr->lkey};
        struct ibv_recv_wr wr = {};
        struct ibv_recv_wr *bad;

        wr.wr_id   = slot;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        EXPECT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
    }

    /* --- completions --- */

    bool poll(tm_wc *wc)
    {
        struct ibv_poll_cq_attr attr = {};
        struct ibv_wc_tm_info info   = {};

        if (ibv_start_poll(cq, &attr) != 0) {
            return false;
        }
        *wc        = {};
        wc->status = cq->status;
        wc->wr_id  = cq->wr_id;
        if (cq->status != IBV_WC_LOC_LEN_ERR) {
            wc->opcode = ibv_wc_read_opcode(cq);
            wc->flags  = ibv_wc_read_wc_flags(cq);
        }
        wc->byte_len = ibv_wc_read_byte_len(cq);
        wc->imm      = be32toh(ibv_wc_read_imm_data(cq));
        ibv_wc_read_tm_info(cq, &info);
        wc->tag  = info.tag;
        wc->priv = info.priv;
        ibv_end_poll(cq);
        return true;
    }

    tm_wc wait()
    {
        tm_wc wc = {};

        if (!hca_until([&] { return poll(&wc); })) {
            ADD_FAILURE() << "no completion";
            wc.status = IBV_WC_GENERAL_ERR;
        }
        return wc;
    }

    bool is_empty()
    {
        tm_wc wc;

        return !poll(&wc);
    }

    /* Expects a message for the buffer @wr_id. @return its bytes */
    uint32_t expect_match(uint64_t wr_id, uint64_t tag, uint32_t priv = 0)
    {
        tm_wc wc = wait();

        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(IBV_WC_TM_RECV, wc.opcode);
        EXPECT_EQ(wr_id, wc.wr_id);
        EXPECT_EQ(TM_MATCH | TM_DATA, wc.flags & (TM_MATCH | TM_DATA));
        EXPECT_EQ(tag, wc.tag);
        EXPECT_EQ(priv, wc.priv);
        return wc.byte_len;
    }

    /* Expects a message in the receive of this slot. */
    tm_wc expect_recv(unsigned slot, enum ibv_wc_opcode opcode = IBV_WC_TM_RECV)
    {
        tm_wc wc = wait();

        EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
        EXPECT_EQ(opcode, wc.opcode);
        EXPECT_EQ(slot, wc.wr_id);
        EXPECT_EQ(0u, wc.flags & (TM_MATCH | TM_DATA));
        return wc;
    }

    uint8_t *at(unsigned slot) const { return mem.addr + slot * SLOT; }

    bool holds(unsigned slot, const void *data, size_t length) const
    {
        return memcmp(at(slot), data, length) == 0;
    }

    strict_mem mem;
    struct ibv_cq_ex *cq;
    struct ibv_srq *srq;
};

/* --- DC ------------------------------------------------------------------- */

/* DC key of all targets here */
constexpr uint64_t TM_DC_KEY = 0x1122334455667788;

class tm_dct {
public:
    tm_dct(const hca_device &dev, struct ibv_srq *srq)
    {
        HCA_CHECK_CALL((cq = ibv_create_cq(dev.ctx, 63, NULL, NULL, 0)));
        qp = hca_create_dct(dev, cq, srq, TM_DC_KEY, ACCESS_QP_ALL);
    }

    ~tm_dct()
    {
        EXPECT_EQ(0, ibv_destroy_qp(qp));
        EXPECT_EQ(0, ibv_destroy_cq(cq));
    }

    tm_dct(const tm_dct &) = delete;

    struct ibv_cq *cq;
    struct ibv_qp *qp;
};

class tm_dci {
public:
    explicit tm_dci(const hca_device &dev, uint8_t rnr_retry = 0)
    {
        struct ibv_ah_attr ah_attr = dev.ah_attr(true);
        struct ibv_qp_attr qp_attr = hca_qp_attr(dev, 0);
        struct ibv_qp_cap cap      = {16, 0, 1, 0, 0};

        HCA_CHECK_CALL((m_ah = ibv_create_ah(dev.pd, &ah_attr)));
        HCA_CHECK_CALL((m_cq = ibv_create_cq(dev.ctx, 63, NULL, NULL, 0)));
        m_qp = hca_create_dci(dev, m_cq, IBV_QP_EX_WITH_SEND, cap);
        HCA_CHECK_CALL(m_qp != NULL);
        qp_attr.rnr_retry = rnr_retry;
        hca_connect_dci(m_qp, qp_attr);
    }

    ~tm_dci()
    {
        EXPECT_EQ(0, ibv_destroy_qp(m_qp));
        EXPECT_EQ(0, ibv_destroy_cq(m_cq));
        EXPECT_EQ(0, ibv_destroy_ah(m_ah));
    }

    tm_dci(const tm_dci &) = delete;

    /* Sends the first @length bytes. @return status of the completion */
    enum ibv_wc_status send(uint32_t dctn, const strict_mem &mem,
                            uint32_t length)
    {
        post(dctn, mem, length);
        return wait();
    }

    void post(uint32_t dctn, const strict_mem &mem, uint32_t length)
    {
        struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(m_qp);

        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(ex);
        mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(ex), m_ah, dctn,
                              TM_DC_KEY);
        ibv_wr_set_sge(ex, mem.mr->lkey, (uintptr_t)mem.addr, length);
        EXPECT_EQ(0, ibv_wr_complete(ex));
    }

    enum ibv_wc_status wait() { return verbs_wait(m_cq).status; }

private:
    struct ibv_ah *m_ah;
    struct ibv_cq *m_cq;
    struct ibv_qp *m_qp;
};

/* --- messages ------------------------------------------------------------- */

/* A message: a header and bytes that differ from those of others */
class tm_msg {
public:
    tm_msg(enum ibv_tmh_op op, uint64_t tag, uint32_t length, uint32_t priv = 0)
    {
        struct ibv_tmh tmh = {};

        tmh.opcode  = op;
        tmh.app_ctx = htobe32(priv);
        tmh.tag     = htobe64(tag);
        bytes.resize(sizeof(tmh) + length);
        memcpy(bytes.data(), &tmh, sizeof(tmh));
        for (uint32_t i = 0; i < length; i++) {
            bytes[sizeof(tmh) + i] = tag * 31 + i;
        }
    }

    const uint8_t *data() const
    {
        return bytes.data() + sizeof(struct ibv_tmh);
    }

    std::vector<uint8_t> bytes;
};

/* A rendezvous request, and the message that reports its end: the same headers
 * with another opcode */
class tm_rndv {
public:
    tm_rndv(enum ibv_tmh_op op, uint64_t tag, const void *addr, uint32_t rkey,
            uint32_t length)
    {
        headers.tmh.opcode  = op;
        headers.tmh.app_ctx = htobe32(0x01020304);
        headers.tmh.tag     = htobe64(tag);
        headers.rvh.va      = htobe64((uintptr_t)addr);
        headers.rvh.rkey    = htobe32(rkey);
        headers.rvh.len     = htobe32(length);
    }

    struct {
        struct ibv_tmh tmh;
        struct ibv_rvh rvh;
    } headers = {};
};

#endif
