/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The relation of endpoints and initiators, and the states of both: an
 * operation acquires an initiator, which is released when nothing is
 * outstanding.
 *
 * sched/ is the room that assigns initiators to endpoints, keeps the wait
 * queues, and sets the order in which they are served. Operations, flow control
 * and recovery call it. It must not know the content of messages, nor the cause
 * of failures.
 *
 * Only this header and dcx_tx.c write ep->dci, dci->ep, the state of either,
 * and the limit of an initiator's queue, once the initiator was created. A
 * table has all allowed transitions; any other fails an assertion.
 * UCX_LOG_LEVEL=trace logs transitions. docs/dcx.md has a diagram of the
 * states. Used by the interface's thread.
 */
#ifndef UCT_DCX_TX_H
#define UCT_DCX_TX_H

#include "dcx_ep_fail.h"
#include "uct/dcx/base/dcx_trace.h"


/* --- states of an initiator ----------------------------------------------- */

/* Returns the name of the state of an initiator. */
const char *uct_dcx_tx_state_name(const uct_dcx_dci_t *dci);

/* Makes a transition that the table allows. */
void uct_dcx_tx_set_state(uct_dcx_dci_t *dci, uct_dcx_dci_state_t state);

/* HELD -> WATCHED: completions have to do more than end operations. */
void uct_dcx_tx_watch(uct_dcx_dci_t *dci);

/* -> WAITQ: requests of @ep are in its wait queue; no other endpoints may
 * post. */
