/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Initiators for operations. Inlined into the operations; used by the
 * interface's thread.
 *
 * Between an operation's entry and the doorbell, and in progress, libibverbs
 * and libmlx5 are called only when there is something new, all of it once or
 * rarely: an initiator that was not needed before is created, one that fails is
 * reset, a pool of buffers grows and registers more memory, and on RoCE the
 * first request for credits from a port of the network looks up its MAC, which
 * may take a second if nothing answers there (dcx_neigh.c).
 */
#ifndef UCT_DCX_TX_H
#define UCT_DCX_TX_H

#include "dcx_ep_fail.h"
#include "dcx_state.h"


/* Whether there will never be an initiator for it: all that it could get are
 * lost. */
static inline int
uct_dcx_tx_is_lost(const uct_dcx_dci_set_t *set, const uct_dcx_ep_t *ep)
{
    return (ep->dci == UCT_DCX_NO_DCI) ?
           (set->num_lost == set->pool.num_dci) :
           (set->dci[ep->dci].state == UCT_DCX_DCI_LOST);
}


/* Whether its next operation would not return UCS_ERR_NO_RESOURCE. */
static inline int
uct_dcx_tx_can_send(uct_dcx_dci_set_t *set, const uct_dcx_ep_t *ep)
{
    if (uct_dcx_tx_is_lost(set, ep)) {
        return 1;
    }

    if (ep->state == UCT_DCX_EP_BLOCKED) {
        return 0;
    }

    if (ep->dci == UCT_DCX_NO_DCI) { /* those in the wait queue go first */
        return uct_dcx_pool_has_idle(&set->pool) &&
               ucs_arbiter_is_empty(&set->waitq);
    }
    return uct_dcx_dci_may_post(&set->dci[ep->dci], ep);
}


/* Lends an initiator to an endpoint that has none; NULL if there is none, or
 * the endpoint has failed. */
uct_dcx_dci_t *uct_dcx_tx_attach(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep);

/* The initiator on which 'ep' may post one WQE of any size, or NULL: the
 * operation then returns uct_dcx_ep_no_resource(). Whoever does not post after
 * all calls uct_dcx_tx_settle(). */
uct_dcx_dci_t *uct_dcx_tx_get_dci(uct_dcx_ep_t *ep) __attribute__((cold));


/* The same. An operation calls it, and most of them end here: the endpoint has
 * an initiator on which nothing has to be looked at, or takes one that is
 * idle. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &set->dci[ep->dci];
        if (ucs_likely(uct_dcx_sq_is_clear(&dci->txq.sq))) {
            return dci;
        }
    } else {
        dci = uct_dcx_state_take_plain(set, ep);
        if (ucs_likely(dci != NULL)) {
            return dci;
        }
    }
    return uct_dcx_tx_get_dci(ep);
}


/* Has the next WQE request a completion, and all if others wait for an
 * initiator. */
void uct_dcx_tx_signal(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* Gives an exclusive initiator back to the pool if nothing is outstanding.
 * Returns the endpoint that had it, NULL if none had. */
uct_dcx_ep_t *uct_dcx_tx_detach(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* The same, and if the endpoint has pending requests, they wait for another
 * initiator from now on. */
void uct_dcx_tx_settle(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* The endpoint is being destroyed: what it has outstanding on 'dci' goes on,
 * and ends with UCS_ERR_CANCELED when the device is done with it. */
void uct_dcx_tx_leave(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep);

/* What a copied operation returns that got 'dci', but no buffer. */
ucs_status_t uct_dcx_tx_no_memory(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

#endif
