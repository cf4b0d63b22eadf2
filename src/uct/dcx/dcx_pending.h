/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Who waits for resources, and in which order they get them. An endpoint with
 * queued requests stands in one of two lines: for an initiator, or for room in
 * the one it holds. Both are served round robin, one request of an endpoint at
 * a time. Belongs to the thread that progresses the interface.
 */
#ifndef UCT_DCX_PENDING_H
#define UCT_DCX_PENDING_H

#include "dcx_ep.h"


/* Serves both lines; called by progress after completions were taken. */
void uct_dcx_pending_serve(uct_dcx_iface_t *iface);

/* The endpoint has just lost its initiator: its requests wait for another. */
void uct_dcx_pending_lost_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* Drops all requests of an endpoint that is going away. */
void uct_dcx_pending_cleanup(uct_dcx_ep_t *ep);


/* What the endpoint has in line waits for a grant, outside of both lines. */
static inline int uct_dcx_pending_is_blocked(uct_dcx_ep_t *ep)
{
    return (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) &&
           !ucs_arbiter_group_is_empty(&ep->pending);
}


/* The grant has come: into one of the lines. */
void uct_dcx_pending_resume(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);


static UCS_F_ALWAYS_INLINE void
uct_dcx_pending_got_room(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (ucs_likely(!(ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED))) {
        ucs_arbiter_group_schedule(&iface->dci.wait_room, &ep->pending);
    }
}


/* Whether progress has somebody to serve, or shares to lift. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_pending_is_empty(uct_dcx_iface_t *iface)
{
    return ucs_arbiter_is_empty(&iface->dci.wait_dci) &&
           ucs_arbiter_is_empty(&iface->dci.wait_room) &&
           !iface->dci.throttled;
}


/* Whether a call of progress would serve someone without a completion. */
static inline int uct_dcx_pending_is_ready(uct_dcx_iface_t *iface)
{
    return !uct_dcx_pending_is_empty(iface) &&
           (ucs_arbiter_is_empty(&iface->dci.wait_dci) ||
            !ucs_arbiter_is_empty(&iface->dci.wait_room) ||
            uct_dcx_pool_has_idle(&iface->dci.pool));
}

#endif
