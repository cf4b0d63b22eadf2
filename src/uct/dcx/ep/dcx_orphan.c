/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions that outlive their endpoint; see dcx_orphan.h. A completion of
 * dcx takes the place of the user's and calls it. So none of the user's is read
 * when the interface is closed. Operations on strided memory have one of dcx
 * already.
 */
#include "dcx_orphan.h"
#include "dcx_strided.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/debug/memtrack_int.h>


typedef struct uct_dcx_orphan {
    uct_completion_t super;
    uct_completion_t *comp; /* the user's, or NULL */
} uct_dcx_orphan_t;


static void uct_dcx_orphan_done(uct_completion_t *self)
{
    uct_dcx_orphan_t *orphan = ucs_derived_of(self, uct_dcx_orphan_t);
    uct_completion_t *comp   = orphan->comp;
    ucs_status_t status      = self->status;

    ucs_free(orphan);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}


/* Returns where @comp, which is one of dcx, has the user's. Returns NULL if it
 * is the user's. */
static uct_completion_t **uct_dcx_orphan_user(uct_completion_t *comp)
{
    return (comp->func == uct_dcx_orphan_done) ?
               &ucs_derived_of(comp, uct_dcx_orphan_t)->comp :
               uct_dcx_strided_user(comp);
}


static void uct_dcx_orphan_replace(uct_completion_t **comp_p)
{
    uct_dcx_orphan_t *orphan;

    if ((*comp_p == NULL) || (uct_dcx_orphan_user(*comp_p) != NULL)) {
        return;
    }

    orphan = ucs_malloc(sizeof(*orphan), "uct_dcx_orphan");
    if (orphan == NULL) {
        return;
    }

    orphan->super.func   = uct_dcx_orphan_done;
    orphan->super.count  = 1;
    orphan->super.status = UCS_OK;
    orphan->comp         = *comp_p;
    *comp_p              = &orphan->super;
}


static void uct_dcx_orphan_silence(uct_completion_t **comp_p)
{
    uct_completion_t **user_p;

    if (*comp_p != NULL) {
        user_p = uct_dcx_orphan_user(*comp_p);
        if (user_p != NULL) {
            *user_p = NULL;
        }
    }
}


/* Calls @visit for the completions of all operations of @ep (NULL: of all
 * endpoints). */
static void uct_dcx_orphan_visit(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep,
                                 void (*visit)(uct_completion_t **comp_p))
{
    uct_dcx_slot_t *slot;
    uct_dcx_op_t *op;
    uint16_t number;

    for (number = dci->txq.head; number != dci->txq.tail; ++number) {
        slot = uct_dcx_txq_slot(&dci->txq, number);
        if ((slot->done != NULL) &&
            ((ep == NULL) || (uct_dcx_dci_wqe_ep(dci, slot->index) == ep))) {
            visit(&slot->comp);
        }
    }

    ucs_list_for_each (op, &dci->txq.ops, wqe) {
        if ((ep == NULL) || (op->ep == ep)) {
            visit(&op->comp);
        }
    }
}


void uct_dcx_orphan_adopt(uct_dcx_ep_t *ep)
{
    uint16_t index = uct_dcx_ep_last_dci(ep);

    if (index != UCT_DCX_NO_DCI) {
        uct_dcx_orphan_visit(&uct_dcx_ep_dci_set(ep)->dci[index], ep,
                             uct_dcx_orphan_replace);
    }
}


void uct_dcx_orphan_forget(uct_dcx_dci_set_t *set)
{
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_orphan_visit(&set->dci[set->created[i]], NULL,
                             uct_dcx_orphan_silence);
    }
}
