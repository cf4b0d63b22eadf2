/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A UMR WQE in host order.
 */
#ifndef HCA_UMR_SEG_H
#define HCA_UMR_SEG_H

#include "hca_wqe.h"

#include <infiniband/mlx5dv.h>

#define HCA_UMR_ANY_QPN 0xffffffu

#define HCA_UMR_MASK_ACCESS \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | \
     MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

/* Octowords of the segments */
enum { HCA_UMR_CTRL = 3, HCA_UMR_MKEY = 4, HCA_UMR_OCTOWORD = 16 };

struct hca_umr {
    const struct hca_qp *qp;
    const struct hca_wqe *wqe;
    uint8_t flags;
    uint64_t mask;
    unsigned klms; /* octowords of the translations */
    unsigned at;   /* octoword of them, or of their address */
    bool is_free;
    uint32_t access;
    uint32_t qpn;
    uint8_t variant;
    uint64_t start, length;
};

static inline enum hca_check hca_umr_bad(const struct hca_umr *umr,
                                         enum hca_check check, uint64_t got)
{
    return hca_check_wqe(check, umr->wqe->qpn, umr->wqe->idx, got);
}

/* Returns true if @length bytes are all zero. */
bool hca_umr_is_zero(const void *ptr, size_t length);

/* Decodes control segment and context; the layout or window reads the
 * translations. @return HCA_OK, or an error, logged. */
enum hca_check hca_umr_seg_read(struct hca_umr *umr);

#endif
