/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that wait for resources, and the order in which they get them. An
 * endpoint with pending requests is in one of two wait queues: for an
 * initiator, or of its own initiator. It is in neither while it waits for
 * credits. Both are served round robin, one request of an endpoint at a time.
 * Used by the interface's thread.
 */
#ifndef UCT_DCX_PENDING_H
#define UCT_DCX_PENDING_H

#include "dcx_tx.h"


/* Serves the wait queue for initiators, and those of ready initiators. Called
 * by progress after it has taken completions, if UCT_DCX_TODO_PENDING is
 * set. */
void uct_dcx_pending_serve(uct_dcx_dci_set_t *set);

/* Makes the requests of an endpoint that has just lost @dci wait for
 * another initiator. */
void uct_dcx_pending_lost_dci(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                              uct_dcx_dci_t *dci);

/* Makes progress call the requests of a failed endpoint in their turn, without
 * an initiator: they get the error from their operations. */
void uct_dcx_pending_failed(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* Drops all requests of an endpoint that is being destroyed, with a warning. */
void uct_dcx_pending_cleanup(uct_dcx_ep_t *ep);

/* Removes an endpoint without credits from the wait queue for an initiator. In
 * the wait queue of its own initiator it may stay, with operations that need no
 * credit. */
void uct_dcx_pending_block(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* Puts an endpoint with pending requests into one of the wait queues, to be
 * served by the next call of progress: its grant has arrived, or its requests
 * wait for no completion. */
void uct_dcx_pending_resume(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* Implement uct_ep_pending_add() and uct_ep_pending_purge(). */
ucs_status_t uct_dcx_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req,
                                    unsigned flags);
void uct_dcx_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                              void *arg);


/* Returns non-zero if the endpoint has pending requests, and is blocked. */
static inline int uct_dcx_pending_is_blocked(uct_dcx_ep_t *ep)
{
    return (ep->state == UCT_DCX_EP_BLOCKED) &&
           !ucs_arbiter_group_is_empty(&ep->pending);
}


/* Has progress serve the wait queue of @dci. */
static inline void uct_dcx_pending_set_ready(uct_dcx_dci_set_t *set,
                                             uct_dcx_dci_t *dci)
{
    if (ucs_list_is_empty(&dci->ready)) {
        set->todo |= UCT_DCX_TODO_PENDING;
        ucs_list_add_tail(&set->ready, &dci->ready);
    }
}


/* Has progress serve the wait queue of @dci if WQEBBs are available. Called
 * when operations have completed. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_pending_dci_available(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    if (ucs_unlikely(!ucs_arbiter_is_empty(&dci->waitq)) &&
        uct_dcx_dci_is_available(dci)) {
        uct_dcx_pending_set_ready(set, dci);
    }
}


/* Returns non-zero if no endpoint is waiting to be served, and no quota is in
 * force. */
static inline int uct_dcx_pending_is_empty(uct_dcx_dci_set_t *set)
{
    return ucs_arbiter_is_empty(&set->waitq) &&
           ucs_list_is_empty(&set->ready) && !set->throttled;
}


/* Returns non-zero if a call of progress would serve endpoints without a
 * completion. If all initiators are shared, endpoints that wait for one have
 * failed. */
static inline int uct_dcx_pending_is_ready(uct_dcx_dci_set_t *set)
{
    return !uct_dcx_pending_is_empty(set) &&
           (ucs_arbiter_is_empty(&set->waitq) ||
            !ucs_list_is_empty(&set->ready) ||
            uct_dcx_pool_has_idle(&set->pool) || set->pool.policy->is_shared);
}

#endif
