/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes WQEs of common shapes, in half the instructions: ctrl, on a DCI an AV
 * without a GRH, the remote address of a WRITE, READ or atomic, operands
 * without masks, data. All other WQEs, and wrong ones, are left to
 * hca_wqe_read_long(), which logs errors. This decoder must accept no WQE that
 * the long one refuses, and must have the same result (test_hca_wqe.cc).
 */
#include "hca_wqe_seg.h"
#include "softhca/fabric/hca_dev.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

#define HCA_WQE_SHORT_FLAGS \
    (HCA_OP_RADDR | HCA_OP_ATOMIC | HCA_OP_DATA_OUT | HCA_OP_DATA_IN)

static void hca_wqe_copy_block(struct hca_wqe *wqe, const struct hca_qp *qp,
                               uint16_t block)
{
    const uint8_t *ring = hca_at(qp->sq.buf);
    uint16_t at         = wqe->idx + block;
    size_t mask         = (HCA_BB_SIZE << qp->sq.log_cnt) - 1;

    memcpy(wqe->raw + block * HCA_BB_SIZE, ring + ((at * HCA_BB_SIZE) & mask),
           HCA_BB_SIZE);
}

/* Copies all blocks but the first. Not inline: most WQEs have no other. */
static __attribute__((noinline)) void hca_wqe_copy_rest(struct hca_wqe *wqe,
                                                        const struct hca_qp *qp)
{
    for (unsigned i = 1; i < wqe->blocks; i++) {
        hca_wqe_copy_block(wqe, qp, i);
    }
}

static bool hca_wqe_short_ctrl(struct hca_wqe *wqe, const struct hca_qp *qp)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)wqe->raw;
    uint32_t opword                      = be32toh(ctrl->opmod_idx_opcode);
    uint8_t fm_ce_se                     = ctrl->fm_ce_se;
    const struct hca_op *op              = &hca_ops[opword & PRM_CTRL_OPCODE];

    wqe->op       = op;
    wqe->opcode   = opword & PRM_CTRL_OPCODE;
    wqe->imm      = ctrl->imm;
    wqe->fm_ce_se = fm_ce_se;
    return (opword >> 8 == wqe->idx) && /* opmod is 0 */
           (op->services & (1 << qp->type)) &&
           !(op->flags & ~HCA_WQE_SHORT_FLAGS) && !qp->wq_sig &&
           !(fm_ce_se & ~(PRM_CTRL_FM | PRM_CTRL_CE | PRM_CTRL_SE)) &&
           (hca_wqe_fm(wqe) <= HCA_FM_LAST);
}

static bool hca_wqe_short_av(struct hca_wqe *wqe, const struct hca_qp *qp)
{
    const struct mlx5_wqe_av *av = (const void *)(wqe->raw + 16);
    uint32_t word                = be32toh(av->dqp_dct);

    wqe->dqpn               = word & 0xffffff;
    wqe->dc_key             = be64toh(av->key.dc_key);
    wqe->path.dlid          = be16toh(av->rlid);
    wqe->path.src_path_bits = av->fl_mlid & 0x7f;
    wqe->path.sl            = av->stat_rate_sl & 0xf;
    wqe->path.reverse_sl    = (word >> 24) & 0xf;
    wqe->path.grh           = false;
    /* 27:24: see hca_wqe_dqpn_reserved() */
    return !(word & 0xf0000000) && !hca_dev_is_roce(qp->obj.dev);
}

/* Parses the data segment at octoword @at. @return the octoword behind it,
 * beyond any WQE if the length of inline data has reserved bits; 0 if the
 * segment is not accepted. */
static inline unsigned hca_wqe_short_seg(struct hca_wqe *wqe, unsigned at,
                                         unsigned flags,
                                         struct hca_wqe_seg *seg)
{
    const struct mlx5_wqe_data_seg *data = (const void *)(wqe->raw + at * 16);
    uint32_t byte_count                  = be32toh(data->byte_count);

