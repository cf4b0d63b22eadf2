/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes send WQEs: copies them out of the ring, and checks the opcode and the
 * control segment. Layouts: mlx5dv.h (struct mlx5_wqe_ctrl_seg), prm.h.
 *
 * Some fields are ignored, as code that works on real NICs leaves the previous
 * contents of the ring there:
 * - the unused compare of a fetch-add, the padding after inline data, the 12
 *   bytes after an XRC SRQ number (libmlx5);
 * - unless hca_strict, the signature of a QP without wq_sig, the stream id of a
 *   QP without streams, and reserved fields of whole words (UCX).
 */
#include "hca_wqe_seg.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

#define RC  (1 << HCA_QP_RC)
#define UC  (1 << HCA_QP_UC)
#define UD  (1 << HCA_QP_UD)
#define XRC (1 << HCA_QP_XRC_SEND)
#define DCI (1 << HCA_QP_DCI)

const struct hca_op hca_ops[256] = {
    [MLX5_OPCODE_NOP]  = {"nop", RC | UC | UD | XRC | DCI,
                          HCA_OP_LOCAL | HCA_OP_IGNORE},
    [MLX5_OPCODE_SEND] = {"send", RC | UC | UD | XRC | DCI, HCA_OP_DATA_OUT},
    [MLX5_OPCODE_SEND_IMM]   = {"send_imm", RC | UC | UD | XRC | DCI,
                                HCA_OP_DATA_OUT},
    [MLX5_OPCODE_SEND_INVAL] = {"send_inval", RC | XRC | DCI, HCA_OP_DATA_OUT},
    [MLX5_OPCODE_RDMA_WRITE] = {"rdma_write", RC | UC | XRC | DCI,
                                HCA_OP_RADDR | HCA_OP_DATA_OUT},
    [MLX5_OPCODE_RDMA_WRITE_IMM] = {"rdma_write_imm", RC | UC | XRC | DCI,
                                    HCA_OP_RADDR | HCA_OP_DATA_OUT},
    [MLX5_OPCODE_RDMA_READ]      = {"rdma_read", RC | XRC | DCI,
                                    HCA_OP_RADDR | HCA_OP_DATA_IN},

    [MLX5_OPCODE_ATOMIC_CS] = {"atomic_cs", RC | XRC | DCI,
                               HCA_OP_RADDR | HCA_OP_ATOMIC | HCA_OP_DATA_IN},
    [MLX5_OPCODE_ATOMIC_FA] = {"atomic_fa", RC | XRC | DCI,
                               HCA_OP_RADDR | HCA_OP_ATOMIC | HCA_OP_DATA_IN},

    [MLX5_OPCODE_ATOMIC_MASKED_CS] = {"atomic_masked_cs", RC | XRC | DCI,
                                      HCA_OP_RADDR | HCA_OP_ATOMIC |
                                          HCA_OP_EXT | HCA_OP_DATA_IN},
    [MLX5_OPCODE_ATOMIC_MASKED_FA] = {"atomic_masked_fa", RC | XRC | DCI,
                                      HCA_OP_RADDR | HCA_OP_ATOMIC |
                                          HCA_OP_EXT | HCA_OP_DATA_IN},
    [MLX5_OPCODE_LOCAL_INVAL]      = {"local_inval", RC | UC | XRC | DCI,
                                      HCA_OP_LOCAL},
    [MLX5_OPCODE_UMR] = {"umr", RC | UC | XRC, HCA_OP_LOCAL | HCA_OP_UMR},
    [MLX5_OPCODE_TAG_MATCHING] = {"tag_matching", RC, HCA_OP_LOCAL | HCA_OP_TM},
};

#undef RC
#undef UC
#undef UD
#undef XRC
#undef DCI

/* Returns NULL if the device does not have the opcode. */
static const struct hca_op *hca_op(uint8_t opcode)
{
    return (hca_ops[opcode].name == NULL) ? NULL : &hca_ops[opcode];
}

void hca_wqe_copy(uint8_t *to, const struct hca_qp *qp, uint16_t idx,
                  size_t length)
{
    const uint8_t *ring = hca_at(qp->sq.buf);
    size_t size         = (size_t)HCA_BB_SIZE << qp->sq.log_cnt;
    size_t offset       = ((size_t)idx * HCA_BB_SIZE) & (size - 1);
    size_t first        = (length < size - offset) ? length : size - offset;

    memcpy(to, ring + offset, first);
    memcpy(to + first, ring, length - first);
}

void hca_wqe_peek(struct hca_wqe *wqe, const struct hca_qp *qp, uint16_t idx,
                  uint16_t posted)
{
    struct mlx5_wqe_ctrl_seg ctrl;
    uint32_t opword;

    hca_wqe_copy((uint8_t *)&ctrl, qp, idx, sizeof(ctrl));
    opword      = be32toh(ctrl.opmod_idx_opcode);
    wqe->qpn    = qp->obj.num;
    wqe->idx    = idx;
    wqe->opcode = opword & PRM_CTRL_OPCODE;
    wqe->ds     = be32toh(ctrl.qpn_ds) & PRM_CTRL_DS;
    wqe->stream = qp->has_streams ? be16toh(ctrl.dci_stream_channel_id) : 0;
    wqe->blocks = (wqe->ds + 3) / 4;
    if ((wqe->blocks > posted) || (((opword & PRM_CTRL_IDX) >> 8) != idx)) {
        wqe->blocks = 0;
    }
}

static bool hca_wqe_signature_ok(const struct hca_wqe *wqe)
{
    uint8_t sum = 0;

    for (unsigned i = 0; i < wqe->ds * 16u; i++) {
        sum ^= wqe->raw[i];
    }
    return sum == 0xff;
}

