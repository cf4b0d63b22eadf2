/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_op_driver.h.
 */
#include "dcx_op_driver.h"

#include "uct/dcx/queue/dcx_endpoint.h"


void *dcx_op_begin(uct_ep_h tl_ep, unsigned events, int wqe,
                   uct_completion_t *comp)
{
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    uct_dcx_op_t *op       = uct_dcx_op_new(&set->ops, ep, comp, NULL);
    uct_dcx_txq_t *txq;

    if (events > 0) {
        uct_dcx_op_wait_events(op, events);
    }

    if (wqe) {
        txq = &set->dci[ep->dci].txq;
        uct_dcx_op_wait_wqe(op, &txq->ops, txq->sq.last);
    }
    return op;
}


void dcx_op_event(void *op, ucs_status_t status)
{
    uct_dcx_op_event(op, status);
}


void dcx_op_cancel(void *op)
{
    uct_dcx_op_cancel(op);
}
