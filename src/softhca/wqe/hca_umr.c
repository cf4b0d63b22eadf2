/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Executes UMR WQEs. The immediate of the ctrl segment names the mkey by its
 * index; the 8 lowest bits are ignored, as the new variant is in the mkey
 * context (libmlx5's qp.c: set_bind_wr(), mlx5_send_wr_mkey_configure()).
 */
#include "hca_umr.h"
#include "hca_umr_layout.h"
#include "hca_umr_window.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_pcie.h"

#include <endian.h>
#include <string.h>

static enum hca_check hca_umr_change(const struct hca_umr *umr,
                                     struct hca_mkey *key)
{
    bool is_window = (key->type == HCA_MKEY_MW);

    if (!key->has_umr || (key->obj.dev != umr->qp->obj.dev)) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_TYPE, be32toh(umr->wqe->imm));
    }
    if (key->pdn != umr->qp->pdn) {
        return hca_umr_bad(umr, HCA_CHECK_UMR_PD, key->pdn);
    }
    return is_window ? hca_umr_window(umr, key) : hca_umr_layout(umr, key);
}

/* Counts the DMA read of translations in memory, once, although this device
 * reads them more than once. */
static void hca_umr_count(struct hca_qp *qp, const struct hca_umr *umr)
{
    struct mlx5_wqe_data_seg seg;

    if ((umr->klms > 0) && !(umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE)) {
        memcpy(&seg, umr->wqe->raw + umr->at * HCA_UMR_OCTOWORD, sizeof(seg));
        hca_pcie_add(&qp->pcie, HCA_PCIE_LIST, be64toh(seg.addr),
                     umr->klms * HCA_UMR_OCTOWORD);
    }
}

enum hca_check hca_umr_execute(struct hca_qp *qp, const struct hca_wqe *wqe)
{
    struct hca_umr umr   = {.qp = qp, .wqe = wqe};
    enum hca_check check = hca_umr_seg_read(&umr);
    struct hca_mkey *key;

    if (check != HCA_OK) {
        return check;
    }
    key = hca_obj_lock(HCA_KIND_MKEY, be32toh(wqe->imm) >> 8);
    if (key == NULL) {
        return hca_umr_bad(&umr, HCA_CHECK_UMR_KEY, be32toh(wqe->imm));
    }
    if (hca_pcie_is_on()) {
        hca_umr_count(qp, &umr);
    }
    check = hca_umr_change(&umr, key);
    hca_obj_unlock(key);
    return check;
}

static struct hca_key_use hca_umr_use(const struct hca_qp *qp, uint32_t key)
{
    return (struct hca_key_use){
        .key = key,
        .pdn = qp->pdn,
        .qpn = qp->obj.num,
        .dev = qp->obj.dev,
    };
}

void hca_umr_free(const struct hca_qp *qp, const struct hca_wqe *wqe)
{
    const struct hca_mkey *mkey = hca_obj_peek(HCA_KIND_MKEY,
                                               be32toh(wqe->imm) >> 8);
    struct hca_key_use use;

    if (mkey != NULL) {
        use = hca_umr_use(qp, hca_key(mkey));
        hca_mkey_invalidate_local(&use);
    }
}

enum hca_check hca_umr_local_inval(const struct hca_qp *qp,
                                   const struct hca_wqe *wqe)
{
    struct hca_key_use use = hca_umr_use(qp, be32toh(wqe->imm));

    return (hca_mkey_invalidate_local(&use) == HCA_KEY_OK) ?
               HCA_OK :
               hca_check_wqe(HCA_CHECK_INVAL_KEY, wqe->qpn, wqe->idx, use.key);
}
