/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR as libmlx5 uses it for memory windows (providers/mlx5/qp.c,
 * set_bind_wr()): control segment, mkey context and, to bind, one KLM inline.
 * The ctrl segment's immediate names the key, of which only the index counts:
 * the new variant is in the context. Fields of the context that mkey_mask does
 * not select hold whatever the ring did.
 */
#include "hca_umr.h"
#include "hca_mkey.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#define HCA_UMR_ANY_QPN 0xffffffu

#define HCA_UMR_MASK_ACCESS \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)
#define HCA_UMR_MASK_UNBIND \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)
#define HCA_UMR_MASK_BIND \
    (HCA_UMR_MASK_UNBIND | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | HCA_UMR_MASK_ACCESS)
#define HCA_UMR_FLAGS \
    (MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE | \
     MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET | \
     MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN)

/* Octowords of the segments */
enum { HCA_UMR_CTRL = 3, HCA_UMR_MKEY = 4, HCA_UMR_KLM = 4 };

/* The segments in host order. */
struct hca_umr {
    const struct hca_qp  *qp;
    const struct hca_wqe *wqe;
    uint8_t               flags;
    uint64_t              mask;
    unsigned              klms; /* octowords, 0 to unbind */
    bool                  is_free;
    uint32_t              access;
    uint32_t              qpn;
    uint8_t               variant;
    uint64_t              start, length;
    uint32_t              base_key;
    uint64_t              base_addr, base_length;
};

static enum hca_check hca_umr_bad(const struct hca_umr *umr,
                                  enum hca_check check, uint64_t got)
{
    return hca_check_wqe(check, umr->wqe->qpn, umr->wqe->idx, got);
}

static bool hca_umr_is_zero(const void *ptr, size_t length)
{
    const uint8_t *byte = ptr;

    while ((length > 0) && (*byte == 0)) {
        byte++;
        length--;
    }
    return length == 0;
}

static enum hca_check hca_umr_read_ctrl(struct hca_umr *umr)
{
    struct mlx5_wqe_umr_ctrl_seg seg;
    unsigned need = umr->wqe->body_at + HCA_UMR_CTRL + HCA_UMR_MKEY;

    if (umr->wqe->ds < need) {
        return hca_umr_bad(umr, HCA_CHECK_DS_SHORT, umr->wqe->ds);
    }
    memcpy(&seg, umr->wqe->raw + umr->wqe->body_at * 16, sizeof(seg));
    umr->flags = seg.flags;
    umr->mask  = be64toh(seg.mkey_mask);
    umr->klms  = be16toh(seg.klm_octowords);
    if ((seg.flags & ~HCA_UMR_FLAGS) ||
        !(seg.flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_FLAGS, seg.flags);
    }
    if (!hca_umr_is_zero(seg.rsvd0, sizeof(seg.rsvd0)) ||
        !hca_umr_is_zero(seg.rsvd1, sizeof(seg.rsvd1)) ||
        (seg.translation_offset != 0)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_RSVD,
                           be16toh(seg.translation_offset));
    }
    if ((umr->klms != 0) && (umr->klms != HCA_UMR_KLM)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, umr->klms);
    }
    return (umr->wqe->ds == need + umr->klms) ? HCA_OK :
           hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, umr->wqe->ds);
}

static enum hca_check hca_umr_check_mask(const struct hca_umr *umr)
{
    uint64_t mask = umr->mask & ~(uint64_t)MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN;

    return (mask == ((umr->klms != 0) ? HCA_UMR_MASK_BIND :
                                        HCA_UMR_MASK_UNBIND)) ?
           HCA_OK : hca_umr_bad(umr, HCA_CHECK_UMR_MASK, umr->mask);
}

