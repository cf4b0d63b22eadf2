/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint that fails: its peer is lost (recover/), or the user cancels it
 * (ep/dcx_ep_cancel.c). After that it has no initiator and gets none, all of
 * its operations are refused, and it can only be flushed, purged and destroyed.
 * docs/dcx.md has a diagram of the states. Called in the interface's thread.
 */
#ifndef UCT_DCX_EP_FAIL_H
#define UCT_DCX_EP_FAIL_H

#include "uct/dcx/queue/dcx_endpoint.h"


/* Fails an endpoint: operations are refused with @status from now on. @ep has
 * no operations on an exclusive initiator. Returns non-zero if the error
 * handler has to be called: not if the endpoint has failed before, or has
 * UCT_DCX_EP_FLAG_MUTED. */
int uct_dcx_ep_fail(uct_dcx_ep_t *ep, ucs_status_t status);

/* Returns the error of a failed endpoint; logs it the first time. */
ucs_status_t uct_dcx_ep_refuse(uct_dcx_ep_t *ep);

/* Returns the status of an operation that cannot be posted: the error of a
 * failed endpoint, otherwise UCS_ERR_NO_RESOURCE. Fails the endpoint first if
 * all initiators that it could get are lost. While its interface is closed,
 * returns UCS_ERR_IO_ERROR instead, as the error is going to be reported. */
ucs_status_t uct_dcx_ep_no_resource(uct_dcx_ep_t *ep);

/* Makes the endpoint, which has @dci, fail with a later completion, which
 * progress handles. An exclusive queue is moved to the error state. A shared
 * one is not stopped, as others use it: a NOP marks the place from which on the
 * endpoint has failed. Operations before it end with UCS_ERR_CANCELED when the
 * device has completed them. Does nothing with an exclusive one that is LOST:
 * the endpoint fails soon. Returns UCS_ERR_IO_ERROR, which was logged, or
 * as uct_dcx_ep_no_resource() if a shared one has no room. */
ucs_status_t uct_dcx_ep_cancel(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci);

/* Ends the NOP of uct_dcx_ep_cancel() on a shared initiator: fails the
 * endpoint, as all its previous WQEs have completed. */
void uct_dcx_ep_done_mark(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                          ucs_status_t status);

#endif
