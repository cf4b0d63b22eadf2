/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that the user invalidates (uct_ep_invalidate()), or flushes with
 * UCT_FLUSH_FLAG_CANCEL; sched/dcx_ep_fail.h describes their state afterwards.
 * Called in the interface's thread.
 */
#include "dcx_ep_cancel.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/recover/dcx_recover.h"
#include "uct/dcx/sched/dcx_ep_fail.h"
#include "uct/dcx/sched/dcx_fc_table.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/debug/log.h>


ucs_status_t uct_dcx_ep_flush_wait(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                                   uct_completion_t *comp)
{
    uint16_t index = uct_dcx_dci_is_shared(dci) ? ep->last : dci->txq.sq.last;
    ucs_status_t status;

    status = uct_dcx_op_flush(&uct_dcx_ep_dci_set(ep)->ops, ep, &dci->txq.ops,
                              index, comp);
    if (UCS_STATUS_IS_ERR(status)) {
        return status;
    }

    uct_dcx_tx_watch(dci);
    uct_dcx_signal_request(dci);
    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}


/* Flushes an endpoint that has nothing outstanding on an initiator. */
static ucs_status_t uct_dcx_ep_flush_lost(uct_dcx_ep_t *ep,
                                          uct_completion_t *comp)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    ucs_status_t status;

    uct_dcx_ep_fail(ep, UCS_ERR_CANCELED);
    uct_dcx_op_purge(&set->ops, ep, UCS_ERR_CANCELED);
    status = uct_dcx_recover_flush(set, ep, comp);
    if (status == UCS_OK) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
    }
    return status;
}


/* Returns non-zero if the endpoint has nothing outstanding on its initiator,
 * and no flush waits there. In the callback of one flush, others may still
 * wait. */
static int uct_dcx_ep_has_ended(const uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    uct_dcx_op_t *op;

    ucs_list_for_each (op, &dci->txq.ops, wqe) {
        if (op->ep == ep) {
            return 0;
        }
    }
    return uct_dcx_ep_is_idle(ep, dci);
}


/* Cancels and flushes. Errors of this peer are not reported to the user from
 * now on. */
ucs_status_t uct_dcx_ep_flush_cancel(uct_dcx_ep_t *ep, uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);
    uint16_t index           = uct_dcx_ep_last_dci(ep);
    uct_dcx_dci_t *dci;
    ucs_status_t status;

    if ((index == UCT_DCX_NO_DCI) ||
        uct_dcx_ep_has_ended(ep, &queues->dci.dci[index])) {
        ep->flags |= UCT_DCX_EP_FLAG_MUTED;
        return uct_dcx_ep_flush_lost(ep, comp);
    }

    dci = &queues->dci.dci[index];
    if (!(ep->flags & UCT_DCX_EP_FLAG_MUTED) &&
        (ep->state != UCT_DCX_EP_FAILED)) {
        status = uct_dcx_ep_cancel(ep, dci);
        if (status != UCS_OK) {
            return status;
        }
    }

    ep->flags |= UCT_DCX_EP_FLAG_MUTED;
    uct_dcx_op_purge(&queues->dci.ops, ep, UCS_ERR_CANCELED);
    return uct_dcx_ep_flush_wait(ep, dci, comp);
}


/* Gives the endpoint's credits up. Its pending requests get the error from the
 * operations that they try. Progress calls the error handler. If no initiator
 * is idle now, the endpoint fails when it gets one for its next operation. */
ucs_status_t uct_dcx_ep_invalidate(uct_ep_h tl_ep,
                                   uct_dcx_ucx_ep_invalidate_arg_t arg)
{
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    ucs_status_t status;

    if (ep->state >= UCT_DCX_EP_GIVEN_UP) {
        return UCS_OK;
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        status = uct_dcx_ep_cancel(ep, &set->dci[ep->dci]);
        if (status != UCS_OK) {
            return status;
        }
    }

    uct_dcx_fc_table_leave(set->fc_table, ep);
    uct_dcx_tx_set_ep(ep, UCT_DCX_EP_GIVEN_UP);
    uct_dcx_pending_resume(set, ep);
    if (ep->dci == UCT_DCX_NO_DCI) {
        uct_dcx_tx_get_dci(ep);
    }
    return UCS_OK;
}
