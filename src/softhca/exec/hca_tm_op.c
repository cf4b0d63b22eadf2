/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations on lists of tags: see hca_tm_op.h. The segments of such a WQE are
 * a struct mlx5_wqe_tm_seg and, to append, a data segment, as libmlx5 writes
 * them (providers/mlx5/qp.c, mlx5_post_srq_ops()). The fields of operations
 * that are not requested hold the ring's previous contents.
 */
#include "hca_tm_op.h"
#include "softhca/base/hca_log.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/resp/hca_completer.h"

#include <common/prm.h>
#include <endian.h>
#include <string.h>

/* Octowords of the segments */
enum { HCA_TM_SEG = 2, HCA_TM_DATA = 1 };

/* The segments in host order. */
struct hca_tm_op {
    const struct hca_wqe *wqe;
    uint8_t opcode; /* PRM_TM_OPCODE_* */
    uint8_t flags;
    uint16_t index, sw_cnt;
    struct hca_tm_entry entry; /* to append */
};

/* PRM_CQE_TM_* of each operation */
static const uint8_t hca_tm_op_cqes[] = {
    [PRM_TM_OPCODE_NOP]    = PRM_CQE_TM_NOOP,
    [PRM_TM_OPCODE_APPEND] = PRM_CQE_TM_APPEND,
    [PRM_TM_OPCODE_REMOVE] = PRM_CQE_TM_REMOVE,
};

static enum hca_check hca_tm_op_bad(const struct hca_tm_op *op,
                                    enum hca_check check, uint64_t got)
{
    return hca_check_wqe(check, op->wqe->qpn, op->wqe->idx, got);
}

static enum hca_check hca_tm_op_rsvd(const struct hca_tm_op *op,
                                     const struct mlx5_wqe_tm_seg *seg)
{
    uint64_t rsvd1;
    uint16_t rsvd0;

    memcpy(&rsvd0, seg->rsvd0, sizeof(rsvd0));
    memcpy(&rsvd1, seg->rsvd1, sizeof(rsvd1));
    if (hca_strict && ((rsvd0 != 0) || (rsvd1 != 0))) {
        return hca_tm_op_bad(op, HCA_CHECK_TM_RSVD,
                             (rsvd0 != 0) ? be16toh(rsvd0) : be64toh(rsvd1));
    }
    return HCA_OK;
}

static enum hca_check hca_tm_op_read_seg(struct hca_tm_op *op)
{
    const struct hca_wqe *wqe = op->wqe;
    struct mlx5_wqe_tm_seg seg;

    if (wqe->ds < wqe->body_at + HCA_TM_SEG) {
        return hca_tm_op_bad(op, HCA_CHECK_DS_SHORT, wqe->ds);
    }
    memcpy(&seg, wqe->raw + wqe->body_at * 16, sizeof(seg));
    op->opcode     = seg.opcode >> PRM_TM_OPCODE_SHIFT;
    op->flags      = seg.flags;
    op->index      = be16toh(seg.index);
    op->sw_cnt     = be16toh(seg.sw_cnt);
    op->entry.tag  = seg.append_tag; /* both are compared as they are */
    op->entry.mask = seg.append_mask;
    if ((op->opcode > PRM_TM_OPCODE_REMOVE) ||
        (seg.opcode & ((1 << PRM_TM_OPCODE_SHIFT) - 1))) {
        return hca_tm_op_bad(op, HCA_CHECK_TM_OPCODE, seg.opcode);
    }
    if (op->flags & ~(PRM_TM_SW_CNT | PRM_TM_CQE_REQ)) {
        return hca_tm_op_bad(op, HCA_CHECK_TM_FLAGS, op->flags);
    }
    return hca_tm_op_rsvd(op, &seg);
}

static enum hca_check hca_tm_op_read(struct hca_tm_op *op)
{
    const struct hca_wqe *wqe = op->wqe;
    unsigned at               = wqe->body_at + HCA_TM_SEG;
    enum hca_check check      = hca_tm_op_read_seg(op);
    bool is_append;

    if (check != HCA_OK) {
        return check;
    }
    is_append = (op->opcode == PRM_TM_OPCODE_APPEND);
    if (wqe->ds != at + (is_append ? HCA_TM_DATA : 0)) {
        return hca_tm_op_bad(op, HCA_CHECK_TM_SIZE, wqe->ds);
    }
    if (is_append) {
        memcpy(&op->entry.data, wqe->raw + at * 16, sizeof(op->entry.data));
    }
    return HCA_OK;
}

