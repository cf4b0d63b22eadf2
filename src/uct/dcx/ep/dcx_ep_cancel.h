/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Invalidates or cancels endpoints, and waits in a flush.
 */
#ifndef UCT_DCX_EP_CANCEL_H
#define UCT_DCX_EP_CANCEL_H

#include "dcx_ep.h"


/* Starts a flush of @ep: @comp, if it is not NULL, is called when all its WQEs
 * that are outstanding on @dci have completed. Returns UCS_INPROGRESS or
 * UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_ep_flush_wait(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                                   uct_completion_t *comp);

/* Implements uct_ep_flush() with UCT_FLUSH_FLAG_CANCEL. */
ucs_status_t uct_dcx_ep_flush_cancel(uct_dcx_ep_t *ep, uct_completion_t *comp);

/* Operation of UCT's tables */
ucs_status_t uct_dcx_ep_invalidate(uct_ep_h ep,
                                   uct_dcx_ucx_ep_invalidate_arg_t arg);

#endif
