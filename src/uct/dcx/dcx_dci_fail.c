/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator that fails: from the completion with error, or from the wish
 * of the user, to a queue that works again; what it costs is in dcx_dci_lost.c,
 * and what comes between with a shared one in dcx_dci_drain.c.
 * Called by progress (dcx_tx.c) and by endpoints (dcx_ep.c) in the interface's
 * thread. A DCI in the error state flushes what is posted,
 * with one completion each (PRM, "QP error state").
 */
#include "dcx_dci_drain.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>


ucs_status_t uct_dcx_dci_to_error(uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    uct_dcx_tx_t tx         = {
        .opcode = MLX5_OPCODE_NOP,
        .flags  = MLX5_WQE_CTRL_CQ_UPDATE
    };
    uct_dcx_wqe_t wqe;

    if (dci->in_error) {
        return UCS_OK;
    }

    if (uct_dcx_dci_modify(dci, &attr, 0) != 0) {
        ucs_error("DCI 0x%x cannot be brought to the error state: %m",
                  dci->sq.qpn);
        return UCS_ERR_IO_ERROR;
    }

    dci->in_error = 1;

    /* flushed like all others, and so it is certain that an error is seen */
    uct_dcx_tx_begin(&wqe, dci, dci->ep);
    uct_dcx_tx_post(dci, &wqe, &tx);
    return UCS_OK;
}


void uct_dcx_dci_stop(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    if (uct_dcx_dci_modify(dci, &attr, 0) != 0) {
        ucs_fatal("%s: DCI 0x%x cannot be reset: %m",
                  uct_dcx_iface_name(iface), dci->sq.qpn);
    }
    uct_dcx_cq_remove(dci->cq, dci->sq.qpn);
}


void uct_dcx_dci_restart(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq = &dci->sq;
    unsigned num_bb  = sq->pi - sq->last;
    uint64_t doorbell;

    dci->turn++;
    dci->in_error = 0;
    if (uct_dcx_dci_connect(iface, dci) != UCS_OK) {
        ucs_fatal("%s: DCI 0x%x is lost", uct_dcx_iface_name(iface), sq->qpn);
    }

    if (!uct_dcx_dci_is_idle(dci)) {
        /* as if the last one were posted now */
        memcpy(&doorbell, uct_dcx_sq_block(sq, sq->last), sizeof(doorbell));
        uct_dcx_sq_ring(sq, sq->last, num_bb, doorbell);
    }
}


void uct_dcx_dci_resume(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_pending_got_room(iface, dci);
    uct_dcx_tx_settle(iface, dci);
}


/* Users hear of it: first of their operations, then of the endpoints. Whatever
 * they do in a callback, the initiator is in order already. */
static void uct_dcx_dci_tell(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                             uct_dcx_lost_t *lost)
{
    unsigned i;

    iface->dci.failing = lost;
    uct_dcx_lost_end(lost, dci);
    for (i = 0; i < lost->num_eps; ++i) {
        uct_dcx_failure_report(lost->eps[i].failure, iface, lost->eps[i].ep);
    }
    iface->dci.failing = NULL;
}


/* An exclusive initiator parts with its endpoint, and all that are lost fail,
 * before the user hears of the error: what he posts then is refused. */
static void uct_dcx_dci_part(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                             uct_dcx_lost_t *lost)
{
    uct_dcx_ep_t *ep = dci->ep;
    unsigned i;

    if (ep != NULL) {
        dci->ep = NULL;
        ep->dci = UCT_DCX_NO_DCI;
        uct_dcx_pending_lost_dci(iface, ep, dci);
    }

    for (i = 0; i < lost->num_eps; ++i) {
        if (!uct_dcx_ep_fail(lost->eps[i].ep, lost->eps[i].failure->status)) {
            lost->eps[i].ep = NULL;
        }
    }
}


void uct_dcx_dci_recover(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                         uct_dcx_lost_t *lost)
{
    uct_dcx_dci_part(iface, dci, lost);
    uct_dcx_dci_restart(iface, dci);
    uct_dcx_dci_resume(iface, dci);
    uct_dcx_dci_tell(iface, dci, lost);
    uct_dcx_lost_cleanup(lost);
}


void uct_dcx_dci_fail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const struct mlx5_cqe64 *cqe)
{
    uct_dcx_failure_t failure;
    uct_dcx_lost_t lost;

    if (!uct_dcx_dci_is_shared(dci)) {
        uct_dcx_failure_parse(&failure, iface, dci, cqe);
    }

    /* what was posted before the failed operation was acknowledged */
    if (!uct_dcx_dci_retire(dci, be16toh(cqe->wqe_counter))) {
        return; /* the endpoint is gone, and the failed operation with it */
    }

    if (uct_dcx_dci_is_shared(dci)) {
        uct_dcx_dci_drain(iface, dci, cqe);
        return;
    }

    uct_dcx_lost_init(&lost, dci);
    uct_dcx_dci_stop(iface, dci);
    uct_dcx_lost_take_all(&lost, dci, &failure);
    uct_dcx_dci_recover(iface, dci, &lost);
}
