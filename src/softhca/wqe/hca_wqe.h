/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A work queue entry, copied out of the ring once, checked, and decoded to
 * host order. Nothing here points into the ring.
 *
 * wqe/ is the room of the contents of WQEs, and of UMRs, with all of their
 * effects (hca_umr.h). Called by exec/ and resp/.
 */
#ifndef HCA_WQE_H
#define HCA_WQE_H

#include "softhca/obj/hca_check.h"
#include "softhca/obj/hca_objs.h"

#define HCA_BB_SIZE     64u
#define HCA_WQE_MAX     (63u * 16) /* ds has 6 bits */
#define HCA_WQE_SEGS    62u
#define HCA_LOG_MSG_MAX 30u /* log_max_msg, as UCX insists on */
#define HCA_MSG_MAX     (1ul << HCA_LOG_MSG_MAX)
#define HCA_SEG_INLINE  0x80000000u /* MLX5_INLINE_SEG */

/* Parts of an opcode, and its effects */
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

struct hca_wqe_seg {
    uint64_t addr; /* of inline data: offset in the copy */
    uint32_t length;
    uint32_t lkey;
    bool is_inline;
};

struct hca_wqe_atomic {
    uint64_t swap_add, compare; /* fetch-add, masked: compare = boundary */
    uint64_t swap_mask, compare_mask;
    uint8_t size;
    bool is_cs;
};

struct hca_wqe {
    const struct hca_op *op;
    uint32_t qpn;
    uint16_t idx;
    uint16_t blocks; /* basic blocks it takes */
    uint8_t opcode, ds;
    uint8_t fm, ce;
    bool solicited;
    uint16_t stream;      /* hca_wqe_peek(): of a DCI with streams,
                           * else 0 */
    uint32_t imm;         /* as on the wire: big endian */
    struct hca_path path; /* UD, DCI */
    uint32_t dqpn;        /* UD, DCI */
    uint32_t qkey;        /* UD */
    uint64_t dc_key;
    uint32_t xrc_srqn;
    uint64_t raddr;
    uint32_t rkey;
    struct hca_wqe_atomic atomic;
    unsigned body_at; /* octoword of the segments of UMR or TM */
    uint64_t length;  /* sum of the segments */
    unsigned num_segs;
    struct hca_wqe_seg segs[HCA_WQE_SEGS];
    union {
        uint8_t raw[HCA_WQE_MAX];
        uint64_t align;
    };
};

static inline bool hca_wqe_is_signaled(const struct hca_wqe *wqe)
{
    return wqe->ce >= 2; /* MLX5_WQE_CTRL_CQ_UPDATE */
}

/* Strong ordering, of the modes of linux/mlx5/qp.h: MLX5_FENCE_MODE_* */
#define HCA_FM_STRONG 3

/* Waits for the reads and atomics before it. Modes 2 to 4 do, 1 is for UMR. */
static inline bool hca_wqe_is_fenced(const struct hca_wqe *wqe)
{
    return wqe->fm >= 2;
}

/* Reads the WQE at basic block @idx of the SQ; @posted blocks are rung from
 * there on. Sets blocks even on failure, if ds is valid (else 0).
 * @return HCA_OK or the first check that failed, which is logged. */
enum hca_check hca_wqe_read(struct hca_wqe *wqe, const struct hca_qp *qp,
                            uint16_t idx, uint16_t posted);

/* Copies bytes of the ring, from basic block @idx on. */
void hca_wqe_copy(uint8_t *to, const struct hca_qp *qp, uint16_t idx,
                  size_t length);

/* Reads the fields that locate a WQE: opcode, stream, blocks (0: it cannot be
 * read). Logs nothing. */
void hca_wqe_peek(struct hca_wqe *wqe, const struct hca_qp *qp, uint16_t idx,
                  uint16_t posted);

#endif
