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

/* Octowords of the segments; bytes of an octoword */
enum { HCA_UMR_CTRL = 3, HCA_UMR_MKEY = 4, HCA_UMR_OCTOWORD = 16 };

struct hca_umr {
    const struct hca_qp *qp;
    const struct hca_wqe *wqe;
    uint8_t flags; /* MLX5_WQE_UMR_CTRL_FLAG_* */
    uint64_t mask; /* MLX5_WQE_UMR_CTRL_MKEY_MASK_* */
    unsigned klms; /* octowords of the translations */
    unsigned at;   /* octoword of the first, or of their data segment */
    /* mkey context: fields are valid if @mask selects them */
    bool is_free;
    uint32_t access; /* enum ibv_access_flags */
    uint32_t qpn;
    uint8_t variant;
    uint64_t start, length;
};

static inline enum hca_check hca_umr_bad(const struct hca_umr *umr,
                                         enum hca_check check, uint64_t got)
{
    return hca_check_wqe(check, umr->wqe->qpn, umr->wqe->idx, got);
}

/* Begin and end a change of an mkey. An access under way that sees half of it
 * ends with an error: pairs with hca_mkey_is_same(). A process that dies in
 * between leaves the count odd and the mkey free.
 * @return the count, for the end */
static inline uint32_t hca_umr_begin_change(struct hca_mkey *key)
{
    uint32_t change = atomic_load(&key->change) | 1;

    key->is_free = true;
    atomic_store(&key->change, change);
    atomic_thread_fence(memory_order_seq_cst);
    return change;
}

static inline void hca_umr_end_change(struct hca_mkey *key, uint32_t change,
                                      bool is_free)
{
    atomic_store(&key->change, change + 1);
    key->is_free = is_free;
}

/* Returns true if @length bytes are all zero. */
bool hca_umr_is_zero(const void *ptr, size_t length);

/* Decodes control segment and mkey context; the caller has set qp and wqe.
 * hca_umr_layout() or hca_umr_window() reads the translations.
 * @return HCA_OK, or an error, logged. */
enum hca_check hca_umr_seg_read(struct hca_umr *umr);

#endif
