/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint that is destroyed while it has operations outstanding. Called by
 * endpoints (dcx_ep.c) in the interface's thread; the endpoint takes part in
 * nothing any more when this returns.
 */
#include "dcx_dci_drain.h"
#include "dcx_tx.h"

#include <sched.h>
#include <ucs/debug/log.h>
#include <ucs/time/time.h>


/* The last operation of 'ep' in which the device reads or writes memory that is
 * not ours, NULL if there is none. */
static const uct_dcx_op_t *
uct_dcx_dci_last_on_user_memory(const uct_dcx_dci_t *dci,
                                const uct_dcx_ep_t *ep)
{
    const uct_dcx_op_t *op, *last = NULL;
    uint16_t place;

    for (place = dci->op_head; place != dci->op_tail; ++place) {
        op = uct_dcx_dci_op(dci, place);
        if ((op->done == uct_dcx_tx_done_comp) &&
            (uct_dcx_dci_wqe_ep(dci, op->index) == ep)) {
            last = op;
        }
    }
    return last;
}


/* Completions come now; the operations stay where they are. */
static void uct_dcx_dci_cancel(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    uct_completion_t *comp;
    uct_dcx_op_t *op;
    uint16_t place;

    for (place = dci->op_head; place != dci->op_tail; ++place) {
        op = uct_dcx_dci_op(dci, place);
        if ((op->done == NULL) || (uct_dcx_dci_wqe_ep(dci, op->index) != ep)) {
            continue;
        }

        comp         = op->comp;
        op->comp     = NULL;
        op->canceled = 1;
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }
    uct_dcx_flush_end(&dci->flushes, ep, UCS_ERR_CANCELED);
}


/* --- exclusive ------------------------------------------------------------- */

static void uct_dcx_dci_leave_exclusive(uct_dcx_iface_t *iface,
                                        uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    uct_dcx_lost_t lost;

    ep->dci = UCT_DCX_NO_DCI;
    if (uct_dcx_dci_last_on_user_memory(dci, ep) == NULL) {
        uct_dcx_dci_cancel(dci, ep);
        dci->ep = NULL;
        return;
    }

    uct_dcx_lost_init(&lost, dci);
    uct_dcx_dci_stop(iface, dci);
    uct_dcx_lost_take_all(&lost, dci, NULL);
    dci->ep = NULL;
    uct_dcx_dci_restart(iface, dci);
    uct_dcx_dci_resume(iface, dci);
    uct_dcx_lost_end(&lost, dci);
    uct_dcx_lost_cleanup(&lost);
}


/* --- shared ---------------------------------------------------------------- */

/* Whether the completion of the WQE at 'index' has been written. */
static int uct_dcx_dci_has_completed(const uct_dcx_dci_t *dci, uint16_t index)
{
    const uct_dcx_cq_t *cq = dci->cq;
    const struct mlx5_cqe64 *cqe;
    uint32_t i;

    if (uct_dcx_drain_has_taken(dci, index)) {
        return 1;
    }

    for (i = cq->ci; (i - cq->ci) < cq->count; ++i) {
        cqe = uct_dcx_cq_peek(cq, i);
        if (cqe == NULL) {
            return 0;
        }

        if ((uct_dcx_cqe_qpn(cqe) == dci->qp->qp_num) &&
            (be16toh(cqe->wqe_counter) == index)) {
            return 1;
        }
    }
    return 0;
}


/* The queue cannot be stopped, as it is not known what others have begun. The
 * device is done with the WQE when its completion is there, be it one with an
 * error; that of an operation on memory of the user is always asked for. */
static void
uct_dcx_dci_wait_for(uct_dcx_iface_t *iface, const uct_dcx_dci_t *dci,
                     const uct_dcx_op_t *op)
{
    const uct_dcx_dci_params_t *params = &iface->dci.params;
    double seconds                     = 4.096e-6 *
                                         UCS_BIT(params->timeout + 1) *
                                         (params->retry_count + 1);
    ucs_time_t deadline                = ucs_get_time() +
                                         ucs_time_from_sec(seconds);

    while (!uct_dcx_dci_has_completed(dci, op->index)) {
        if (ucs_get_time() > deadline) {
            ucs_warn("DCI 0x%x: WQE %u of an endpoint that is destroyed has "
                     "not completed after %.0f seconds: the device may still "
                     "use its memory", dci->sq.qpn, op->index, seconds);
            return;
        }
        sched_yield();
    }
}


static void uct_dcx_dci_leave_shared(uct_dcx_iface_t *iface,
                                     uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    const uct_dcx_op_t *op = uct_dcx_dci_last_on_user_memory(dci, ep);
    unsigned i;

    ep->dci = UCT_DCX_NO_DCI;
    if (op != NULL) {
        uct_dcx_dci_wait_for(iface, dci, op);
    }

    uct_dcx_dci_cancel(dci, ep);
    for (i = 0; i <= dci->sq.mask; ++i) {
        if (dci->eps[i] == ep) {
            dci->eps[i] = NULL;
        }
    }
}


void uct_dcx_dci_leave(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       uct_dcx_ep_t *ep)
{
    if (uct_dcx_dci_is_shared(dci)) {
        uct_dcx_dci_leave_shared(iface, dci, ep);
    } else {
        uct_dcx_dci_leave_exclusive(iface, dci, ep);
    }
}
