/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* See hca_wqe_mem.h. */
#include "hca_wqe_mem.h"
#include "softhca/obj/hca_pcie.h"

static enum hca_check hca_wqe_mem_add_inline(const struct hca_wqe *wqe,
                                             const struct hca_wqe_seg *seg,
                                             struct hca_sgl *sgl)
{
    return ((seg->length == 0) ||
            hca_sgl_add(sgl, wqe->raw + seg->addr, seg->length)) ?
               HCA_OK :
               hca_check_wqe(HCA_CHECK_LKEY_PIECES, wqe->qpn, wqe->idx,
                             seg->addr);
}

static enum hca_check hca_wqe_mem_add_key(const struct hca_qp *qp,
                                          const struct hca_wqe *wqe,
                                          const struct hca_wqe_seg *seg,
                                          struct hca_sgl *sgl)
{
    bool is_in                   = (wqe->op->flags & HCA_OP_DATA_IN) != 0;
    const struct hca_key_use use = {
        .key    = seg->lkey,
        .pdn    = qp->pdn,
        .qpn    = wqe->qpn,
        .access = is_in ? IBV_ACCESS_LOCAL_WRITE : 0,
        .dev    = qp->obj.dev,
        .addr   = seg->addr,
        .length = seg->length,
    };
    enum hca_key_fault fault = hca_sgl_add_key(sgl, &use);

    return (fault == HCA_KEY_OK) ?
               HCA_OK :
               hca_check_wqe(HCA_CHECK_LKEY + fault - 1, wqe->qpn, wqe->idx,
                             (fault == HCA_KEY_BOUNDS) ? use.addr : use.key);
}

static inline enum hca_check hca_wqe_mem_add(const struct hca_qp *qp,
                                             const struct hca_wqe *wqe,
                                             const struct hca_wqe_seg *seg,
                                             struct hca_sgl *sgl)
{
    return seg->is_inline ? hca_wqe_mem_add_inline(wqe, seg, sgl) :
                            hca_wqe_mem_add_key(qp, wqe, seg, sgl);
}

enum hca_check hca_wqe_mem_map_list(const struct hca_qp *qp,
                                    const struct hca_wqe *wqe,
                                    struct hca_sgl *sgl)
{
    for (unsigned i = 0; i < wqe->num_segs; i++) {
        enum hca_check check = hca_wqe_mem_add(qp, wqe, &wqe->segs[i], sgl);

        if (check != HCA_OK) {
            return check;
        }
    }
    return HCA_OK;
}

enum hca_check hca_wqe_mem_put(const struct hca_wqe *wqe,
                               const struct hca_sgl *sgl, const void *data,
                               size_t size)
{
    struct hca_sgl src;

    hca_sgl_init(&src, hca_owner(hca_self));
    hca_sgl_add(&src, data, size);
    return (hca_sgl_copy(sgl, &src) == 0) ?
               HCA_OK :
               hca_check_wqe(HCA_CHECK_LKEY_FAULT, wqe->qpn, wqe->idx,
                             (uintptr_t)sgl->iov[0].iov_base);
}

enum hca_check hca_wqe_mem_scatter(struct hca_qp *qp, const struct hca_wqe *wqe,
                                   const void *data)
{
    enum hca_check check;
    struct hca_sgl sgl;

    hca_sgl_init(&sgl, hca_owner(hca_self));
    check = hca_wqe_mem_map(qp, wqe, &sgl);
    if (check == HCA_OK) {
        check = hca_wqe_mem_put(wqe, &sgl, data, wqe->length);
        if (hca_pcie_is_on()) {
            hca_pcie_add_sgl(&qp->pcie, HCA_PCIE_RESULT, &sgl, NULL, 0);
        }
    }
    hca_sgl_put(&sgl);
    return check;
}
