/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The UMR queue of a memory domain: gives keys their layouts and takes them
 * away, by WQEs of one small RC QP that is connected to itself (libmlx5 has UMR
 * on RC only). Several WQEs go under one doorbell and have one completion; they
 * are executed in order. Called with the lock of the keys (dcx_key_queue.c).
 */
#ifndef UCT_DCX_UMR_H
#define UCT_DCX_UMR_H

#include "dcx_umr_wqe.h"
#include "uct/dcx/dev/dcx_cq.h"
#include "uct/dcx/dev/dcx_devx_qp.h"


enum {
    UCT_DCX_UMR_NUM_BB = 256, /* WQEBBs of the ring */

    /* WQEBBs to replace a layout */
    UCT_DCX_UMR_MAX_BB = UCT_DCX_UMR_INVALIDATE_BB + UCT_DCX_UMR_LAYOUT_BB
};


typedef struct uct_dcx_umr {
    uct_dcx_devx_qp_t qp;
    uct_dcx_cq_t cq;
    struct mlx5_wqe_ctrl_seg *unrung; /* WQE written last, if no doorbell was
                                       * rung since */
    uint64_t doorbell;                /* doorbell value of @unrung */
    uint16_t first;                   /* its first WQEBB */
    uint16_t rung;   /* end of the WQEs for which the doorbell was rung */
    uint16_t failed; /* first WQEBB of the WQE that failed */
    const uct_dcx_syndrome_t *error; /* cause of the failure */

    /* for each WQE with a completion: end of the WQEs that it completes */
    uint16_t ends[UCT_DCX_UMR_NUM_BB];
    uint64_t num_doorbells;
    uint64_t fence;      /* value of @carry for a WQE behind a UMR */
    unsigned max_inline; /* translations in a WQE */
} uct_dcx_umr_t;


/* Creates the queue. Logs errors. */
ucs_status_t uct_dcx_umr_init(uct_dcx_umr_t *umr, const uct_dcx_device_t *dev,
                              const uct_dcx_devx_path_t *path);

void uct_dcx_umr_cleanup(uct_dcx_umr_t *umr);

/* Returns 1 if an invalidation and a layout may be posted now. */
static inline int uct_dcx_umr_is_available(const uct_dcx_umr_t *umr)
{
    return uct_dcx_sq_is_available(&umr->qp.sq);
}

static inline int uct_dcx_umr_is_idle(const uct_dcx_umr_t *umr)
{
    return uct_dcx_sq_used(&umr->qp.sq) == 0;
}

/* Write a WQE for key @number; the device does not read it before
 * uct_dcx_umr_ring(). @list has room for the translations, unless they are
 * inline; it must not change before the WQE has completed. There is room in the
 * queue. */
void uct_dcx_umr_post_layout(uct_dcx_umr_t *umr, uint32_t number,
                             const uct_dcx_sgl_t *layout,
                             uct_dcx_umr_klm_t *list, uint32_t list_lkey);
void uct_dcx_umr_post_invalidate(uct_dcx_umr_t *umr, uint32_t number);

/* Rings one doorbell for all WQEs that were written since the last one; none if
 * there are none. */
void uct_dcx_umr_ring(uct_dcx_umr_t *umr);

/* Takes completions. All WQEs before qp.sq.ci have ended then. Returns
 * UCS_ERR_IO_ERROR if a WQE has failed: umr->failed and umr->error describe it,
 * and no WQE behind it is executed. */
ucs_status_t uct_dcx_umr_poll(uct_dcx_umr_t *umr);

/* Restarts the queue after a failure, empty. If that fails, the queue is
 * destroyed, so that none of its WQEs is executed later. Logs errors. */
ucs_status_t uct_dcx_umr_restart(uct_dcx_umr_t *umr);

#endif
