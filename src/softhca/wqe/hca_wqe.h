/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A send WQE, copied out of the ring, checked, and decoded to host order.
 * Nothing here points into the ring.
 *
 * wqe/ decodes send WQEs, and executes UMRs (hca_umr.h). It is called by exec/;
 * resp/ uses its types.
 */
#ifndef HCA_WQE_H
#define HCA_WQE_H

#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_objs.h"

#include <infiniband/mlx5dv.h>

#define HCA_BB_SIZE     64u
#define HCA_WQE_BLOCKS  16u /* ds has 6 bits */
#define HCA_WQE_SEGS    62u
#define HCA_LOG_MSG_MAX 30u /* log_max_msg, as UCX insists on */
#define HCA_MSG_MAX     (1ul << HCA_LOG_MSG_MAX)
#define HCA_SEG_INLINE  0x80000000u /* MLX5_INLINE_SEG */

/* Segments and effects of an opcode */
enum hca_op_flags {
    HCA_OP_RADDR    = 1 << 0, /* has a remote address segment */
    HCA_OP_ATOMIC   = 1 << 1, /* has operands */
    HCA_OP_EXT      = 1 << 2, /* has operands with masks, size in opmod */
    HCA_OP_DATA_OUT = 1 << 3,
    HCA_OP_DATA_IN  = 1 << 4, /* no inline segments */
    HCA_OP_LOCAL    = 1 << 5, /* nothing goes out: no AV, no XRC segment */
    HCA_OP_UMR      = 1 << 6,
    HCA_OP_IGNORE   = 1 << 7, /* segments after ctrl are not read (NOP) */
    HCA_OP_TM       = 1 << 8
};

struct hca_op {
    const char *name;
    uint16_t services; /* bit per enum hca_qp_type */
    uint16_t flags;    /* enum hca_op_flags */
};

/* By opcode. One that the device does not have has no name and no services. */
extern const struct hca_op hca_ops[256];

struct hca_wqe_seg {
    uint64_t addr; /* of inline data: offset in hca_wqe.raw */
    uint32_t length;
    uint32_t lkey;
    bool is_inline;
};

struct hca_wqe_atomic {
    uint64_t swap_add, compare; /* masked fetch-add: compare is boundary */
    uint64_t swap_mask, compare_mask;
    uint8_t size; /* bytes of the operand: 4, 8 */
    bool is_cs;   /* compare and swap, else fetch-add */
};

struct hca_wqe {
    const struct hca_op *op;
    uint32_t qpn;
    uint16_t idx;
    uint16_t blocks; /* basic blocks of 64 bytes */
    uint8_t opcode, ds;
    uint8_t fm_ce_se;     /* of ctrl */
    uint16_t stream;      /* of a DCI with streams, else 0; only
                           * hca_wqe_peek() sets it */
    uint32_t imm;         /* as on the wire: big endian */
    struct hca_path path; /* UD, DCI */
    uint32_t dqpn;        /* UD, DCI */
    uint32_t qkey;        /* UD */
    uint64_t dc_key;      /* DCI */
    uint32_t xrc_srqn;    /* XRC */
    uint64_t raddr;
    uint32_t rkey;
    struct hca_wqe_atomic atomic;
    unsigned body_at; /* octoword of the segments of UMR or TM */
    uint64_t length;  /* bytes of all segments */
    unsigned num_segs;
    struct hca_wqe_seg segs[HCA_WQE_SEGS];
    union {
        uint8_t raw[HCA_WQE_BLOCKS * HCA_BB_SIZE];
        uint64_t align;
    };
};

static inline bool hca_wqe_is_signaled(const struct hca_wqe *wqe)
{
    return (wqe->fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE) != 0;
}

/* Fence mode of linux/mlx5/qp.h: MLX5_FENCE_MODE_STRONG_ORDERING */
#define HCA_FM_STRONG 3
#define HCA_FM_LAST   4

static inline unsigned hca_wqe_fm(const struct hca_wqe *wqe)
{
    return wqe->fm_ce_se >> 5;
}

/* Returns true if the WQE waits for the reads and atomics before it, as modes 2
 * to 4 do. Mode 1 orders only behind a UMR. */
static inline bool hca_wqe_is_fenced(const struct hca_wqe *wqe)
{
    return hca_wqe_fm(wqe) >= 2;
}

/* hca_wqe_read() for WQEs of any shape */
enum hca_check hca_wqe_read_long(struct hca_wqe *wqe, const struct hca_qp *qp,
                                 uint16_t idx, uint16_t posted);

/* hca_wqe_read() for WQEs of common shapes; the caller sets qpn and idx.
 * @return false if the WQE has another shape, or may be wrong. */
bool hca_wqe_read_short(struct hca_wqe *wqe, const struct hca_qp *qp,
                        uint16_t posted);

/* Reads the WQE at basic block @idx of the SQ; @posted blocks are rung from
 * there on. Sets blocks even on failure: to 0 if its index or ds is wrong, as
 * the next WQE cannot be found then. SOFTHCA_STRICT checks more.
 * @return HCA_OK or the first check that failed, which is logged. */
static inline enum hca_check hca_wqe_read(struct hca_wqe *wqe,
                                          const struct hca_qp *qp, uint16_t idx,
                                          uint16_t posted)
{
    wqe->qpn = qp->obj.num;
    wqe->idx = idx;
    return (!hca_strict && hca_wqe_read_short(wqe, qp, posted)) ?
               HCA_OK :
               hca_wqe_read_long(wqe, qp, idx, posted);
}

/* Copies @length bytes of the SQ from basic block @idx on; wraps around. */
void hca_wqe_copy(uint8_t *to, const struct hca_qp *qp, uint16_t idx,
                  size_t length);

/* Reads qpn, idx, opcode, ds, stream and blocks of a WQE; blocks are 0 if it
 * cannot be read. Logs nothing. */
void hca_wqe_peek(struct hca_wqe *wqe, const struct hca_qp *qp, uint16_t idx,
                  uint16_t posted);

#endif
