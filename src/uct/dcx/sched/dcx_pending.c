/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The wait queues of endpoints; see dcx_pending.h. An endpoint waits as an
 * arbiter group of UCX. While it has requests, it is in the wait queue of the
 * set if it has no initiator, otherwise in the initiator's; progress serves
 * those initiators on which WQEBBs have become available.
 *
 * While endpoints wait for an initiator, each holder of an exclusive one is
 * limited to its quota. While endpoints are in the wait queue of an initiator,
 * only these may post on it, and no others overtake them from a callback: it is
 * in state WAITQ, and @served is the endpoint of the request that is being
 * called.
 */
#include "dcx_pending.h"


/* Puts the requests into the wait queue of the endpoint's initiator, or of the
 * set; into none if the endpoint is blocked. */
static void uct_dcx_pending_enter(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->state == UCT_DCX_EP_BLOCKED) {
        return;
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &set->dci[ep->dci];
        ucs_arbiter_group_schedule(&dci->waitq, &ep->pending);
        uct_dcx_tx_wait(dci, ep);
        return;
    }

    ucs_arbiter_group_schedule(&set->waitq, &ep->pending);
    if (!set->throttled) {
        uct_dcx_tx_throttle(set);
        set->todo |= UCT_DCX_TODO_PENDING; /* serving stops the throttling */
    }
}


/* Adds a request. If the endpoint has pending requests already, the new one
 * goes behind them, even if it could be sent. A request that waits for a layout
 * is called in each call of progress: see uct_dcx_pending_refused(). If the
 * endpoint has failed, the caller tries again and gets the error. */
ucs_status_t uct_dcx_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                    unsigned flags)
{
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    int waits_for_layout   = ep->flags & UCT_DCX_EP_FLAG_LAYOUT;

    ep->flags &= ~UCT_DCX_EP_FLAG_LAYOUT;
    if ((ep->state == UCT_DCX_EP_FAILED) ||
        (ucs_arbiter_group_is_empty(&ep->pending) && !waits_for_layout &&
         uct_dcx_tx_can_send(set, ep))) {
        return UCS_ERR_BUSY;
    }

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_arb_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);
    uct_pending_req_arb_group_push(&ep->pending, req);
    UCT_TL_EP_STAT_PEND(&ep->super);
    if (waits_for_layout) {
        uct_dcx_pending_resume(set, ep); /* no completion calls it */
    } else {
        uct_dcx_pending_enter(set, ep);
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_tx_hold(set, &set->dci[ep->dci]);
    }
    return UCS_OK;
}


void uct_dcx_pending_lost_dci(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                              uct_dcx_dci_t *dci)
{
    if (!ucs_arbiter_group_is_empty(&ep->pending)) {
        ucs_arbiter_group_desched(&dci->waitq, &ep->pending);
        uct_dcx_pending_enter(set, ep);
    }
}


void uct_dcx_pending_block(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    if (ep->dci == UCT_DCX_NO_DCI) {
        ucs_arbiter_group_desched(&set->waitq, &ep->pending);
    }
}


void uct_dcx_pending_failed(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ucs_arbiter_group_is_empty(&ep->pending)) {
        return;
    }

    if (ep->left == UCT_DCX_NO_DCI) {
        uct_dcx_pending_enter(set, ep);
    } else {
        dci = &set->dci[ep->left];
        uct_dcx_pending_lost_dci(set, ep, dci);
        uct_dcx_tx_unwait(dci);
    }
}


void uct_dcx_pending_resume(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    if (ucs_arbiter_group_is_empty(&ep->pending)) {
        return;
    }

    uct_dcx_pending_enter(set, ep);
    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_pending_set_ready(set, &set->dci[ep->dci]);
    }
}