/* Records the program's count of unexpected messages. If it is higher than the
 * device's, or lower than before, it is wrong: nothing that the program posts
 * matches until the two are equal again. */
static void hca_tm_op_sync(const struct hca_tm_op *op,
                           const struct hca_srq *srq, struct hca_tm *tm)
{
    if (((int16_t)(tm->hw_phase_cnt - op->sw_cnt) < 0) ||
        ((int16_t)(op->sw_cnt - tm->sw_phase_cnt) < 0)) {
        hca_warn("qp 0x%x: wqe %u: tm sw_cnt is 0x%x, expected 0x%x to 0x%x: "
                 "srq 0x%x matches no tag posted from now on",
                 op->wqe->qpn, op->wqe->idx, op->sw_cnt, tm->sw_phase_cnt,
                 tm->hw_phase_cnt, srq->obj.num);
    }
    hca_tm_sync(tm, op->sw_cnt);
}

static enum hca_check hca_tm_op_complete(const struct hca_tm_op *op,
                                         const struct hca_srq *srq,
                                         uint16_t index, bool success)
{
    struct mlx5_tm_cqe result = {
        .success      = success ? htobe32(MLX5_TMC_SUCCESS) : 0,
        .hw_phase_cnt = htobe16(hca_srq_tm(srq)->hw_phase_cnt),
    };

    if (!(op->flags & PRM_TM_CQE_REQ)) {
        return HCA_OK;
    }
    return hca_completer_tm_op(srq, hca_tm_op_cqes[op->opcode], index, &result);
}

static enum hca_check hca_tm_op_check(const struct hca_tm_op *op,
                                      const struct hca_tm *tm)
{
    enum hca_check check = HCA_OK;

    if (op->opcode == PRM_TM_OPCODE_APPEND) {
        check = hca_tm_check_next(tm, op->index);
    } else if ((op->opcode == PRM_TM_OPCODE_REMOVE) &&
               (op->index >= tm->size)) {
        check = HCA_CHECK_TM_INDEX;
    }
    if (check != HCA_OK) {
        return hca_tm_op_bad(op, check, op->index);
    }
    return ((op->opcode == PRM_TM_OPCODE_APPEND) &&
            hca_lacks(HCA_LACK_TM_INDIRECT) &&
            hca_mkey_is_indirect(be32toh(op->entry.data.lkey))) ?
               hca_tm_op_bad(op, HCA_CHECK_TM_KEY,
                             be32toh(op->entry.data.lkey)) :
               HCA_OK;
}

/* Changes the list. To remove an entry that a message has taken fails, with a
 * completion that says so; this is no error of the WQE. */
static enum hca_check hca_tm_op_apply(const struct hca_tm_op *op,
                                      const struct hca_srq *srq,
                                      struct hca_tm *tm)
{
    uint16_t index = op->index;
    bool success   = true;

    switch (op->opcode) {
    case PRM_TM_OPCODE_APPEND:
        index = tm->append_next;
        hca_tm_append(tm, &op->entry, op->index);
        break;
    case PRM_TM_OPCODE_REMOVE:
        success = hca_tm_remove(tm, index);
        break;
    default:
        index = 0;
        break;
    }
    return hca_tm_op_complete(op, srq, index, success);
}

static enum hca_check hca_tm_op_run(const struct hca_tm_op *op,
                                    const struct hca_srq *srq)
{
    struct hca_tm *tm    = hca_srq_tm(srq);
    enum hca_check check = hca_tm_op_check(op, tm);

    if (check != HCA_OK) {
        return check;
    }
    if (op->flags & PRM_TM_SW_CNT) {
        hca_tm_op_sync(op, srq, tm);
    }
    return hca_tm_op_apply(op, srq, tm);
}

enum hca_check hca_tm_op_execute(const struct hca_qp *qp,
                                 const struct hca_wqe *wqe)
{
    struct hca_tm_op op = {.wqe = wqe};
    struct hca_srq *srq;
    enum hca_check check;

    if (!qp->has_tm) {
        return hca_tm_op_bad(&op, HCA_CHECK_TM_SRQ, qp->srqn);
    }
    check = hca_tm_op_read(&op);
    if (check != HCA_OK) {
        return check;
    }
    srq = hca_obj_lock(HCA_KIND_SRQ, qp->srqn);
    if (srq == NULL) {
        return hca_tm_op_bad(&op, HCA_CHECK_TM_SRQ, qp->srqn);
    }
    check = hca_tm_op_run(&op, srq);
    hca_obj_unlock(srq);
    return check;
}
