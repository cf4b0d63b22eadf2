/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint that fails: its peer is lost (dcx_dci_fail.c), or the user gives
 * it up (uct_ep_invalidate(), a flush that cancels). After that it has no
 * initiator and gets none, all of its operations are refused, and it can only
 * be flushed, purged and destroyed. States are drawn in docs/dcx.md. Called in
 * the interface's thread.
 */
#include "dcx_dci_lost.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>


int uct_dcx_ep_fail(uct_dcx_ep_t *ep, ucs_status_t status)
{
    uct_dcx_iface_t *iface = uct_dcx_ep_iface(ep);
    uint16_t index         = ep->dci;

    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        return 0;
    }

    if ((index != UCT_DCX_NO_DCI) &&
        !uct_dcx_dci_is_shared(&iface->dci.dci[index])) {
        uct_dcx_tx_detach(iface, &iface->dci.dci[index]);
        ucs_assert(ep->dci == UCT_DCX_NO_DCI);
        index = UCT_DCX_NO_DCI;
    }

    uct_dcx_fc_ep_cleanup(iface, ep);
    ep->flags &= ~UCT_DCX_EP_FLAG_INVALIDATED;
    ep->flags |= UCT_DCX_EP_FLAG_FAILED;
    ep->error  = -status;
    ep->left   = index;
    ep->dci    = UCT_DCX_NO_DCI;
    uct_dcx_pending_failed(iface, ep);
    return !(ep->flags & UCT_DCX_EP_FLAG_MUTED);
}


ucs_status_t uct_dcx_ep_refuse(uct_dcx_ep_t *ep)
{
    uct_dcx_iface_t *iface = uct_dcx_ep_iface(ep);
    ucs_status_t status    = -ep->error;
    ucs_log_level_t level  = UCS_LOG_LEVEL_DEBUG;
    char name[UCT_DCX_PEER_NAME_MAX];

    if (!(ep->flags & UCT_DCX_EP_FLAG_REFUSED)) {
        ep->flags |= UCT_DCX_EP_FLAG_REFUSED;
        if (status != UCS_ERR_CANCELED) {
            level = iface->super.config.failure_level;
        }
        uct_dcx_peer_name(iface, ep, name);
        ucs_log(level, "%s:%u: operation to %s is refused: the endpoint has "
                "failed before (%s), and can only be destroyed",
                uct_dcx_iface_name(iface), iface->port.num, name,
                ucs_status_string(status));
    }
    return status;
}


/* --- shared initiators ---------------------------------------------------- */

/* Everything that was posted before an endpoint was given up has ended. */
static void uct_dcx_ep_done_mark(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                 ucs_status_t status)
{
    uct_dcx_ep_t *ep;

    if (status != UCS_OK) {
        return; /* it has failed before, or another mark follows */
    }

    ep = uct_dcx_dci_wqe_ep(dci, op->index);
    if ((ep != NULL) && uct_dcx_ep_fail(ep, UCS_ERR_CANCELED)) {
        ucs_debug("ep %p is invalidated", ep);
        uct_iface_handle_ep_err(ep->super.super.iface, &ep->super.super,
                                UCS_ERR_CANCELED);
    }
}


/* Others use the initiator too, and it is not stopped: a NOP marks the place
 * from which on the endpoint has failed, and what stands before ends as
 * cancelled when the device is done with it. */
static ucs_status_t uct_dcx_ep_post_mark(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    uct_dcx_tx_t tx = {
        .opcode = MLX5_OPCODE_NOP,
        .done   = uct_dcx_ep_done_mark
    };
    uct_dcx_wqe_t wqe;

    if (uct_dcx_sq_used(&dci->sq) > dci->sq.mask) {
        return uct_dcx_tx_no_resource(ep);
    }

    uct_dcx_dci_mark_canceled(dci, ep);
    uct_dcx_tx_begin(&wqe, dci, ep);
    uct_dcx_tx_post(dci, &wqe, &tx);
    uct_dcx_sq_look(&dci->sq); /* 'stop' stays beside 'pi', as it goes round */
    return UCS_OK;
}


/* --- what the user wants -------------------------------------------------- */