    if (byte_count & HCA_SEG_INLINE) {
        byte_count -= HCA_SEG_INLINE;
        seg->addr      = at * 16 + sizeof(__be32);
        seg->length    = byte_count;
        seg->is_inline = true;
        at += (sizeof(__be32) + byte_count + 15) / 16;
        return (flags & HCA_OP_DATA_IN) ? 0 : at;
    }
    seg->addr      = be64toh(data->addr);
    seg->lkey      = be32toh(data->lkey);
    seg->length    = byte_count;
    seg->is_inline = false;
    return ((byte_count == 0) || (byte_count > HCA_MSG_MAX)) ? 0 : at + 1;
}

/* Parses data from octoword @at on, which is within the WQE. */
static __attribute__((noinline)) bool
hca_wqe_short_list(struct hca_wqe *wqe, unsigned at, unsigned flags)
{
    unsigned num    = 0;
    uint64_t length = 0;

    do {
        at = hca_wqe_short_seg(wqe, at, flags, &wqe->segs[num]);
        length += wqe->segs[num++].length;
    } while ((at != 0) && (at < wqe->ds));
    wqe->num_segs = num;
    wqe->length   = length;
    return (at == wqe->ds) && (length <= HCA_MSG_MAX) &&
           (!(flags & HCA_OP_DATA_IN) || (at <= HCA_READ_DS_MAX));
}

/* Plain operands have one octoword, and data must follow: no check of
 * hca_wqe_parse_atomic() can fail. */
static __attribute__((noinline)) bool hca_wqe_short_atomic(struct hca_wqe *wqe,
                                                           unsigned at)
{
    struct hca_wqe_cursor cursor = {wqe, NULL, at};

    wqe->atomic.size = 8;
    return (at + 1u < wqe->ds) && (hca_wqe_parse_atomic(&cursor) == HCA_OK) &&
           hca_wqe_short_list(wqe, at + 1, wqe->op->flags) &&
           (wqe->length == wqe->atomic.size);
}

static bool hca_wqe_short_data(struct hca_wqe *wqe, unsigned at, unsigned flags)
{
    if (__builtin_expect(at >= wqe->ds, 0)) {
        wqe->num_segs = 0;
        wqe->length   = 0;
        return at == wqe->ds;
    }
    if (hca_wqe_short_seg(wqe, at, flags, &wqe->segs[0]) != wqe->ds) {
        return hca_wqe_short_list(wqe, at, flags);
    }
    wqe->num_segs = 1;
    wqe->length   = wqe->segs[0].length;
    return true;
}

static bool hca_wqe_short_body(struct hca_wqe *wqe, const struct hca_qp *qp)
{
    unsigned flags = wqe->op->flags, at = 1;

    if (qp->type == HCA_QP_DCI) {
        if (!hca_wqe_short_av(wqe, qp)) {
            return false;
        }
        at++;
    } else if (qp->type > HCA_QP_UC) {
        return false;
    }
    if (flags & HCA_OP_RADDR) {
        const struct mlx5_wqe_raddr_seg *raddr =
            (const void *)(wqe->raw + at * 16);

        wqe->raddr = be64toh(raddr->raddr);
        wqe->rkey  = be32toh(raddr->rkey);
        at++;
    }
    return (flags & HCA_OP_ATOMIC) ? hca_wqe_short_atomic(wqe, at) :
                                     hca_wqe_short_data(wqe, at, flags);
}

/* Copies the WQE out of the ring, and parses it; if its ctrl segment is not
 * accepted, copies only the first block. */
bool hca_wqe_read_short(struct hca_wqe *wqe, const struct hca_qp *qp,
                        uint16_t posted)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)wqe->raw;
    unsigned ds;

    hca_wqe_copy_block(wqe, qp, 0);
    ds          = be32toh(ctrl->qpn_ds) - (wqe->qpn << 8);
    wqe->ds     = ds;
    wqe->blocks = (ds + 3) / 4;
    if ((ds > PRM_CTRL_DS) || ((ds + 3) / 4 > posted) ||
        !hca_wqe_short_ctrl(wqe, qp)) {
        return false;
    }
    if (ds > HCA_BB_SIZE / 16) {
        hca_wqe_copy_rest(wqe, qp);
    }
    return hca_wqe_short_body(wqe, qp);
}
