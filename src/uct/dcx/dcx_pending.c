/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The lines of waiting endpoints; see dcx_pending.h. An endpoint stands in line
 * as an arbiter group of UCX. Without an initiator it is in the line "wait_dci"
 * for as long as it has requests, with one in the line of that one; progress
 * serves the lines of those initiators whose completions have made room.
 *
 * While somebody waits for an initiator, those who hold an exclusive one have
 * their shares, which completions use up. While somebody waits for room in one,
 * only those in its line get any: its limit is negative, also for what the user
 * posts in a callback. While one of their requests is called, its endpoint may
 * post: of an exclusive one nobody else can, a shared one knows him (served).
 */
#include "dcx_pending.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>


static inline uct_dcx_ep_t *uct_dcx_pending_ep(ucs_arbiter_group_t *group)
{
    return ucs_container_of(group, uct_dcx_ep_t, pending);
}


/* Puts the shares in force: somebody waits for an initiator. */
static void uct_dcx_pending_throttle(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned share         = set->pool.policy->share(&set->pool);
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        uct_dcx_sq_look(&dci->sq);
        if (!uct_dcx_dci_is_shared(dci) && (share < (unsigned)dci->sq.room)) {
            uct_dcx_sq_set_room(&dci->sq, share);
        }
    }
    set->throttled = 1;
    iface->todo   |= UCT_DCX_TODO_PENDING; /* serving lifts them */
}


/* Nobody waits for an initiator any more: everybody may fill his ring again,
 * those first who stand in line for room. */
static void uct_dcx_pending_unthrottle(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        if (!uct_dcx_dci_is_shared(dci)) {
            uct_dcx_sq_set_room(&dci->sq, dci->sq.ring);
            uct_dcx_pending_got_room(iface, dci);
        }
    }
    set->throttled = 0;
}


/* Joins the line for an initiator. */
static void uct_dcx_pending_join(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) {
        return;
    }

    ucs_arbiter_group_schedule(&iface->dci.wait_dci, &ep->pending);
    if (!iface->dci.throttled) {
        uct_dcx_pending_throttle(iface);
    }
}


/* Waits for room. While shares are in force this means that the share is used
 * up, or the whole ring if that is smaller: the endpoint is held back until its
 * initiator has nothing outstanding, and then it is lent to another. */
static void uct_dcx_pending_hold(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;

    if (iface->dci.throttled && !uct_dcx_dci_is_shared(dci) &&
        (pool->policy->share(pool) < UINT_MAX)) {
        uct_dcx_sq_set_room(&dci->sq, 0);
    }
}


void uct_dcx_pending_queue(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci = &iface->dci.dci[ep->dci];

    if (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) {
        return;
    }

    ucs_arbiter_group_schedule(&dci->waiters, &ep->pending);
    uct_dcx_sq_set_limit(&dci->sq, -1);
    if (dci->served == ep) {
        dci->served = NULL; /* it is behind itself now */
    }
    if (uct_dcx_dci_is_shared(dci)) {
        iface->todo |= UCT_DCX_TODO_PENDING; /* see uct_dcx_spill_serve() */
    }
}


/* An endpoint that has requests in line already is not asked whether it could
 * send: the new one goes behind them. One that has failed keeps nobody: who
 * tries again is told. */
ucs_status_t uct_dcx_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                    unsigned flags)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);

    if ((ep->flags & UCT_DCX_EP_FLAG_FAILED) ||
        (ucs_arbiter_group_is_empty(&ep->pending) &&
         uct_dcx_tx_can_send(iface, ep))) {
        return UCS_ERR_BUSY;
    }

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_arb_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);
    uct_pending_req_arb_group_push(&ep->pending, req);
    UCT_TL_EP_STAT_PEND(&ep->super);
    if (ep->dci == UCT_DCX_NO_DCI) {
        uct_dcx_pending_join(iface, ep);
    } else {
        uct_dcx_pending_queue(iface, ep);
        uct_dcx_pending_hold(iface, &iface->dci.dci[ep->dci]);
    }
    return UCS_OK;
}


