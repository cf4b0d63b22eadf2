/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds an initiator for an operation that has to wait, or is the first to need
 * one; see dcx_tx.h.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>


/* Goes round the ring, from @hand to the next initiator that is idle, or that
 * it creates. Returns NULL if there is none. */
static uct_dcx_dci_t *uct_dcx_tx_next(uct_dcx_dci_set_t *set)
{
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i <= set->num_created; ++i) {
        dci = set->hand;
        if ((dci->state == UCT_DCX_DCI_NONE) &&
            (uct_dcx_dci_set_create(set, dci - set->dci) == NULL)) {
            /* No endpoint may wait for initiators that will never exist. */
            uct_dcx_pool_truncate(&set->pool, set->num_created);
            uct_dcx_dci_set_close_ring(set);
            set->hand = set->dci;
            continue;
        }

        set->hand = dci->next;
        if (dci->state == UCT_DCX_DCI_IDLE) {
            return dci;
        }
    }
    return NULL;
}


uct_dcx_dci_t *uct_dcx_tx_attach(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    ucs_assert(ep->dci == UCT_DCX_NO_DCI);
    if (!uct_dcx_pool_has_idle(&set->pool) ||
        (ep->state == UCT_DCX_EP_FAILED)) {
        return NULL;
    }

    dci = &set->dci[ep->home];
    if ((dci->last != ep) || (dci->state != UCT_DCX_DCI_IDLE)) {
        dci = uct_dcx_tx_next(set);
    }

    if (dci == NULL) {
        return NULL;
    }

    uct_dcx_tx_link(set, dci, ep);
    if ((ep->state == UCT_DCX_EP_GIVEN_UP) &&
        (uct_dcx_ep_cancel(ep, dci) != UCS_OK)) {
        /* There will be no completion: it fails now. */
        uct_dcx_ep_fail(ep, UCS_ERR_CANCELED);
        return NULL;
    }
    return dci;
}


void uct_dcx_tx_signal(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_signal(&dci->txq.sq);
    if (set->throttled) {
        uct_dcx_sq_stop(&dci->txq.sq);
    }
}


uct_dcx_dci_t *uct_dcx_tx_get_dci(uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    uct_dcx_dci_t *dci;

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &set->dci[ep->dci];
        dci = uct_dcx_dci_may_post(dci, ep) ? dci : NULL;
    } else if (ucs_arbiter_is_empty(&set->waitq)) {
        dci = uct_dcx_tx_attach(set, ep);
    } else {
        return NULL; /* the wait queue goes first */
    }

    if ((dci != NULL) && !uct_dcx_sq_is_clear(&dci->txq.sq)) {
        uct_dcx_tx_signal(set, dci);
    }
    return dci;
}


void uct_dcx_tx_leave(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep)
{
    uct_dcx_op_t *op;
    unsigned i;

    uct_dcx_dci_mark_canceled(dci, ep);
    ucs_list_for_each (op, &dci->txq.ops, wqe) {
        if (op->ep == ep) {
            op->status = UCS_ERR_CANCELED;
        }
    }

    for (i = 0; uct_dcx_dci_is_shared(dci) && (i <= dci->txq.sq.mask); ++i) {
        if (dci->eps[i] == ep) {
            dci->eps[i] = NULL;
        }
    }
    uct_dcx_tx_part(dci, ep);
}
