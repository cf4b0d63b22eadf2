/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Decodes UMR WQEs: control segment and mkey context. Fields of the context
 * that mkey_mask does not select may hold previous contents of the ring.
 */
#include "hca_umr_seg.h"
#include "softhca/fabric/hca_caps.h"

#include <endian.h>
#include <string.h>

/* Flags that libmlx5 knows. Only the kernel uses bit 6 (MLX5_UMR_CHECK_FREE of
 * linux/mlx5/device.h: fails if the mkey is free). */
#define HCA_UMR_FLAGS \
    (MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE | \
     MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET | \
     MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN)

bool hca_umr_is_zero(const void *ptr, size_t length)
{
    const uint8_t *byte = ptr;

    while ((length > 0) && (*byte == 0)) {
        byte++;
        length--;
    }
    return length == 0;
}

/* Translations that fit: 63 octowords of a WQE, less 8 of the segments before
 * them, in multiples of 4 */
#define HCA_UMR_MAX_INLINE 52u

/* Checks the size of the translations, a multiple of 64 bytes
 * (MLX5_UMR_FLEX_ALIGNMENT). They are inline, or a data segment has their
 * address (struct mlx5r_umr_wqe of mlx5_ib's umr.h). */
static enum hca_check hca_umr_check_size(const struct hca_umr *umr)
{
    bool is_inline = (umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE) != 0;
    unsigned more  = (is_inline || (umr->klms == 0)) ? umr->klms : 1;

    if ((umr->klms % 4 != 0) ||
        (is_inline &&
         (umr->klms > hca_limit(HCA_LIMIT_INLINE_KLM, HCA_UMR_MAX_INLINE)))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, umr->klms);
    }
    return (umr->wqe->ds == umr->at + more) ?
               HCA_OK :
               hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, umr->wqe->ds);
}

static enum hca_check hca_umr_read_ctrl(struct hca_umr *umr)
{
    struct mlx5_wqe_umr_ctrl_seg seg;

    umr->at = umr->wqe->body_at + HCA_UMR_CTRL + HCA_UMR_MKEY;
    if (umr->wqe->ds < umr->at) {
        return hca_umr_bad(umr, HCA_CHECK_DS_SHORT, umr->wqe->ds);
    }
    memcpy(&seg, umr->wqe->raw + umr->wqe->body_at * 16, sizeof(seg));
    umr->flags = seg.flags;
    umr->mask  = be64toh(seg.mkey_mask);
    umr->klms  = be16toh(seg.klm_octowords);
    if (seg.flags & ~HCA_UMR_FLAGS) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_FLAGS, seg.flags);
    }
    if (!hca_umr_is_zero(seg.rsvd0, sizeof(seg.rsvd0)) ||
        !hca_umr_is_zero(seg.rsvd1, sizeof(seg.rsvd1)) ||
        (seg.translation_offset != 0)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_RSVD,
                           be16toh(seg.translation_offset));
    }
    return hca_umr_check_size(umr);
}

static uint32_t hca_umr_access(uint8_t flags)
{
    return ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE) ?
                IBV_ACCESS_LOCAL_WRITE :
                0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE) ?
                IBV_ACCESS_REMOTE_WRITE :
                0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ) ?
                IBV_ACCESS_REMOTE_READ :
                0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC) ?
                IBV_ACCESS_REMOTE_ATOMIC :
                0);
}

static void hca_umr_read_mkey(struct hca_umr *umr)
{
    struct mlx5_wqe_mkey_context_seg seg;

    memcpy(&seg, umr->wqe->raw + (umr->wqe->body_at + HCA_UMR_CTRL) * 16,
           sizeof(seg));
    umr->variant = be32toh(seg.qpn_mkey) & 0xff;
    umr->qpn     = be32toh(seg.qpn_mkey) >> 8;
    umr->is_free = (seg.free & MLX5_WQE_MKEY_CONTEXT_FREE) != 0;
    umr->access  = hca_umr_access(seg.access_flags);
    umr->start   = be64toh(seg.start_addr);
    umr->length  = be64toh(seg.len);
}

enum hca_check hca_umr_seg_read(struct hca_umr *umr)
{
    enum hca_check check = hca_umr_read_ctrl(umr);

    if (check == HCA_OK) {
        hca_umr_read_mkey(umr);
    }
    return check;
}
