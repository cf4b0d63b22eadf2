/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints that fail; see dcx_ep_fail.h.
 */
#include "dcx_ep_fail.h"
#include "dcx_fc_table.h"
#include "dcx_peer.h"
#include "dcx_pending.h"
#include "dcx_tx.h"
#include "uct/dcx/queue/dcx_post.h"

#include <ucs/debug/log.h>


int uct_dcx_ep_fail(uct_dcx_ep_t *ep, ucs_status_t status)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);

    if (ep->state == UCT_DCX_EP_FAILED) {
        return 0;
    }

    if ((ep->dci != UCT_DCX_NO_DCI) &&
        !uct_dcx_dci_is_shared(&set->dci[ep->dci])) {
        uct_dcx_tx_release(set, &set->dci[ep->dci]);
        ucs_assert(ep->dci == UCT_DCX_NO_DCI);
    }

    uct_dcx_fc_table_leave(set->fc_table, ep);
    uct_dcx_tx_fail(ep, status);
    uct_dcx_pending_failed(set, ep);
    return !(ep->flags & UCT_DCX_EP_FLAG_MUTED);
}


ucs_status_t uct_dcx_ep_refuse(uct_dcx_ep_t *ep)
{
    const uct_base_iface_t *iface = &uct_dcx_ep_queues(ep)->super;
    const uct_dcx_port_t *port    = uct_dcx_ep_dci_set(ep)->port;
    ucs_status_t status           = -ep->error;
    ucs_log_level_t level         = UCS_LOG_LEVEL_DEBUG;
    char name[UCT_DCX_PEER_NAME_MAX];

    if (!(ep->flags & UCT_DCX_EP_FLAG_REFUSED)) {
        ep->flags |= UCT_DCX_EP_FLAG_REFUSED;
        if (status != UCS_ERR_CANCELED) {
            level = iface->config.failure_level;
        }
        uct_dcx_peer_name(port, ep, name);
        ucs_log(level,
                "%s: operation to %s is rejected: the endpoint has failed "
                "(%s); destroy it, and create a new one",
                port->name, name, ucs_status_string(status));
    }
    return status;
}


ucs_status_t uct_dcx_ep_no_resource(uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);

    if (uct_dcx_tx_is_lost(set, ep)) {
        if (set->is_closing && (ep->state != UCT_DCX_EP_FAILED)) {
            return UCS_ERR_IO_ERROR; /* it fails later, with a report */
        }
        uct_dcx_ep_fail(ep, UCS_ERR_IO_ERROR);
    }

    if (ep->state == UCT_DCX_EP_FAILED) {
        return uct_dcx_ep_refuse(ep);
    }

    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}


void uct_dcx_ep_done_mark(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                          ucs_status_t status)
{
    uct_dcx_dci_t *dci = ucs_container_of(txq, uct_dcx_dci_t, txq);
    uct_dcx_ep_t *ep;
    int is_reported;

    if (status != UCS_OK) {
        return; /* it has failed before, or another mark follows */
    }

    ep = uct_dcx_dci_wqe_ep(dci, slot->index);
    if (ep == NULL) {
        return;
    }

    is_reported = uct_dcx_ep_fail(ep, UCS_ERR_CANCELED);
    uct_dcx_op_purge(&uct_dcx_ep_dci_set(ep)->ops, ep, UCS_ERR_CANCELED);
    if (is_reported && (uct_dcx_dci_wqe_ep(dci, slot->index) == ep)) {
        ucs_debug("ep %p is invalidated", ep);
        uct_iface_handle_ep_err(ep->super.super.iface, &ep->super.super,
                                UCS_ERR_CANCELED);
    }
}


static ucs_status_t uct_dcx_ep_post_mark(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    uct_dcx_post_t tx = {
        .opcode = MLX5_OPCODE_NOP,
        .flags  = dci->fence, /* waits for reads, too */
        .done   = uct_dcx_ep_done_mark,
    };
    uct_dcx_wqe_t wqe;

    if ((dci->state == UCT_DCX_DCI_LOST) ||
        (uct_dcx_sq_used(&dci->txq.sq) > dci->txq.sq.mask)) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_dci_mark_canceled(dci, ep);
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    uct_dcx_sq_stop(&dci->txq.sq); /* keeps @stop at @pi */
    return UCS_OK;
}


ucs_status_t uct_dcx_ep_cancel(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    uct_dcx_post_t tx       = {
              .opcode = MLX5_OPCODE_NOP,
              .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
    };
    uct_dcx_wqe_t wqe;

    if (uct_dcx_dci_is_shared(dci)) {
        return uct_dcx_ep_post_mark(ep, dci);
    }

    if ((dci->state == UCT_DCX_DCI_ERROR) || (dci->state == UCT_DCX_DCI_LOST)) {
        return UCS_OK; /* it ends with an error already */
    }

    if (uct_dcx_dci_modify(dci, &attr, 0) != 0) {
        ucs_error("failed to modify DCI 0x%x to the error state: %m",
                  dci->txq.sq.qpn);
        return UCS_ERR_IO_ERROR;
    }

    uct_dcx_tx_set_state(dci, UCT_DCX_DCI_ERROR);

    /* This NOP is flushed like all other WQEs, so that at least one error
     * completion arrives. */
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    return UCS_OK;
}
