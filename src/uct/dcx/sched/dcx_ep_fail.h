/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint that fails: its peer is lost (recover/), or the user cancels it
 * (ep/dcx_ep_cancel.c). After that it has no initiator and gets none, all of
 * its operations are refused, and it can only be flushed, purged and destroyed.
 * States are drawn in docs/dcx.md. Called in the interface's thread.
 */
#ifndef UCT_DCX_EP_FAIL_H
#define UCT_DCX_EP_FAIL_H

#include "uct/dcx/queue/dcx_endpoint.h"


/* From now on operations are refused with 'status'. It has no operations on an
 * exclusive initiator. Returns whether the error handler has to be called: not
 * if it has failed before, or the user gave it up. */
int uct_dcx_ep_fail(uct_dcx_ep_t *ep, ucs_status_t status);

/* The error of a failed endpoint. The first time it is logged. */
ucs_status_t uct_dcx_ep_refuse(uct_dcx_ep_t *ep);

/* An operation returns this if it cannot be posted now, or never will be. */
ucs_status_t uct_dcx_ep_no_resource(uct_dcx_ep_t *ep);

/* The endpoint, which has 'dci', fails when a completion comes that progress
 * finds. An exclusive queue goes to the error state. A shared one is not
 * stopped, as others use it: a NOP marks the place from which on the endpoint
 * has failed, and what stands before ends as canceled when the device is done
 * with it. */
ucs_status_t uct_dcx_ep_cancel(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci);

#endif
