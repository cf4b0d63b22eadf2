/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What failures cost, as lists, and the end of those that are in them; see
 * dcx_dci_lost.h. Who gets there from a shared initiator: dcx_dci_sort.c.
 */
#include "dcx_dci_lost.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


void *uct_dcx_lost_alloc(size_t count, size_t size)
{
    void *memory = ucs_malloc(ucs_max(count, 1) * size, "uct_dcx_lost");

    if (memory == NULL) {
        ucs_fatal("no memory to recover from a failure");
    }
    return memory;
}


void uct_dcx_lost_init(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci)
{
    unsigned num_bb = uct_dcx_sq_used(&dci->sq);

    lost->ops     = uct_dcx_lost_alloc(num_bb, sizeof(*lost->ops));
    lost->num_ops = 0;
    lost->eps     = uct_dcx_lost_alloc(num_bb, sizeof(*lost->eps));
    lost->num_eps = 0;
    ucs_list_head_init(&lost->flushes);
}


void uct_dcx_lost_cleanup(uct_dcx_lost_t *lost)
{
    ucs_free(lost->eps);
    ucs_free(lost->ops);
}


void uct_dcx_lost_add_op(uct_dcx_lost_t *lost, const uct_dcx_op_t *op,
                         uct_dcx_ep_t *ep, ucs_status_t status)
{
    uct_dcx_lost_op_t *lost_op = &lost->ops[lost->num_ops++];

    lost_op->op     = *op;
    lost_op->ep     = ep;
    lost_op->status = status;
}


void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, uct_dcx_ep_t *ep,
                         const uct_dcx_failure_t *failure)
{
    uct_dcx_lost_ep_t *lost_ep = &lost->eps[lost->num_eps++];

    lost_ep->ep      = ep;
    lost_ep->failure = failure;
}


void uct_dcx_lost_add_flush(uct_dcx_lost_t *lost, uct_dcx_flush_t *flush,
                            ucs_status_t status)
{
    flush->status = status;
    ucs_list_del(&flush->list);
    ucs_list_add_tail(&lost->flushes, &flush->list);
}


void uct_dcx_lost_take_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                           const uct_dcx_failure_t *failure)
{
    ucs_status_t status = (failure != NULL) ? failure->status :
                                              UCS_ERR_CANCELED;
    uct_dcx_op_t *op;

    for (; dci->op_head != dci->op_tail; dci->op_head++) {
        op = uct_dcx_dci_op(dci, dci->op_head);
        uct_dcx_lost_add_op(lost, op, dci->ep, status);
        op->canceled = 0;
    }

    if ((dci->ep != NULL) && (failure != NULL)) {
        uct_dcx_lost_add_ep(lost, dci->ep, failure);
    }

    while (!ucs_list_is_empty(&dci->flushes)) {
        uct_dcx_lost_add_flush(lost, ucs_list_head(&dci->flushes,
                                                   uct_dcx_flush_t, list),
                               status);
    }
    uct_dcx_sq_reset(&dci->sq);
}


/* --- those who are told --------------------------------------------------- */

static void uct_dcx_lost_end_op(uct_dcx_lost_op_t *lost_op, uct_dcx_dci_t *dci,
                                ucs_status_t status)
{
    uct_dcx_op_t op = lost_op->op;

    /* the user may destroy the endpoint, which ends all that has not ended */
    lost_op->op.done = NULL;
    if (op.done != NULL) {
        uct_dcx_dci_end_op(dci, &op, status);
    }
}


void uct_dcx_lost_end(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci)
{
    uct_dcx_flush_t *flush;
    unsigned i;

    for (i = 0; i < lost->num_ops; ++i) {
        uct_dcx_lost_end_op(&lost->ops[i], dci, lost->ops[i].status);
    }

    while (!ucs_list_is_empty(&lost->flushes)) {
        flush = ucs_list_head(&lost->flushes, uct_dcx_flush_t, list);
        uct_dcx_flush_end_one(flush, (ucs_status_t)flush->status);
    }
}


int uct_dcx_lost_has(const uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < lost->num_ops; ++i) {
        if ((lost->ops[i].ep == ep) && (lost->ops[i].op.done != NULL)) {
            return 1;
        }
    }
    return 0;
}


void uct_dcx_lost_forget(uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < lost->num_eps; ++i) {
        if (lost->eps[i].ep == ep) {
            lost->eps[i].ep = NULL;
        }
    }

    for (i = 0; i < lost->num_ops; ++i) {
        if (lost->ops[i].ep == ep) {
            uct_dcx_lost_end_op(&lost->ops[i], NULL, UCS_ERR_CANCELED);
        }
    }
    uct_dcx_flush_end(&lost->flushes, ep, UCS_ERR_CANCELED);
}
