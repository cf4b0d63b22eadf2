/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The two lines of waiting endpoints; see dcx_pending.h. An endpoint stands in
 * line as an arbiter group of UCX. Without an initiator it is in the line
 * "wait_dci" for as long as it has requests. With one, it enters "wait_room"
 * when completions have made room, and leaves it when that is used up. While
 * somebody waits for an initiator, those who hold one have their shares.
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
    uct_dcx_sq_t *sq;
    unsigned i;

    for (i = 0; i < set->num_dci; ++i) {
        sq        = &set->dci[i].sq;
        sq->limit = ucs_min(sq->limit, share);
    }
    set->throttled = 1;
}


/* Nobody waits for an initiator any more: everybody may fill his ring again,
 * those first who stand in line for room. */
static void uct_dcx_pending_unthrottle(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_dci; ++i) {
        dci           = &set->dci[i];
        dci->sq.limit = dci->sq.room;
        if ((dci->ep != NULL) && uct_dcx_sq_has_room(&dci->sq)) {
            uct_dcx_pending_got_room(iface, dci->ep);
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
static void uct_dcx_pending_hold(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;

    if (iface->dci.throttled && (pool->policy->share(pool) < UINT_MAX)) {
        iface->dci.dci[ep->dci].sq.limit = 0;
    }
}


ucs_status_t uct_dcx_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                    unsigned flags)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);

    if (uct_dcx_tx_can_send(iface, ep)) {
        return UCS_ERR_BUSY;
    }

    UCS_STATIC_ASSERT(sizeof(uct_pending_req_priv_arb_t) <=
                      UCT_PENDING_REQ_PRIV_LEN);
    uct_pending_req_arb_group_push(&ep->pending, req);
    UCT_TL_EP_STAT_PEND(&ep->super);
    if (ep->dci == UCT_DCX_NO_DCI) {
        uct_dcx_pending_join(iface, ep);
    } else {
        uct_dcx_pending_hold(iface, ep);
    }
    return UCS_OK;
}


void uct_dcx_pending_lost_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (!ucs_arbiter_group_is_empty(&ep->pending)) {
        ucs_arbiter_group_desched(&iface->dci.wait_room, &ep->pending);
        uct_dcx_pending_join(iface, ep);
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
        uct_dcx_pending_got_room(iface, ep);
    }
}


/* First in the line for an initiator: lend one, go over to the other line. */
static ucs_arbiter_cb_result_t
uct_dcx_pending_attach_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                          ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_iface_t *iface = arg;

    if (uct_dcx_tx_attach(iface, uct_dcx_pending_ep(group)) == NULL) {
        return UCS_ARBITER_CB_RESULT_STOP;
    }

    ucs_arbiter_group_schedule(&iface->dci.wait_room, group);
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


/* The request could not be sent: its endpoint waits for completions. If it has
 * nothing on the wire, none would ever wake it: back to the first line. */
static void uct_dcx_pending_refused(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->dci == UCT_DCX_NO_DCI) {
        return;
    }

    dci = &iface->dci.dci[ep->dci];
    if (uct_dcx_tx_detach(iface, dci) != NULL) {
        uct_dcx_pending_join(iface, ep);
    } else if (!uct_dcx_sq_has_room(&dci->sq)) {
        uct_dcx_pending_hold(iface, ep);
    }
}


static ucs_arbiter_cb_result_t
uct_dcx_pending_send_cb(ucs_arbiter_t *arbiter, ucs_arbiter_group_t *group,
                        ucs_arbiter_elem_t *elem, void *arg)
{
    uct_dcx_iface_t *iface = arg;
    uct_dcx_ep_t *ep       = uct_dcx_pending_ep(group);
    uct_pending_req_t *req = ucs_container_of(elem, uct_pending_req_t, priv);
    int is_last            = ucs_arbiter_elem_is_only(elem);
    ucs_status_t status;

    status = req->func(req);
    if (status == UCS_OK) {
        if (is_last && (ep->dci != UCT_DCX_NO_DCI)) {
            /* it may have sent nothing */
            uct_dcx_tx_detach(iface, &iface->dci.dci[ep->dci]);
        }
        return UCS_ARBITER_CB_RESULT_REMOVE_ELEM;
    }

    if (status == UCS_INPROGRESS) {
        return UCS_ARBITER_CB_RESULT_NEXT_GROUP;
    }

    uct_dcx_pending_refused(iface, ep);
    return UCS_ARBITER_CB_RESULT_DESCHED_GROUP;
}


void uct_dcx_pending_serve(uct_dcx_iface_t *iface)
{
    ucs_arbiter_dispatch(&iface->dci.wait_dci, 1, uct_dcx_pending_attach_cb,
                         iface);
    if (iface->dci.throttled && ucs_arbiter_is_empty(&iface->dci.wait_dci)) {
        uct_dcx_pending_unthrottle(iface);
    }
    ucs_arbiter_dispatch(&iface->dci.wait_room, 1, uct_dcx_pending_send_cb,
                         iface);
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

    /* the arbiter is only handed on to the callback, which needs none */
    ucs_arbiter_group_purge(&iface->dci.wait_dci, &ep->pending,
                            uct_dcx_pending_purge_cb, &args);
    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_tx_settle(iface, &iface->dci.dci[ep->dci]);
    }
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
