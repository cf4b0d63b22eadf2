/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Serves the wait queues, and empties them; see dcx_pending.h.
 */
#include "dcx_pending.h"

#include <ucs/debug/log.h>
#include <ucs/time/time.h>


/* Seconds for which endpoints wait at least before there are more initiators: a
 * process that does not run for a while must not get them */
#define UCT_DCX_PENDING_PATIENCE 0.1


static inline uct_dcx_ep_t *uct_dcx_pending_ep(ucs_arbiter_group_t *group)
{
    return ucs_container_of(group, uct_dcx_ep_t, pending);
}


/* Stops throttling, as no endpoint waits for an initiator any longer: all may
 * fill the ring again, endpoints in its wait queue first. */
static void uct_dcx_pending_unthrottle(uct_dcx_dci_set_t *set)
{
    unsigned i;

    uct_dcx_tx_unthrottle(set);
    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_pending_dci_available(set, &set->dci[set->created[i]]);
    }
}


/* Calls a request whose endpoint has failed, or fails now. If the request does
 * not end, its owner has to purge it: it waits for nothing any longer. */
static ucs_arbiter_cb_result_t uct_dcx_pending_refuse(ucs_arbiter_elem_t *elem)
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


/* Doubles the number of initiators if no endpoint that waits has got one for
 * the time of a retry: the peers of those that have them may all be dead, and
 * are given up only after the last retry. Returns 0 if it does not. */
static int uct_dcx_pending_relieve(uct_dcx_dci_set_t *set)
{
    double timeout  = 4.096e-6 * UCS_BIT(set->params.timeout);
    double patience = ucs_max(timeout, UCT_DCX_PENDING_PATIENCE);
    ucs_time_t now  = ucs_get_time();

    if (set->stuck == 0) {
        set->stuck = now;
    }

    if (uct_dcx_pool_has_idle(&set->pool) || set->is_short ||
        (set->pool.num_dci == set->pool.max_dci) ||
        (now - set->stuck < ucs_time_from_sec(patience))) {
        return 0;
    }

    set->stuck = 0;
    uct_dcx_pool_grow(&set->pool);
    uct_dcx_dci_set_close_ring(set);
    ucs_diag("%s: no initiator is idle for %.3f s: using up to %u",
             set->port->name, patience, set->pool.num_dci);
    return 1;
}


/* Gives an initiator to the first endpoint that waits for one, and puts it into
 * that initiator's wait queue. */
static ucs_arbiter_cb_result_t
uct_dcx_pending_attach_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                          ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_dci_set_t *set = arg;
    uct_dcx_ep_t *ep       = uct_dcx_pending_ep(group);

    ucs_assert(ep->state != UCT_DCX_EP_BLOCKED);
    uct_dcx_tx_attach(set, ep);
    while (ep->dci == UCT_DCX_NO_DCI) {
        /* An initiator that could not be created may have been the last one. */
        if ((ep->state == UCT_DCX_EP_FAILED) || uct_dcx_tx_is_lost(set, ep)) {
            return uct_dcx_pending_refuse(elem);
        }

        if (!uct_dcx_pending_relieve(set)) {
            return UCS_ARBITER_CB_RESULT_STOP;
        }
        uct_dcx_tx_attach(set, ep);
    }

    set->stuck = 0;
    uct_dcx_pending_resume(set, ep);
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


/* Handles a request that could not be sent. If no WQE is available, its
 * endpoint keeps its place. If one is, the request waits for something else and
 * is called again in the next call of progress; if the endpoint has nothing
 * outstanding, others may have the initiator meanwhile. */
