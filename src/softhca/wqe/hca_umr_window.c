/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR of memory windows, as set_bind_wr() of libmlx5's qp.c writes it: one KLM
 * inline to bind, none to unbind.
 */
#include "hca_umr_window.h"

#include <endian.h>
#include <string.h>

#define HCA_UMR_MASK_UNBIND \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)
#define HCA_UMR_MASK_BIND \
    (HCA_UMR_MASK_UNBIND | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | HCA_UMR_MASK_ACCESS)

enum { HCA_UMR_KLM = 4 }; /* octowords of the KLM, with its padding */

struct hca_umr_region {
    uint32_t key;
    uint64_t addr, length;
};

static enum hca_check hca_umr_check_form(const struct hca_umr *umr)
{
    uint64_t mask = umr->mask & ~(uint64_t)MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN;

    if (!(umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_FLAGS, umr->flags);
    }
    if ((umr->klms != 0) && (umr->klms != HCA_UMR_KLM)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_SIZE, umr->klms);
    }
    return (mask ==
            ((umr->klms != 0) ? HCA_UMR_MASK_BIND : HCA_UMR_MASK_UNBIND)) ?
               HCA_OK :
               hca_umr_bad(umr, HCA_CHECK_UMR_MASK, umr->mask);
}

static struct hca_umr_region hca_umr_read_region(const struct hca_umr *umr)
{
    struct mlx5_wqe_umr_klm_seg klm;

    memcpy(&klm, umr->wqe->raw + umr->at * HCA_UMR_OCTOWORD, sizeof(klm));
    return (struct hca_umr_region){
        .key    = be32toh(klm.mkey),
        .addr   = be64toh(klm.address),
        .length = be32toh(klm.byte_count),
    };
}

/* Checks that the region allows windows, that the range is within it, and that
 * the window gives only the right to read unless the region has local write. */
static enum hca_check hca_umr_check_region(const struct hca_umr *umr,
                                           const struct hca_umr_region *region,
                                           const struct hca_mkey *window)
{
    const struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY, region->key >> 8);
    uint64_t offset;

    if ((mkey == NULL) || (mkey->variant != (region->key & 0xff)) ||
        (mkey->type != HCA_MKEY_MR) || (mkey->pdn != window->pdn) ||
        (mkey->obj.dev != window->obj.dev) || mkey->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_REGION, region->key);
    }
    if (!(mkey->access & IBV_ACCESS_MW_BIND) ||
        ((umr->access & ~IBV_ACCESS_REMOTE_READ) &&
         !(mkey->access & IBV_ACCESS_LOCAL_WRITE))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_ACCESS, umr->access);
    }
    offset = region->addr - mkey->iova;
    if (!mkey->implicit_odp &&
        ((region->addr < mkey->iova) || (offset > mkey->length) ||
         (region->length > mkey->length - offset))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_BIND, region->addr);
    }
    return HCA_OK;
}

static enum hca_check hca_umr_check_bind(const struct hca_umr *umr,
                                         const struct hca_umr_region *region,
                                         const struct hca_mkey *window)
{
    if (umr->is_free || (umr->length == 0) || (umr->length != region->length)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_LEN, region->length);
    }
    if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !window->is_free) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_NOT_FREE, be32toh(umr->wqe->imm));
    }
    if (((umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
         (umr->qpn != umr->qp->obj.num)) ||
        (!(umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) &&
         (umr->qpn != HCA_UMR_ANY_QPN))) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_QPN, umr->qpn);
    }
    return hca_umr_check_region(umr, region, window);
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

/* Binds the window, or frees it. */
static void hca_umr_apply_window(const struct hca_umr *umr,
                                 const struct hca_umr_region *region,
                                 struct hca_mkey *window)
{
    uint32_t change = hca_umr_begin_change(window);

    window->variant = umr->variant;
    if (umr->mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) {
        window->qpn = umr->qpn;
    }
    if (umr->klms != 0) {
        window->access    = umr->access;
        window->iova      = umr->start;
        window->length    = umr->length;
        window->base_key  = region->key;
        window->base_addr = region->addr;
    }
    hca_umr_end_change(window, change, umr->klms == 0);
}

enum hca_check hca_umr_window(const struct hca_umr *umr,
                              struct hca_mkey *window)
{
    struct hca_umr_region region = {0};
    enum hca_check check         = hca_umr_check_form(umr);

    if (check != HCA_OK) {
        return check;
    }
    if (umr->klms != 0) {
        region = hca_umr_read_region(umr);
        check  = hca_umr_check_bind(umr, &region, window);
    } else {
        check = hca_umr_check_unbind(umr, window);
    }
    if (check == HCA_OK) {
        hca_umr_apply_window(umr, &region, window);
    }
    return check;
}
