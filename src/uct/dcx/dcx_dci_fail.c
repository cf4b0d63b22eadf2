/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator that fails, or whose endpoint is destroyed before its time:
 * from the completion with error, or from the wish of the user, to a queue
 * that works again. Called by progress (dcx_tx.c) and by endpoints (dcx_ep.c)
 * in the interface's thread. A DCI in the error state flushes what is posted,
 * with one completion each (PRM, "QP error state").
 */
#include "dcx_peer.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>


/* What a completion with error told. */
typedef struct uct_dcx_failure {
    ucs_status_t status;
    const char   *reason;
    unsigned     syndrome;
    unsigned     vendor_syndrome;
    uint16_t     index;    /* block of the WQE */
    uint32_t     qpn;
    char         peer[UCT_DCX_PEER_NAME_MAX];
} uct_dcx_failure_t;


ucs_status_t uct_dcx_dci_to_error(uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    uct_dcx_tx_t tx         = {.opcode = MLX5_OPCODE_NOP};
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


/* Takes the device off the queue for good: nothing is on the wire after that,
 * and no completion comes any more. */
static void uct_dcx_dci_stop(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    if (uct_dcx_dci_modify(dci, &attr, 0) != 0) {
        ucs_fatal("%s: DCI 0x%x cannot be reset: %m",
                  uct_dcx_iface_name(iface), dci->sq.qpn);
    }
    uct_dcx_cq_disown(&iface->tx_cq, dci->sq.qpn);
}


static void uct_dcx_dci_restart(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_reset(&dci->sq);
    dci->turn++;
    dci->in_error = 0;
    if (uct_dcx_dci_connect(iface, dci) != UCS_OK) {
        ucs_fatal("%s: DCI 0x%x is lost", uct_dcx_iface_name(iface),
                  dci->sq.qpn);
    }
}


static void
uct_dcx_dci_parse_failure(const uct_dcx_iface_t *iface,
                          const uct_dcx_dci_t *dci,
                          const struct mlx5_cqe64 *cqe,
                          uct_dcx_failure_t *failure)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;

    failure->status          = uct_dcx_cqe_status(cqe, &failure->reason);
    failure->syndrome        = err->syndrome;
    failure->vendor_syndrome = err->vendor_err_synd;
    failure->index           = be16toh(cqe->wqe_counter);
    failure->qpn             = dci->sq.qpn;
    uct_dcx_peer_name(iface, dci->ep, failure->peer);
}


/* Tells the user that the peer of 'ep' is lost, once. A failure that nobody
 * handles is fatal: data of his is gone. */
static void
uct_dcx_dci_report(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                   const uct_dcx_failure_t *failure)
{
    ucs_log_level_t level = UCS_LOG_LEVEL_DEBUG;
    ucs_status_t status;

    if ((ep != NULL) && !(ep->flags & (UCT_DCX_EP_FLAG_FAILED |
                                       UCT_DCX_EP_FLAG_MUTED))) {
        ep->flags |= UCT_DCX_EP_FLAG_FAILED;
        status     = uct_iface_handle_ep_err(&iface->super.super,
                                             &ep->super.super,
                                             failure->status);
        if (failure->status != UCS_ERR_CANCELED) {
            level = uct_base_iface_failure_log_level(&iface->super, status,
                                                     failure->status);
        }
    }

    ucs_log(level, "%s:%u: operation to %s failed: %s (%s, syndrome 0x%x, "
            "vendor 0x%x; DCI 0x%x, WQE %u)", uct_dcx_iface_name(iface),
            iface->port.num, failure->peer,
            uct_dcx_peer_cause(failure->syndrome), failure->reason,
            failure->syndrome, failure->vendor_syndrome, failure->qpn,
            failure->index);
}


void uct_dcx_dci_fail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const struct mlx5_cqe64 *cqe)
{
    uct_dcx_failure_t failure;
    uct_dcx_ep_t *ep;

    uct_dcx_dci_parse_failure(iface, dci, cqe, &failure);

    /* what was posted before the failed operation was acknowledged */
    if (!uct_dcx_dci_retire(iface, dci, failure.index, UCS_OK)) {
        return; /* the endpoint is gone, and the failed operation with it */
    }

    /* The endpoint parts with the initiator before the user hears of the
     * error: what he posts then goes elsewhere. He may also destroy it. */
    ep                 = dci->ep;
    iface->dci.failing = ep;
    dci->ep            = NULL;
    if (ep != NULL) {
        ep->dci = UCT_DCX_NO_DCI;
        uct_dcx_pending_lost_dci(iface, ep);
    }

    uct_dcx_dci_stop(iface, dci);
    uct_dcx_dci_retire(iface, dci, dci->sq.pi, failure.status);
    uct_dcx_dci_restart(iface, dci);
    uct_dcx_tx_settle(iface, dci);

    ep                 = iface->dci.failing;
    iface->dci.failing = NULL;
    uct_dcx_dci_report(iface, ep, &failure);
}


/* Completions come now; the operations stay where they are. */
static void uct_dcx_dci_cancel(uct_dcx_dci_t *dci)
{
    uct_completion_t *comp;
    uct_dcx_flush_t *flush;
    uct_dcx_op_t *op;
    uint16_t index;

    for (index = dci->sq.ci; index != dci->sq.pi; index += op->num_bb) {
        op           = &dci->ops[index & dci->sq.mask];
        op->canceled = 1;
        if ((op->done != NULL) && (op->comp != NULL)) {
            comp     = op->comp;
            op->comp = NULL;
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }

    while (!ucs_queue_is_empty(&dci->flushes)) {
        flush = ucs_queue_pull_elem_non_empty(&dci->flushes, uct_dcx_flush_t,
                                              queue);
        comp  = flush->comp;
        ucs_mpool_put(flush);
        uct_invoke_completion(comp, UCS_ERR_CANCELED);
    }
}


/* Whether the device may still read or write memory that is not ours. */
static int uct_dcx_dci_uses_user_memory(const uct_dcx_dci_t *dci)
{
    const uct_dcx_op_t *op;
    uint16_t index;

    for (index = dci->sq.ci; index != dci->sq.pi; index += op->num_bb) {
        op = &dci->ops[index & dci->sq.mask];
        if (op->done == uct_dcx_tx_done_comp) {
            return 1;
        }
    }
    return 0;
}


void uct_dcx_dci_leave(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    if (!uct_dcx_dci_uses_user_memory(dci)) {
        uct_dcx_dci_cancel(dci);
        return;
    }

    uct_dcx_dci_stop(iface, dci);
    uct_dcx_dci_retire(iface, dci, dci->sq.pi, UCS_ERR_CANCELED);
    uct_dcx_dci_restart(iface, dci);
    uct_dcx_tx_settle(iface, dci);
}