void uct_dcx_pending_lost_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                              uct_dcx_dci_t *dci)
{
    if (!ucs_arbiter_group_is_empty(&ep->pending)) {
        ucs_arbiter_group_desched(&dci->waiters, &ep->pending);
        uct_dcx_pending_join(iface, ep);
    }
}


void uct_dcx_pending_block(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (ep->dci == UCT_DCX_NO_DCI) {
        ucs_arbiter_group_desched(&iface->dci.wait_dci, &ep->pending);
    }
}


void uct_dcx_pending_left_line(uct_dcx_dci_t *dci)
{
    if (ucs_arbiter_is_empty(&dci->waiters) && (dci->served == NULL)) {
        uct_dcx_sq_set_limit(&dci->sq, dci->sq.room);
    }
}


void uct_dcx_pending_failed(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ucs_arbiter_group_is_empty(&ep->pending)) {
        return;
    }

    if (ep->left == UCT_DCX_NO_DCI) {
        uct_dcx_pending_join(iface, ep);
    } else {
        dci = &iface->dci.dci[ep->left];
        uct_dcx_pending_lost_dci(iface, ep, dci);
        uct_dcx_pending_left_line(dci);
    }
}


void uct_dcx_pending_resume(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (ucs_arbiter_group_is_empty(&ep->pending)) {
        return;
    }

    if (ep->dci == UCT_DCX_NO_DCI) {
        uct_dcx_pending_join(iface, ep);
    } else {
        uct_dcx_pending_queue(iface, ep);
        uct_dcx_pending_set_ready(iface, &iface->dci.dci[ep->dci]);
    }
}


/* Its endpoint has failed. If the request does not end, its owner has to purge
 * it: nothing will ever come that it could wait for. */
static ucs_arbiter_cb_result_t
uct_dcx_pending_refuse(ucs_arbiter_elem_t *elem)
{
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);

    switch (req->func(req)) {
    case UCS_OK:
        return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
    case UCS_INPROGRESS:
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
    default:
        return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
    }
}


/* First in the line for an initiator: lend one, go over to its line. */
static ucs_arbiter_cb_result_t
uct_dcx_pending_attach_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                          ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_iface_t *iface = arg;
    uct_dcx_ep_t *ep       = uct_dcx_pending_ep(group);

    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        return uct_dcx_pending_refuse(elem);
    }

    ucs_assert(!(ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED));
    uct_dcx_tx_attach(iface, ep);
    if (ep->dci == UCT_DCX_NO_DCI) {
        return UCS_ARBITER_CB_RESULT_STOP;
    }

    uct_dcx_pending_queue(iface, ep);
    uct_dcx_pending_set_ready(iface, &iface->dci.dci[ep->dci]);
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


/* The request could not be sent. If there is no room, its endpoint goes on
 * waiting where it is. If there is, it waits for something else and is called
 * again in the next call of progress; when it has nothing on the wire, others
 * may have the initiator meanwhile. */
static ucs_arbiter_cb_result_t
uct_dcx_pending_refused(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                        uct_dcx_dci_t *dci)
{
    int is_blocked = ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED;

    if ((ep->dci == dci->index) && !is_blocked &&
        !uct_dcx_sq_fits(&dci->sq)) {
        uct_dcx_pending_hold(iface, dci);
        return UCS_ARBITER_CB_RESULT_STOP;
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_tx_detach(iface, &iface->dci.dci[ep->dci]);
    }

    if ((ep->dci == dci->index) && !is_blocked) {
        uct_dcx_pending_set_ready(iface, dci);
        return UCS_ARBITER_CB_RESULT_RESCHED_GROUP;
    }

    if (!is_blocked) {
        uct_dcx_pending_resume(iface, ep);
    }
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


/* Calls a request, whose endpoint may post in it. */
static ucs_status_t
uct_dcx_pending_call(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                     uct_pending_req_t *req)
{
    ucs_status_t status;

    /* for each anew: one that comes into the line in the call takes it away */
    if (!uct_dcx_dci_is_shared(dci)) {
        uct_dcx_sq_set_limit(&dci->sq, dci->sq.room);
        return req->func(req);
    }

    dci->served = ep;
    status      = req->func(req);
    dci->served = NULL;
    return status;
}


static ucs_arbiter_cb_result_t
uct_dcx_pending_send_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                        ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_iface_t *iface = arg;
    uct_dcx_dci_t *dci     = ucs_container_of(arbiter, uct_dcx_dci_t, waiters);
    uct_dcx_ep_t *ep       = uct_dcx_pending_ep(group);
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);
    ucs_status_t status    = uct_dcx_pending_call(dci, ep, req);

    if (status == UCS_OK) {
        /* it may have sent nothing; 'elem' may be no more, the arbiter has put
         * another in its place meanwhile */
        if (ucs_arbiter_elem_is_only(ucs_arbiter_group_tail(group)) &&
            (ep->dci != UCT_DCX_NO_DCI)) {
            uct_dcx_tx_detach(iface, &iface->dci.dci[ep->dci]);
        }
        return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
    }

    if (status == UCS_INPROGRESS) {
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
    }

    return uct_dcx_pending_refused(iface, ep, dci);
}


