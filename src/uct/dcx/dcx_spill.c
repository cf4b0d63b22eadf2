/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that find no exclusive initiator idle, where the policy has a
 * shared one for them (dcs_hybrid): they take a stream of that, and leave it
 * when all that they have posted there has completed, so that their operations
 * stay in order. Those in line for room there that have nothing outstanding go
 * back to an exclusive one that has become idle. Called when there is none
 * (dcx_tx.h) and by progress, in the interface's thread.
 */
#include "dcx_pending.h"
#include "dcx_tx.h"


UCS_F_NOINLINE uct_dcx_dci_t *
uct_dcx_spill(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_place_t place;
    uct_dcx_dci_t *dci;

    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        return NULL;
    }

    place = uct_dcx_dci_set_spill(iface);
    if (place.dci == UCT_DCX_NO_DCI) {
        return NULL;
    }

    dci        = &iface->dci.dci[place.dci];
    ep->dci    = place.dci;
    ep->stream = place.stream;
    if (ep->flags & UCT_DCX_EP_FLAG_INVALIDATED) {
        return uct_dcx_ep_attach_odd(iface, ep, dci);
    }
    return uct_dcx_sq_has_room(&dci->sq) ? dci : NULL;
}


void uct_dcx_spill_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                             uint16_t begin)
{
    uct_dcx_ep_t *ep;

    if (!iface->dci.pool.policy->spills) {
        return;
    }

    for (; begin != dci->sq.ci; ++begin) {
        ep = dci->eps[begin & dci->sq.mask];
        if ((ep != NULL) && (ep->dci == dci->index) &&
            uct_dcx_ep_is_idle(ep, dci) &&
            ucs_arbiter_group_is_empty(&ep->pending)) {
            ep->dci = UCT_DCX_NO_DCI;
        }
    }
}


/* In line for room in a shared initiator */
static ucs_arbiter_cb_result_t
uct_dcx_spill_back_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                      ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_iface_t *iface = arg;
    uct_dcx_dci_t *dci     = ucs_container_of(arbiter, uct_dcx_dci_t, waiters);
    uct_dcx_ep_t *ep       = ucs_container_of(group, uct_dcx_ep_t, pending);

    if (!uct_dcx_pool_has_idle(&iface->dci.pool)) {
        return UCS_ARBITER_CB_RESULT_STOP;
    }

    /* blocked, it would stand in no line of the other one */
    if ((ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) ||
        !uct_dcx_ep_is_idle(ep, dci)) {
        return UCS_ARBITER_CB_RESULT_RESCHED_GROUP;
    }

    ep->dci = UCT_DCX_NO_DCI;
    uct_dcx_tx_attach(iface, ep);
    if (ep->dci == dci->index) {
        return UCS_ARBITER_CB_RESULT_RESCHED_GROUP; /* none can be had */
    }

    uct_dcx_pending_queue(iface, ep);
    uct_dcx_pending_set_ready(iface, &iface->dci.dci[ep->dci]);
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


int uct_dcx_spill_serve(uct_dcx_iface_t *iface)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_dci_t *dci   = &iface->dci.dci[pool->size.num_exclusive];

    if (!pool->policy->spills || (dci->qp == NULL) ||
        ucs_arbiter_is_empty(&dci->waiters)) {
        return 0;
    }

    if (uct_dcx_pool_has_idle(pool)) {
        ucs_arbiter_dispatch(&dci->waiters, 1, uct_dcx_spill_back_cb, iface);
        uct_dcx_pending_left_line(dci);
    }
    return !ucs_arbiter_is_empty(&dci->waiters);
}
