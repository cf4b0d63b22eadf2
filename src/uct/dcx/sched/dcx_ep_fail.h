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

/* Others use the initiator too, and it is not stopped: a NOP marks the place
 * from which on the endpoint has failed, and what stands before ends as
 * cancelled when the device is done with it. */
ucs_status_t uct_dcx_ep_post_mark(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci);

/* Takes an exclusive queue to the error state and sees to it that a completion
 * with error comes, even if nothing was outstanding any more. */
ucs_status_t uct_dcx_ep_dci_to_error(uct_dcx_dci_t *dci);

/* 'dci' was taken for an endpoint that has failed, or is to. NULL: it went back
 * to the pool. */
uct_dcx_dci_t *
uct_dcx_ep_attach_failed(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                         uct_dcx_dci_t *dci);

#endif
