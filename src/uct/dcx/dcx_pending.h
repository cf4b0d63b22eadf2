/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Who waits for resources, and in which order they get them. An endpoint with
 * queued requests stands in one of two lines: for an initiator, or for room in
 * the one it holds or shares. Both are served round robin, one request of an
 * endpoint at a time. Belongs to the thread that progresses the interface.
 */
#ifndef UCT_DCX_PENDING_H
#define UCT_DCX_PENDING_H

#include "dcx_ep.h"


/* Serves all lines; called by progress after completions were taken, if
 * somebody has put UCT_DCX_TODO_PENDING down. */
void uct_dcx_pending_serve(uct_dcx_iface_t *iface);

/* The endpoint has just lost 'dci': its requests wait for another. */
void uct_dcx_pending_lost_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                              uct_dcx_dci_t *dci);

/* The endpoint has failed: its requests are called in their turn, to hear of
 * it from their operations. It need not wait for an initiator. */
void uct_dcx_pending_failed(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* Joins the line for room in the initiator that the endpoint has. */
void uct_dcx_pending_queue(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* Somebody has left the line for room in an initiator. If nobody is in it any
 * more, everybody may post again. */
void uct_dcx_pending_left_line(uct_dcx_dci_t *dci);

/* dcx_spill.c: serves those in line for room in a shared initiator with
 * exclusive ones that have become idle. Returns whether others wait for one. */
int uct_dcx_spill_serve(uct_dcx_iface_t *iface);

/* Drops all requests of an endpoint that is going away. */
void uct_dcx_pending_cleanup(uct_dcx_ep_t *ep);


/* What the endpoint has in line waits for a grant, outside of all lines. */
static inline int uct_dcx_pending_is_blocked(uct_dcx_ep_t *ep)
{
    return (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) &&
           !ucs_arbiter_group_is_empty(&ep->pending);
}


/* No credit is left: who is in line for an initiator is so no more. In the line
 * of one he may stay, with what needs no credit. */
void uct_dcx_pending_block(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);


/* The grant has come: into one of the lines. */
void uct_dcx_pending_resume(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);


/* Those in line for room in 'dci' can be served. */
static inline void
uct_dcx_pending_set_ready(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    if (!dci->is_ready) {
        dci->is_ready = 1;
        iface->todo  |= UCT_DCX_TODO_PENDING;
        ucs_list_add_tail(&iface->dci.ready, &dci->ready);
    }
}


/* 'count' blocks have completed. If the queue is held back they are used up:
 * an endpoint that never has its whole share outstanding, but never nothing
 * either, would keep its initiator for ever. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_pending_spend(uct_dcx_dci_t *dci, uint16_t count)
{
    uct_dcx_sq_t *sq = &dci->sq;

    if (ucs_unlikely(sq->room < sq->ring) && (sq->room > 0)) {
        uct_dcx_sq_set_room(sq, sq->room - ucs_min(sq->room, count));
    }
}


/* Operations have completed. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_pending_got_room(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    if (ucs_unlikely(!ucs_arbiter_is_empty(&dci->waiters)) &&
        uct_dcx_sq_fits(&dci->sq)) {
        uct_dcx_pending_set_ready(iface, dci);
    }
}


/* Whether there is nobody to serve, and no share to lift. */
static inline int uct_dcx_pending_is_empty(uct_dcx_iface_t *iface)
{
    return ucs_arbiter_is_empty(&iface->dci.wait_dci) &&
           ucs_list_is_empty(&iface->dci.ready) && !iface->dci.throttled;
}


/* Whether a call of progress would serve someone without a completion. Where
 * there are only shared initiators, those in line for one have failed; where
 * endpoints spill, they can have that one, if it is to be had. */
static inline int uct_dcx_pending_is_ready(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set     = &iface->dci;
    const uct_dcx_pool_t *pool = &set->pool;

    return !uct_dcx_pending_is_empty(iface) &&
           (ucs_arbiter_is_empty(&set->wait_dci) ||
            !ucs_list_is_empty(&set->ready) ||
            uct_dcx_pool_has_idle(pool) || (pool->size.num_exclusive == 0) ||
            (pool->policy->spills &&
             (!set->is_short ||
              (set->dci[pool->size.num_exclusive].qp != NULL))));
}

#endif
