/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A reliable connected QP by DEVX that is connected to itself: for work that
 * the device does in a send queue without sending anything, as only a QP in
 * state RTS executes its WQEs. A list of tagged buffers has one, and so has the
 * UMR queue of a domain. The caller gives the path to its own port. Used by one
 * thread at a time.
 */
#ifndef UCT_DCX_DEVX_QP_H
#define UCT_DCX_DEVX_QP_H

#include "dcx_devx.h"
#include "dcx_sq.h"
#include "common/prm_cmd.h"


/* The path to the own port */
typedef struct uct_dcx_devx_path {
    struct prm_ads ads;
    uint8_t mtu; /* enum ibv_mtu */
} uct_dcx_devx_path_t;


typedef struct uct_dcx_devx_qp {
    uct_dcx_sq_t sq;
    uct_dcx_devx_ring_t ring;
    struct mlx5dv_devx_uar *uar; /* page of the register */
    uct_dcx_bf_t bf;             /* of this QP alone, unless libmlx5 shares
                                  * a page for doorbells only */
    uct_dcx_devx_obj_t obj;
    uct_dcx_devx_path_t path;
} uct_dcx_devx_qp_t;


typedef struct uct_dcx_devx_qp_params {
    const uct_dcx_device_t *dev;
    const uct_dcx_devx_path_t *path;
    const char *name; /* purpose: "command QP"; not copied */
    uint32_t cqn;
    uint32_t srqn;   /* SRQ or XRQ; 0: it receives nothing */
    unsigned num_bb; /* WQEBBs of the ring; a power of two */
    unsigned max_bb; /* WQEBBs of the longest WQE */
} uct_dcx_devx_qp_params_t;


/* Creates a QP, in RTS. Logs errors. */
ucs_status_t uct_dcx_devx_qp_init(uct_dcx_devx_qp_t *qp,
                                  const uct_dcx_devx_qp_params_t *params);

/* Brings a failed QP through RESET to RTS, its ring empty. Logs errors. */
ucs_status_t uct_dcx_devx_qp_restart(uct_dcx_devx_qp_t *qp);

/* Returns 1 if the QP executes WQEs: its state, which the device tells, is
 * RTS. */
int uct_dcx_devx_qp_is_ready(const uct_dcx_devx_qp_t *qp);

void uct_dcx_devx_qp_cleanup(uct_dcx_devx_qp_t *qp);

#endif