static enum hca_check hca_wqe_parse_fm(struct hca_wqe *wqe, uint8_t fm_ce_se)
{
    wqe->fm_ce_se = fm_ce_se;
    if (fm_ce_se & ~(PRM_CTRL_FM | PRM_CTRL_CE | PRM_CTRL_SE)) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_FM_RSVD, fm_ce_se);
    }
    return (hca_wqe_fm(wqe) > HCA_FM_LAST) ?
               hca_wqe_bad(wqe, HCA_CHECK_CTRL_FM, hca_wqe_fm(wqe)) :
               HCA_OK;
}

static enum hca_check hca_wqe_parse_opmod(struct hca_wqe *wqe, uint8_t opmod)
{
    wqe->atomic.size = 8;
    if (wqe->op->flags & HCA_OP_EXT) {
        wqe->atomic.size = (opmod == PRM_OPMOD_EXT_ATOMIC(2)) ? 4 : 8;
        if ((opmod == PRM_OPMOD_EXT_ATOMIC(2)) ||
            (opmod == PRM_OPMOD_EXT_ATOMIC(3))) {
            return HCA_OK;
        }
    } else if (opmod == 0) {
        return HCA_OK;
    }
    return hca_wqe_bad(wqe, HCA_CHECK_OPMOD, opmod);
}

/* Checks the words with the index and with ds, which locate a WQE. While blocks
 * is 0, the next WQE cannot be found. */
static enum hca_check hca_wqe_frame(struct hca_wqe *wqe,
                                    const struct hca_qp *qp, uint16_t posted)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)wqe->raw;
    uint32_t opword                      = be32toh(ctrl->opmod_idx_opcode);
    uint32_t ds_word                     = be32toh(ctrl->qpn_ds);

    wqe->blocks = 0;
    wqe->opcode = opword & PRM_CTRL_OPCODE;
    wqe->ds     = ds_word & PRM_CTRL_DS;
    if (((opword & PRM_CTRL_IDX) >> 8) != wqe->idx) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_IDX,
                           (opword & PRM_CTRL_IDX) >> 8);
    }
    if (wqe->ds == 0) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_DS, 0);
    }
    if ((wqe->ds + 3) / 4 > posted) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_BEYOND, wqe->ds);
    }
    wqe->blocks = (wqe->ds + 3) / 4;
    if ((ds_word & PRM_CTRL_QPN) >> 8 != qp->obj.num) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_QPN, ds_word >> 8);
    }
    if (ds_word & ~(PRM_CTRL_QPN | PRM_CTRL_DS)) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_DS_RSVD, ds_word & 0xff);
    }
    return HCA_OK;
}

static enum hca_check hca_wqe_parse_op(struct hca_wqe *wqe,
                                       const struct hca_qp *qp)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)wqe->raw;

    wqe->imm = ctrl->imm;
    wqe->op  = hca_op(wqe->opcode);
    if (wqe->op == NULL) {
        return hca_wqe_bad(wqe, HCA_CHECK_OPCODE, wqe->opcode);
    }
    if (!(wqe->op->services & (1 << qp->type))) {
        return hca_wqe_bad(wqe, HCA_CHECK_SERVICE, wqe->opcode);
    }
    return hca_wqe_parse_opmod(wqe, be32toh(ctrl->opmod_idx_opcode) >> 24);
}

static enum hca_check hca_wqe_parse_ctrl(struct hca_wqe_cursor *cursor)
{
    struct hca_wqe *wqe                  = cursor->wqe;
    const struct mlx5_wqe_ctrl_seg *ctrl = hca_wqe_take(cursor, 1);
    enum hca_check check                 = hca_wqe_parse_op(wqe, cursor->qp);

    if (check != HCA_OK) {
        return check;
    }
    if (cursor->qp->wq_sig ? !hca_wqe_signature_ok(wqe) :
                             (hca_strict && (ctrl->signature != 0))) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_SIGNATURE, ctrl->signature);
    }
    if (hca_strict && !cursor->qp->has_streams &&
        (ctrl->dci_stream_channel_id != 0)) {
        return hca_wqe_bad(wqe, HCA_CHECK_CTRL_RSVD,
                           be16toh(ctrl->dci_stream_channel_id));
    }
    return hca_wqe_parse_fm(wqe, ctrl->fm_ce_se);
}

typedef enum hca_check (*hca_wqe_parse_fn)(struct hca_wqe_cursor *cursor);

enum hca_check hca_wqe_read_long(struct hca_wqe *wqe, const struct hca_qp *qp,
                                 uint16_t idx, uint16_t posted)
{
    static const hca_wqe_parse_fn steps[] = {
        hca_wqe_parse_ctrl,
        hca_wqe_parse_transport,
        hca_wqe_parse_body,
    };
    struct hca_wqe_cursor cursor = {wqe, qp, 0};
    enum hca_check check;

    wqe->qpn      = qp->obj.num;
    wqe->idx      = idx;
    wqe->length   = 0;
    wqe->num_segs = 0;
    hca_wqe_copy(wqe->raw, qp, idx, HCA_BB_SIZE);
    check = hca_wqe_frame(wqe, qp, posted);
    if (check != HCA_OK) {
        return check;
    }
    if (wqe->blocks > 1) {
        hca_wqe_copy(wqe->raw + HCA_BB_SIZE, qp, idx + 1,
                     wqe->ds * 16 - HCA_BB_SIZE);
    }
    for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        check = steps[i](&cursor);
        if (check != HCA_OK) {
            return check;
        }
    }
    return HCA_OK;
}
