/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which endpoint has which initiator, and the states of both.
 *
 * sched/ is the room that decides which endpoint gets an initiator, which waits
 * for what, and in which order they are served. Operations, flow control and
 * recovery call it. It must not know what is sent, nor why something failed.
 *
 * This file alone writes the state of an initiator and of an endpoint,
 * 'ep->dci', 'dci->ep', and how much of a queue its holder may use. Every
 * change is one of a table; others are assertions. UCX_LOG_LEVEL=trace shows
 * them all. The states are drawn in docs/dcx.md. Used by the interface's
 * thread.
 */
#ifndef UCT_DCX_STATE_H
#define UCT_DCX_STATE_H

#include "uct/dcx/base/dcx_trace.h"
#include "uct/dcx/queue/dcx_endpoint.h"


/* --- initiators ----------------------------------------------------------- */

/* IDLE -> HELD: 'ep', which has none, gets it; WATCHED while shares are in
 * force. It was just taken from the pool. */
void uct_dcx_state_take(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                        uct_dcx_ep_t *ep);

/* Any but a shared one -> IDLE: nothing is outstanding, and it goes back to the
 * pool. Returns the endpoint that had it, NULL if that was destroyed. */
uct_dcx_ep_t *
uct_dcx_state_put(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* HELD -> WATCHED: completions have more to do than to end what was posted. */
void uct_dcx_state_watch(uct_dcx_dci_t *dci);

/* -> WAITQ: requests of 'ep' are in its wait queue, and only those in there may
 * post. */
void uct_dcx_state_wait(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

/* WAITQ -> WATCHED or OPEN, if the wait queue is empty */
void uct_dcx_state_unwait(uct_dcx_dci_t *dci);

/* -> LEFT, if it is exclusive and not lost: 'ep', which has it, is destroyed or
 * has failed. */
void uct_dcx_state_leave(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep);

/* Any other change that is in the table. */
void uct_dcx_state_set(uct_dcx_dci_t *dci, uct_dcx_dci_state_t state);

/* Endpoints wait for an initiator: those who hold one have shares. */
void uct_dcx_state_throttle(uct_dcx_dci_set_t *set);

/* ... and do so no more. */
void uct_dcx_state_unthrottle(uct_dcx_dci_set_t *set);

/* 'num_bb' WQEBBs of it have completed. While shares are in force, what
 * completes counts, too: an endpoint that always has some of its share
 * outstanding would keep its initiator for ever. */
void uct_dcx_state_spend(uct_dcx_dci_t *dci, uint16_t num_bb);

/* The holder has used up its share: it is held back until nothing is
 * outstanding, and then the initiator is lent to another. */
void uct_dcx_state_hold(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);


/* The same as uct_dcx_state_take(), inline, for the endpoint of an operation.
 * NULL: none is idle that exists, others wait, or the endpoint has failed or is
 * to. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_state_take_plain(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_pool_t *pool = &set->pool;
    uct_dcx_dci_t *dci;

    if (ucs_unlikely((pool->num_idle <= set->take_above) ||
                     (ep->state >= UCT_DCX_EP_GIVEN_UP))) {
        return NULL;
    }

    ep->dci = pool->idle[--pool->num_idle];
    dci     = &set->dci[ep->dci];
    ucs_assert(dci->state == UCT_DCX_DCI_IDLE);
    dci->state = UCT_DCX_DCI_HELD;
    dci->ep    = ep;
    return dci;
}


/* ... and uct_dcx_state_put(), of one that is HELD */
static UCS_F_ALWAYS_INLINE void
uct_dcx_state_put_plain(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                        uct_dcx_ep_t *ep)
{
    ucs_assert(dci->state == UCT_DCX_DCI_HELD);
    dci->state = UCT_DCX_DCI_IDLE;
    dci->ep    = NULL;
    ep->dci    = UCT_DCX_NO_DCI;
    dci->txq.turn++;
    uct_dcx_pool_put(&set->pool, dci->index);
}


/* --- endpoints ------------------------------------------------------------ */

/* Asserts that the change is in the table, and traces it. */
void uct_dcx_state_check_ep(const uct_dcx_ep_t *ep, uct_dcx_ep_state_t state);

/* A change that is in the table. */
static inline void
uct_dcx_state_set_ep(uct_dcx_ep_t *ep, uct_dcx_ep_state_t state)
{
    if (UCS_ENABLE_ASSERT || uct_dcx_trace_is_on()) {
        uct_dcx_state_check_ep(ep, state);
    }
    ep->state = state;
}

#endif