static ucs_arbiter_cb_result_t uct_dcx_pending_refused(uct_dcx_dci_set_t *set,
                                                       uct_dcx_ep_t *ep,
                                                       uct_dcx_dci_t *dci)
{
    int is_blocked = (ep->state == UCT_DCX_EP_BLOCKED);

    if ((ep->dci == dci->index) && !is_blocked &&
        !uct_dcx_dci_is_available(dci)) {
        uct_dcx_tx_hold(set, dci);
        return UCS_ARBITER_CB_RESULT_STOP;
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_tx_detach(set, &set->dci[ep->dci]);
    }

    if ((ep->dci == dci->index) && !is_blocked) {
        uct_dcx_pending_set_ready(set, dci);
        return UCS_ARBITER_CB_RESULT_RESCHED_GROUP;
    }

    if (!is_blocked) {
        uct_dcx_pending_resume(set, ep);
    }
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


static ucs_arbiter_cb_result_t
uct_dcx_pending_send_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                        ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_dci_set_t *set = arg;
    uct_dcx_dci_t *dci     = ucs_container_of(arbiter, uct_dcx_dci_t, waitq);
    uct_dcx_ep_t *ep       = uct_dcx_pending_ep(group);
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);
    ucs_status_t status;

    dci->served = ep; /* may post meanwhile */
    status      = req->func(req);
    dci->served = NULL;
    if (status == UCS_OK) {
        /* The request may have sent nothing. @elem may be invalid: the arbiter
         * has put another in its place meanwhile. */
        if (ucs_arbiter_elem_is_only(ucs_arbiter_group_tail(group)) &&
            (ep->dci != UCT_DCX_NO_DCI)) {
            uct_dcx_tx_detach(set, &set->dci[ep->dci]);
        }
        return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
    }

    if (status == UCS_INPROGRESS) {
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
    }

    return uct_dcx_pending_refused(set, ep, dci);
}


void uct_dcx_pending_serve(uct_dcx_dci_set_t *set)
{
    UCS_LIST_HEAD(ready);
    uct_dcx_dci_t *dci;

    ucs_arbiter_dispatch(&set->waitq, 1, uct_dcx_pending_attach_cb, set);
    if (set->throttled && ucs_arbiter_is_empty(&set->waitq)) {
        uct_dcx_pending_unthrottle(set);
    }

    /* Initiators that become ready meanwhile are served in the next call. */
    ucs_list_splice_tail(&ready, &set->ready);
    ucs_list_head_init(&set->ready);
    while (!ucs_list_is_empty(&ready)) {
        dci = ucs_list_extract_head(&ready, uct_dcx_dci_t, ready);
        ucs_list_head_init(&dci->ready);
        if (dci->state == UCT_DCX_DCI_DRAINING) {
            continue; /* served when it has recovered */
        }

        ucs_arbiter_dispatch(&dci->waitq, 1, uct_dcx_pending_send_cb, set);
        uct_dcx_tx_unwait(dci);
    }

    if (uct_dcx_pending_is_empty(set)) {
        set->todo &= ~UCT_DCX_TODO_PENDING;
    }
}


static ucs_arbiter_cb_result_t
uct_dcx_pending_purge_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                         ucs_arbiter_elem_t *elem, void *arg)
{
    const uct_purge_cb_args_t *args = arg;
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);

    if (args->cb != NULL) {
        args->cb(req, args->arg);
    } else {
        ucs_debug("ep %p: dropped pending request %p",
                  uct_dcx_pending_ep(group), req);
    }
    return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
}


void uct_dcx_ep_pending_purge(uct_ep_h tl_ep, uct_pending_purge_callback_t cb,
                              void *arg)
{
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_set_t *set   = uct_dcx_ep_dci_set(ep);
    uct_purge_cb_args_t args = {.cb = cb, .arg = arg};
    uct_dcx_dci_t *dci;

    /* The arbiter is only passed on to the callback, which does not use it. */
    ucs_arbiter_group_purge(&set->waitq, &ep->pending, uct_dcx_pending_purge_cb,
                            &args);
    if (ep->dci == UCT_DCX_NO_DCI) {
        return;
    }

    dci = &set->dci[ep->dci];
    uct_dcx_tx_unwait(dci);
    uct_dcx_tx_release(set, dci);
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
