/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The command queue of a list of tagged buffers: a reliable connected QP by
 * DEVX that is attached to the XRQ and connected to itself, as only a QP in
 * state RTS has its list operations executed. Nothing is ever sent. Each
 * operation takes one WQEBB; its completion, if it requests one, is one of the
 * receive CQ, and so is the end of the queue in an error: its number is in
 * sop_drop_qpn then.
 */
#ifndef UCT_DCX_TM_CMD_H
#define UCT_DCX_TM_CMD_H

#include "uct/dcx/dev/dcx_devx.h"
#include "uct/dcx/dev/dcx_sq.h"
#include "uct/dcx/queue/dcx_queues.h"


typedef struct uct_dcx_tm_cmd {
    uct_dcx_sq_t           sq;
    uct_dcx_devx_ring_t    ring;
    struct mlx5dv_devx_uar *uar;  /* page of the doorbell */
    uct_dcx_devx_obj_t     qp;
} uct_dcx_tm_cmd_t;


/* Of a list of 'num_tags' buffers: each may be appended and removed before the
 * device has got to either. The receive queue of 'queues' is there. Errors are
 * logged. */
ucs_status_t uct_dcx_tm_cmd_init(uct_dcx_tm_cmd_t *cmd,
                                 uct_dcx_queues_t *queues, unsigned num_tags);

void uct_dcx_tm_cmd_cleanup(uct_dcx_tm_cmd_t *cmd);

#endif