uct_dcx_dci_t *
uct_dcx_ep_attach_odd(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                      uct_dcx_dci_t *dci)
{
    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        uct_dcx_tx_detach(iface, dci);
        return NULL;
    }

    if (uct_dcx_dci_is_shared(dci)) {
        if (uct_dcx_ep_post_mark(ep, dci) != UCS_OK) {
            ep->dci = UCT_DCX_NO_DCI; /* there is no room, another time */
        }
        return NULL;
    }

    ep->flags &= ~UCT_DCX_EP_FLAG_INVALIDATED;
    uct_dcx_dci_to_error(dci);
    return dci;
}


ucs_status_t
uct_dcx_ep_flush_wait(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                      uct_completion_t *comp)
{
    ucs_status_t status;

    if (comp != NULL) {
        status = uct_dcx_flush_add(&dci->flushes, ep,
                                   uct_dcx_dci_is_shared(dci) ?
                                   ep->last : dci->sq.last, comp);
        if (status != UCS_OK) {
            return status;
        }
        dci->sq.odd = 1;
    }

    uct_dcx_tx_ask(dci);
    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}


/* The endpoint has no initiator, but a user is just being told of operations
 * that end; some of its own may be behind. */
static ucs_status_t
uct_dcx_ep_flush_lost(uct_dcx_ep_t *ep, uct_completion_t *comp)
{
    uct_dcx_lost_t *lost = uct_dcx_ep_iface(ep)->dci.failing;
    ucs_status_t status;

    if ((lost == NULL) || !uct_dcx_lost_has(lost, ep)) {
        uct_dcx_ep_fail(ep, UCS_ERR_CANCELED);
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if (comp != NULL) {
        status = uct_dcx_flush_add(&lost->flushes, ep, 0, comp);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_INPROGRESS;
}


static ucs_status_t uct_dcx_ep_cancel(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    ucs_status_t status = UCS_OK;

    if (!(ep->flags & (UCT_DCX_EP_FLAG_MUTED | UCT_DCX_EP_FLAG_FAILED))) {
        status = uct_dcx_dci_is_shared(dci) ? uct_dcx_ep_post_mark(ep, dci) :
                                              uct_dcx_dci_to_error(dci);
    }

    if (status == UCS_OK) {
        ep->flags |= UCT_DCX_EP_FLAG_MUTED;
    }
    return status;
}


/* No error of the peer is news to the user any more: he gives it up. */
ucs_status_t uct_dcx_ep_flush_cancel(uct_dcx_ep_t *ep, uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = uct_dcx_ep_iface(ep);
    uint16_t index         = uct_dcx_ep_last_dci(ep);
    uct_dcx_dci_t *dci;
    ucs_status_t status;

    if ((index == UCT_DCX_NO_DCI) ||
        uct_dcx_ep_is_idle(ep, &iface->dci.dci[index])) {
        ep->flags |= UCT_DCX_EP_FLAG_MUTED;
        return uct_dcx_ep_flush_lost(ep, comp);
    }

    dci    = &iface->dci.dci[index];
    status = uct_dcx_ep_cancel(ep, dci);
    if (status != UCS_OK) {
        return status;
    }
    return uct_dcx_ep_flush_wait(ep, dci, comp);
}


/* The error handler is called by progress. If there is no initiator to be had,
 * the error comes with the next one that there is something to send with. */
ucs_status_t uct_dcx_ep_invalidate(uct_ep_h tl_ep, unsigned flags)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;
    ucs_status_t status;

    if (ep->flags & (UCT_DCX_EP_FLAG_FAILED | UCT_DCX_EP_FLAG_INVALIDATED)) {
        return UCS_OK;
    }

    if (ep->dci == UCT_DCX_NO_DCI) {
        ep->flags |= UCT_DCX_EP_FLAG_INVALIDATED;
        uct_dcx_tx_get_dci(iface, ep);
        return UCS_OK;
    }

    dci = &iface->dci.dci[ep->dci];
    if (!uct_dcx_dci_is_shared(dci)) {
        return uct_dcx_dci_to_error(dci);
    }

    status = uct_dcx_ep_post_mark(ep, dci);
    if (status == UCS_OK) {
        ep->flags |= UCT_DCX_EP_FLAG_INVALIDATED;
    }
    return status;
}