static uint32_t hca_umr_access(uint8_t flags)
{
    return ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE) ?
            IBV_ACCESS_LOCAL_WRITE : 0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE) ?
            IBV_ACCESS_REMOTE_WRITE : 0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ) ?
            IBV_ACCESS_REMOTE_READ : 0) |
           ((flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC) ?
            IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static void hca_umr_read_mkey(struct hca_umr *umr)
{
    unsigned at = umr->wqe->body_at + HCA_UMR_CTRL;
    struct mlx5_wqe_mkey_context_seg seg;
    struct mlx5_wqe_umr_klm_seg klm;

    memcpy(&seg, umr->wqe->raw + at * 16, sizeof(seg));
    umr->variant = be32toh(seg.qpn_mkey) & 0xff;
    umr->qpn     = be32toh(seg.qpn_mkey) >> 8;
    umr->is_free = (seg.free & MLX5_WQE_MKEY_CONTEXT_FREE) != 0;
    if (umr->klms == 0) {
        return;
    }
    umr->access = hca_umr_access(seg.access_flags);
    umr->start  = be64toh(seg.start_addr);
    umr->length = be64toh(seg.len);
    memcpy(&klm, umr->wqe->raw + (at + HCA_UMR_MKEY) * 16, sizeof(klm));
    umr->base_key    = be32toh(klm.mkey);
    umr->base_addr   = be64toh(klm.address);
    umr->base_length = be32toh(klm.byte_count);
}

/* What a window may grant is what the region allows its owner. */
static enum hca_check hca_umr_check_region(const struct hca_umr *umr,
                                           const struct hca_mkey *window)
{
    const struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY,
                                               umr->base_key >> 8);
    uint64_t offset;

    if ((mkey == NULL) || (mkey->variant != (umr->base_key & 0xff)) ||
        (mkey->type != HCA_MKEY_MR) || (mkey->pdn != window->pdn) ||
        (mkey->obj.dev != window->obj.dev) || mkey->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_REGION, umr->base_key);
    }
    if (!(mkey->access & IBV_ACCESS_MW_BIND) ||
        ((umr->access & ~IBV_ACCESS_REMOTE_READ) &&
         !(mkey->access & IBV_ACCESS_LOCAL_WRITE))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_ACCESS, umr->access);
    }
    offset = umr->base_addr - mkey->iova;
    if (!mkey->implicit_odp &&
        ((umr->base_addr < mkey->iova) || (offset > mkey->length) ||
         (umr->base_length > mkey->length - offset))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_BIND, umr->base_addr);
    }
    return HCA_OK;
}

static enum hca_check hca_umr_check_bind(const struct hca_umr *umr,
                                         const struct hca_mkey *window)
{
    if (umr->is_free || (umr->length == 0) ||
        (umr->length != umr->base_length)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_LEN, umr->base_length);
    }
    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !window->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_NOT_FREE, umr->wqe->imm);
    }
    if (((umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
         (umr->qpn != umr->qp->obj.num)) ||
        (!(umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
         (umr->qpn != HCA_UMR_ANY_QPN))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_QPN, umr->qpn);
    }
    return hca_umr_check_region(umr, window);
}

static enum hca_check hca_umr_check_unbind(const struct hca_umr *umr,
                                           const struct hca_mkey *window)
{
    if (!umr->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, 0);
    }
    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN) &&
        (window->qpn != umr->qp->obj.num)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_QPN, window->qpn);
    }
    return HCA_OK;
}

static enum hca_check hca_umr_check(const struct hca_umr *umr,
                                    const struct hca_mkey *window)
{
    if ((window->type != HCA_MKEY_MW) ||
        (window->obj.dev != umr->qp->obj.dev)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_TYPE, be32toh(umr->wqe->imm));
    }
    if (window->pdn != umr->qp->pdn) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_PD, window->pdn);
    }
    return (umr->klms != 0) ? hca_umr_check_bind(umr, window) :
                              hca_umr_check_unbind(umr, window);
}

/* A use of the window that is under way may see half of it: it took the range
 * it had checked, and the new one is granted to the same peer. */
static void hca_umr_apply(const struct hca_umr *umr, struct hca_mkey *window)
{
    window->is_free = true;
    window->variant = umr->variant;
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) {
        window->qpn = umr->qpn;
    }
    if (umr->klms != 0) {
        window->access    = umr->access;
        window->iova      = umr->start;
        window->length    = umr->length;
        window->base_key  = umr->base_key;
        window->base_addr = umr->base_addr;
        atomic_thread_fence(memory_order_release);
        window->is_free = false;
    }
}

enum hca_check hca_umr_execute(const struct hca_qp *qp,
                               const struct hca_wqe *wqe)
{
    struct hca_umr umr = {.qp = qp, .wqe = wqe};
    struct hca_mkey *window;
    enum hca_check check;

    check = hca_umr_read_ctrl(&umr);
    if (check == HCA_OK) {
        check = hca_umr_check_mask(&umr);
    }
    if (check != HCA_OK) {
        return check;
    }
    hca_umr_read_mkey(&umr);
    window = hca_obj_lock(HCA_KIND_MKEY, be32toh(wqe->imm) >> 8);
    if (window == NULL) {
        return hca_umr_bad(&umr, HCA_CHECK_UMR_KEY, be32toh(wqe->imm));
    }
    check = hca_umr_check(&umr, window);
    if (check == HCA_OK) {
        hca_umr_apply(&umr, window);
    }
    hca_obj_unlock(window);
    return check;
}

enum hca_check hca_umr_local_inval(const struct hca_qp *qp,
                                   const struct hca_wqe *wqe)
{
    struct hca_key_use use = {
        .key = be32toh(wqe->imm),
        .pdn = qp->pdn,
        .qpn = qp->obj.num,
        .dev = qp->obj.dev,
    };

    return (hca_mkey_invalidate(&use) == HCA_KEY_OK) ? HCA_OK :
           hca_check_wqe(HCA_CHECK_INVAL_KEY, wqe->qpn, wqe->idx, use.key);
}
