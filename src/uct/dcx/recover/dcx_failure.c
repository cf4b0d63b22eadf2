/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads an error completion, logs it, and calls the user's error handler; see
 * dcx_failure.h. Called by dcx_recover.c.
 */
#include "dcx_failure.h"
#include "uct/dcx/base/dcx_figures.h"

#include <ucs/debug/log.h>


static void uct_dcx_failure_log(const uct_dcx_failure_t *failure,
                                const uct_dcx_port_t *port,
                                const uct_dcx_dci_t *dci, const char *peer,
                                ucs_log_level_t level)
{
    const char *cause = failure->meaning->cause;
    char place[64]    = "";

    if (uct_dcx_dci_is_shared(dci) && uct_dcx_failure_is_flush(failure)) {
        cause = "another operation on the same DCI failed; this one may have "
                "arrived";
    }

    if (failure->rkey != 0) {
        snprintf(place, sizeof(place),
                 ", remote address 0x%" PRIx64 ", rkey 0x%x",
                 failure->remote_addr, failure->rkey);
    }

    ucs_log(level,
            "%s: operation to %s failed: %s (%s, syndrome 0x%x, "
            "vendor 0x%x; DCI 0x%x, WQE %u%s)",
            port->name, peer, cause, failure->meaning->reason,
            failure->syndrome, failure->vendor_syndrome, dci->txq.sq.qpn,
            failure->index, place);
}


/* Reads the remote place of a put or a get from the WQE, which is in the ring:
 * it tells the piece of a list. */
static void uct_dcx_failure_read_place(uct_dcx_failure_t *failure,
                                       const uct_dcx_sq_t *sq)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = uct_dcx_sq_block(sq, failure->index);
    const uct_dcx_av_t *av               = (const uct_dcx_av_t *)(ctrl + 1);
    unsigned opcode = be32toh(ctrl->opmod_idx_opcode) & 0xff;
    const struct mlx5_wqe_raddr_seg *raddr;
    uct_dcx_wqe_t wqe;

    failure->rkey = 0;
    if ((opcode != MLX5_OPCODE_RDMA_WRITE) &&
        (opcode != MLX5_OPCODE_RDMA_READ)) {
        return;
    }

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, failure->index);
    raddr = uct_dcx_wqe_seg_at(&wqe, uct_dcx_av_has_grh(av) ? 4 : 2);
    failure->remote_addr = be64toh(raddr->raddr);
    failure->rkey        = be32toh(raddr->rkey);
}


void uct_dcx_failure_parse(uct_dcx_failure_t *failure,
                           const uct_dcx_port_t *port, const uct_dcx_dci_t *dci,
                           const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe *)cqe;

    failure->meaning         = uct_dcx_cqe_syndrome(cqe);
    failure->status          = failure->meaning->status;
    failure->syndrome        = err->syndrome;
    failure->vendor_syndrome = err->vendor_err_synd;
    failure->index           = be16toh(cqe->wqe_counter);
    uct_dcx_failure_read_place(failure, &dci->txq.sq);
    if (uct_dcx_dci_is_shared(dci) && uct_dcx_failure_is_flush(failure)) {
        failure->status = UCS_ERR_IO_ERROR; /* the user has not canceled it */
    }

    if (uct_dcx_dci_wqe_ep(dci, failure->index) == NULL) {
        uct_dcx_failure_log(failure, port, dci, "a peer without an endpoint",
                            UCS_LOG_LEVEL_DEBUG);
    }
}


/* Counts the failure of an endpoint, by its cause. */
static void uct_dcx_failure_count(const uct_dcx_failure_t *failure)
{
    if (failure->syndrome == MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR) {
        uct_dcx_figures_add(UCT_DCX_FIGURE_RETRY_EXC, 1);
    } else if (failure->syndrome == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR) {
        uct_dcx_figures_add(UCT_DCX_FIGURE_RNR_EXC, 1);
    } else if (failure->status != UCS_ERR_CANCELED) {
        uct_dcx_figures_add(UCT_DCX_FIGURE_FAILURES, 1);
    }
}


void uct_dcx_failure_report(const uct_dcx_failure_t *failure,
                            const uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    uct_base_iface_t *iface    = &uct_dcx_ep_queues(ep)->super;
    const uct_dcx_port_t *port = uct_dcx_ep_dci_set(ep)->port;
    ucs_log_level_t level      = UCS_LOG_LEVEL_DEBUG;
    char peer[UCT_DCX_PEER_NAME_MAX];
    ucs_status_t status;

    uct_dcx_failure_count(failure);
    uct_dcx_peer_name(port, ep, peer); /* first, as the handler may destroy the
                                        * endpoint */
    status = uct_iface_handle_ep_err(&iface->super, &ep->super.super,
                                     failure->status);
    if (failure->status != UCS_ERR_CANCELED) {
        level = uct_base_iface_failure_log_level(iface, status,
                                                 failure->status);
    }
    uct_dcx_failure_log(failure, port, dci, peer, level);
}


void uct_dcx_failure_report_closed(uct_dcx_ep_t *ep)
{
    uct_base_iface_t *iface    = &uct_dcx_ep_queues(ep)->super;
    const uct_dcx_port_t *port = uct_dcx_ep_dci_set(ep)->port;
    char peer[UCT_DCX_PEER_NAME_MAX];
    ucs_status_t status;

    uct_dcx_figures_add(UCT_DCX_FIGURE_FAILURES, 1);
    uct_dcx_peer_name(port, ep, peer);
    status = uct_iface_handle_ep_err(&iface->super, &ep->super.super,
                                     UCS_ERR_IO_ERROR);
    ucs_log((status == UCS_OK) ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_FATAL,
            "%s: the endpoint to %s has failed with its interface", port->name,
            peer);
}