void uct_dcx_tx_wait(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

/* WAITQ -> WATCHED or OPEN, if the wait queue is empty */
void uct_dcx_tx_unwait(uct_dcx_dci_t *dci);

/* IDLE -> HELD, or WATCHED while quotas are in force or changes of states are
 * logged: takes the initiator from the pool for @ep, which has none. */
void uct_dcx_tx_link(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                     uct_dcx_ep_t *ep);

/* Any exclusive state -> IDLE: returns the initiator, on which nothing is
 * outstanding, to the pool. Returns its endpoint, NULL if that has failed or
 * was destroyed. */
uct_dcx_ep_t *uct_dcx_tx_unlink(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* -> LEFT, if the initiator is exclusive and not LOST: detaches @ep, which has
 * it, and is being destroyed or fails. */
void uct_dcx_tx_part(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep);


/* --- quotas --------------------------------------------------------------- */

/* Starts throttling: limits each holder of an exclusive initiator to its quota,
 * as endpoints wait for one. */
void uct_dcx_tx_throttle(uct_dcx_dci_set_t *set);

/* Stops throttling: no endpoint waits any longer. */
void uct_dcx_tx_unthrottle(uct_dcx_dci_set_t *set);

/* Lets nothing be posted until nothing is outstanding: an operation needs more
 * room than there is. */
void uct_dcx_tx_drain(uct_dcx_dci_t *dci);

/* Counts @num_bb completed WQEBBs against the quota, if it is in force:
 * otherwise an endpoint that always has WQEs outstanding would keep its
 * initiator for ever. Ends uct_dcx_tx_drain() of a shared initiator. */
void uct_dcx_tx_spend(uct_dcx_dci_t *dci, uint16_t num_bb);

/* Ends the quota, if it is in force: nothing is posted until nothing is
 * outstanding; then the initiator is assigned to another endpoint. */
void uct_dcx_tx_hold(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);


/* --- states of an endpoint ------------------------------------------------ */

/* Binds a new endpoint, in state OPEN, to a shared initiator, or to none. */
void uct_dcx_tx_bind(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* Clears the initiator numbers in the endpoint: all initiators are
 * destroyed. */
void uct_dcx_tx_unbind(uct_dcx_ep_t *ep);

/* -> FAILED with @status: the endpoint has no initiator any longer. It
 * remembers a shared one, on which operations of it may be outstanding. */
void uct_dcx_tx_fail(uct_dcx_ep_t *ep, ucs_status_t status);

/* Asserts that the table has the transition, and traces it. */
void uct_dcx_tx_check_ep(const uct_dcx_ep_t *ep, uct_dcx_ep_state_t state);


/* Makes a transition that the table allows. */
static inline void uct_dcx_tx_set_ep(uct_dcx_ep_t *ep, uct_dcx_ep_state_t state)
{
    if (UCS_ENABLE_ASSERT || uct_dcx_trace_is_on()) {
        uct_dcx_tx_check_ep(ep, state);
    }
    ep->state = state;
}


/* --- an initiator for an operation ---------------------------------------- */

/* Returns non-zero if @ep will never have an initiator: all that it could get
 * are lost. */
static inline int uct_dcx_tx_is_lost(const uct_dcx_dci_set_t *set,
                                     const uct_dcx_ep_t *ep)
{
    return (ep->dci == UCT_DCX_NO_DCI) ?
               (set->num_lost == set->pool.num_dci) :
               (set->dci[ep->dci].state == UCT_DCX_DCI_LOST);
}


/* Returns non-zero if the next operation of @ep would not return
 * UCS_ERR_NO_RESOURCE. */
static inline int uct_dcx_tx_can_send(uct_dcx_dci_set_t *set,
                                      const uct_dcx_ep_t *ep)
{
    if (uct_dcx_tx_is_lost(set, ep)) {
        return 1;
    }

    if (ep->state == UCT_DCX_EP_BLOCKED) {
        return 0;
    }

    if (ep->dci == UCT_DCX_NO_DCI) { /* the wait queue goes first */
        return uct_dcx_pool_has_idle(&set->pool) &&
               ucs_arbiter_is_empty(&set->waitq);
    }
    return uct_dcx_dci_may_post(&set->dci[ep->dci], ep);
}


/* Takes an initiator from the pool for @ep, which has none; creates the
 * initiator if necessary. Returns NULL if none is idle or can be created, or
 * @ep has failed. If @ep is GIVEN_UP, cancels it on the initiator; @ep fails at
 * once if that is impossible. */
uct_dcx_dci_t *uct_dcx_tx_attach(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* Returns the initiator on which @ep may post one WQE of any size. Returns NULL
 * if there is none: the operation then returns uct_dcx_ep_no_resource(). If
 * nothing is posted, call uct_dcx_tx_release() to release it. */
uct_dcx_dci_t *uct_dcx_tx_get_dci(uct_dcx_ep_t *ep) __attribute__((cold));


/* uct_dcx_tx_attach() for most operations. Returns NULL if the next initiator
 * in turn is in use or does not exist, endpoints wait, changes of states are
 * logged, or @ep is GIVEN_UP or FAILED. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_take(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ucs_unlikely(ep->state >= UCT_DCX_EP_GIVEN_UP)) {
        return NULL;
    }

    dci = &set->dci[ep->home]; /* a failed endpoint may have no index there */
    if (dci->last != ep) {
        dci = set->hand;
        if (ucs_unlikely(dci->state != set->open)) {
            return NULL;
        }
        set->hand = dci->next;
        dci->last = ep;
        ep->home  = dci->index;
    } else if (ucs_unlikely(dci->state != set->open)) {
        return NULL;
    }

    set->pool.num_idle--;
    dci->state = UCT_DCX_DCI_HELD;
    dci->ep    = ep;
    ep->dci    = ep->home;
    return dci;
}


/* uct_dcx_tx_get_dci() for most operations: the endpoint has an initiator that
 * needs no further check, or takes an idle one. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *uct_dcx_tx_get(uct_dcx_dci_set_t *set,
                                                         uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &set->dci[ep->dci];
        if (ucs_likely(uct_dcx_sq_is_clear(&dci->txq.sq))) {
            return dci;
        }
    } else {
        dci = uct_dcx_tx_take(set, ep);
        if (ucs_likely(dci != NULL)) {
            return dci;
        }
    }
    return uct_dcx_tx_get_dci(ep);
}


/* Has the next WQE request a completion, and each later one if endpoints wait
 * for an initiator. */
void uct_dcx_tx_signal(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);


/* --- releasing an initiator ----------------------------------------------- */

/* Returns an exclusive initiator to the pool if nothing is outstanding, and no
 * flush is about to end. Returns the endpoint that it was taken from, or
 * NULL. */
uct_dcx_ep_t *uct_dcx_tx_detach(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* Calls uct_dcx_tx_detach(). If the endpoint has pending requests, they wait
 * for another initiator from now on. */
void uct_dcx_tx_release(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* Detaches an endpoint that is being destroyed. Its outstanding operations on
 * @dci continue, and end with UCS_ERR_CANCELED when the device has completed
 * them. */
void uct_dcx_tx_leave(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep);

/* Releases @dci and returns UCS_ERR_NO_MEMORY: a copied operation got no
 * buffer. */
ucs_status_t uct_dcx_tx_no_memory(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);


/* uct_dcx_tx_detach() for most completions: @ep holds the initiator, in state
 * HELD, and nothing is outstanding. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_put(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    ucs_assert(dci->state == UCT_DCX_DCI_HELD);
    dci->state = UCT_DCX_DCI_IDLE;
    dci->ep    = NULL;
    ep->dci    = UCT_DCX_NO_DCI;
    dci->txq.turn++;
    set->pool.num_idle++;
}

#endif