/* Those who came late stay out for as long as somebody is in line. */
static void
uct_dcx_pending_serve_room(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    ucs_arbiter_dispatch(&dci->waiters, 1, uct_dcx_pending_send_cb, iface);
    uct_dcx_sq_set_limit(&dci->sq, ucs_arbiter_is_empty(&dci->waiters) ?
                                   dci->sq.room : -1);
}


void uct_dcx_pending_serve(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    UCS_LIST_HEAD(ready);
    uct_dcx_dci_t *dci;
    int spilled;

    ucs_arbiter_dispatch(&set->wait_dci, 1, uct_dcx_pending_attach_cb, iface);
    if (set->throttled && ucs_arbiter_is_empty(&set->wait_dci)) {
        uct_dcx_pending_unthrottle(iface);
    }
    spilled = uct_dcx_spill_serve(iface);

    /* those that become ready meanwhile have their turn in the next call */
    ucs_list_splice_tail(&ready, &set->ready);
    ucs_list_head_init(&set->ready);
    while (!ucs_list_is_empty(&ready)) {
        dci           = ucs_list_extract_head(&ready, uct_dcx_dci_t, ready);
        dci->is_ready = 0;
        uct_dcx_pending_serve_room(iface, dci);
    }

    if (!spilled && uct_dcx_pending_is_empty(iface)) {
        iface->todo &= ~UCT_DCX_TODO_PENDING;
    }
}


static ucs_arbiter_cb_result_t
uct_dcx_pending_purge_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                         ucs_arbiter_elem_t *elem, void *arg)
{
    const uct_purge_cb_args_t *args = arg;
    uct_pending_req_t *req          = ucs_container_of(elem, uct_pending_req_t,
                                                       priv);

    if (args->cb != NULL) {
        args->cb(req, args->arg);
    } else {
        ucs_debug("ep %p: pending request %p is dropped",
                  uct_dcx_pending_ep(group), req);
    }
    return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
}


void uct_dcx_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                              void *arg)
{
    uct_dcx_iface_t *iface   = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_purge_cb_args_t args = {.cb = cb, .arg = arg};
    uct_dcx_dci_t *dci;

    /* the arbiter is only handed on to the callback, which needs none */
    ucs_arbiter_group_purge(&iface->dci.wait_dci, &ep->pending,
                            uct_dcx_pending_purge_cb, &args);
    if (ep->dci == UCT_DCX_NO_DCI) {
        return;
    }

    dci = &iface->dci.dci[ep->dci];
    uct_dcx_pending_left_line(dci);
    uct_dcx_tx_settle(iface, dci);
}


static void uct_dcx_pending_warn(uct_pending_req_t *req, void *arg)
{
    ucs_warn("ep %p is destroyed with pending request %p", arg, req);
}


void uct_dcx_pending_cleanup(uct_dcx_ep_t *ep)
{
    uct_dcx_ep_pending_purge(&ep->super.super, uct_dcx_pending_warn, ep);
    ucs_arbiter_group_cleanup(&ep->pending);
}
