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


/* A device gets that long to end an operation, however short its timeout is. */
#define UCT_DCX_RELEASE_MIN_SECONDS  0.1


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

    dci->sq.odd = 1;
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


/* --- exclusive ------------------------------------------------------------ */

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


/* --- shared --------------------------------------------------------------- */

/* Whether the completion of the WQE at 'index', or of one behind it, has been
 * written. */
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
            UCS_CIRCULAR_COMPARE16(be16toh(cqe->wqe_counter), >=, index)) {
            return 1;
        }
    }
    return 0;
}


/* Returns whether it has been, after 'seconds' at most. */
static int uct_dcx_dci_wait_for(const uct_dcx_dci_t *dci, uint16_t index,
                                double seconds)
{
    ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(seconds);

    while (!uct_dcx_dci_has_completed(dci, index)) {
        if (ucs_get_time() > deadline) {
            return 0;
        }
        sched_yield();
    }
    return 1;
}


/* The device is done with a WQE when its completion is there, be it one with an
 * error; that of an operation on memory of the user is always asked for. What
 * others have begun is not known: the queue is only stopped if the operation
 * outlasts all tries. Each takes up to four times the timeout (InfiniBand
 * specification, "Local ACK Timeout"); a peer without receive buffers may be
 * tried without end. */
static void
uct_dcx_dci_release(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci, uint16_t index)
{
    const uct_dcx_dci_params_t *params = &iface->dci.params;
    double seconds                     = 4.096e-6 *
                                         UCS_BIT(params->timeout + 2) *
                                         (params->retry_count + 1);

    /* the price is high if it was about to end */
    seconds = ucs_max(seconds, UCT_DCX_RELEASE_MIN_SECONDS);
    if (uct_dcx_dci_wait_for(dci, index, seconds)) {
        return;
    }

    ucs_debug("%s: DCI 0x%x: WQE %u of an endpoint that is destroyed does not "
              "end, all are flushed", uct_dcx_iface_name(iface),
              dci->qp->qp_num, index);
    uct_dcx_dci_drain_all(iface, dci);
    if (!uct_dcx_dci_wait_for(dci, index, seconds)) {
        ucs_fatal("%s: DCI 0x%x: WQE %u was not flushed within %.0f seconds: "
                  "the device still uses memory of an endpoint that is "
                  "destroyed", uct_dcx_iface_name(iface), dci->qp->qp_num,
                  index, seconds);
    }
}


static void uct_dcx_dci_leave_shared(uct_dcx_iface_t *iface,
                                     uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    const uct_dcx_op_t *op = uct_dcx_dci_last_on_user_memory(dci, ep);
    unsigned i;

    ep->dci = UCT_DCX_NO_DCI;
    if (op != NULL) {
        uct_dcx_dci_release(iface, dci, op->index);
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
