/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Failures: read from an error completion, and reported to the user. Used by
 * the thread that progresses the interface.
 */
#ifndef UCT_DCX_FAILURE_H
#define UCT_DCX_FAILURE_H

#include "uct/dcx/sched/dcx_peer.h"


/* Reads the failure from a completion of @dci. Logs it if the endpoint of the
 * WQE was destroyed. */
void uct_dcx_failure_parse(uct_dcx_failure_t *failure,
                           const uct_dcx_port_t *port, const uct_dcx_dci_t *dci,
                           const struct mlx5_cqe64 *cqe);

/* Calls the error handler of @ep, which may destroy @ep, and logs the failure.
 * As data is lost, a failure is fatal without a handler, or if the handler
 * returns an error. */
void uct_dcx_failure_report(const uct_dcx_failure_t *failure,
                            const uct_dcx_dci_t *dci, uct_dcx_ep_t *ep);

/* Calls the error handler of @ep with UCS_ERR_IO_ERROR, as its interface has
 * failed. It may destroy @ep. Logs a fatal failure; the event that is the cause
 * is in the log. */
void uct_dcx_failure_report_closed(uct_dcx_ep_t *ep);


/* Returns the failure of a WQE's stream, during recovery; its status is UCS_OK
 * if there was none. */
static inline uct_dcx_failure_t *
uct_dcx_failure_of(const uct_dcx_dci_t *dci,
                   const struct mlx5_wqe_ctrl_seg *ctrl)
{
    return &dci->failures[be16toh(ctrl->dci_stream_channel_id)];
}


/* Returns non-zero if the WQE did not fail itself, but was flushed after others
 * failed. */
static inline int uct_dcx_failure_is_flush(const uct_dcx_failure_t *failure)
{
    return failure->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
}


/* Returns non-zero if the target answered that it did not execute the WQE. */
static inline int uct_dcx_failure_is_refusal(const uct_dcx_failure_t *failure)
{
    return (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_OP_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}

#endif
