/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions that outlive their endpoint; see dcx_orphan.h. An operation on
 * strided memory has a completion of dcx, which calls the user's and frees
 * resources. When the interface is closed, the user's may be freed memory, so
 * nothing is read of it: a mark in the slot tells the two kinds apart.
 */
#include "dcx_orphan.h"
#include "dcx_strided.h"
#include "uct/dcx/queue/dcx_endpoint.h"


static void uct_dcx_orphan_mark_slot(uct_dcx_slot_t *slot)
{
    slot->is_strided = (slot->comp != NULL) &&
                       (uct_dcx_strided_user(slot->comp) != NULL);
}


static void uct_dcx_orphan_forget_slot(uct_dcx_slot_t *slot)
{
    if (slot->is_strided) {
        *uct_dcx_strided_user(slot->comp) = NULL;
    } else {
        slot->comp = NULL;
    }
}


/* Calls @visit for all operations of @ep that end with a WQE. NULL: those of
 * all endpoints that were destroyed. */
static void uct_dcx_orphan_visit(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep,
                                 void (*visit)(uct_dcx_slot_t *slot))
{
    uct_dcx_slot_t *slot;
    uint16_t number;

    for (number = dci->txq.head; number != dci->txq.tail; ++number) {
        slot = uct_dcx_txq_slot(&dci->txq, number);
        if ((slot->done != NULL) &&
            (uct_dcx_dci_wqe_ep(dci, slot->index) == ep)) {
            visit(slot);
        }
    }
}


void uct_dcx_orphan_mark(uct_dcx_ep_t *ep)
{
    uint16_t index = uct_dcx_ep_last_dci(ep);

    if (index != UCT_DCX_NO_DCI) {
        uct_dcx_orphan_visit(&uct_dcx_ep_dci_set(ep)->dci[index], ep,
                             uct_dcx_orphan_mark_slot);
    }
}


void uct_dcx_orphan_forget(uct_dcx_dci_set_t *set)
{
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_orphan_visit(&set->dci[set->created[i]], NULL,
                             uct_dcx_orphan_forget_slot);
    }
}
