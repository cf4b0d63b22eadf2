/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What a completion with error told, and how a user is told of it; see
 * dcx_failure.h. Called by those who recover an initiator (dcx_dci_fail.c,
 * dcx_dci_drain.c).
 */
#include "dcx_failure.h"

#include <ucs/debug/log.h>


static void uct_dcx_failure_log(const uct_dcx_failure_t *failure,
                                const uct_dcx_iface_t *iface,
                                ucs_log_level_t level)
{
    ucs_log(level, "%s:%u: operation to %s failed: %s (%s, syndrome 0x%x, "
            "vendor 0x%x; DCI 0x%x, WQE %u)", uct_dcx_iface_name(iface),
            iface->port.num, failure->peer, failure->cause, failure->reason,
            failure->syndrome, failure->vendor_syndrome, failure->qpn,
            failure->index);
}


void uct_dcx_failure_parse(uct_dcx_failure_t *failure,
                           const uct_dcx_iface_t *iface,
                           const uct_dcx_dci_t *dci,
                           const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;
    const uct_dcx_ep_t *ep;

    failure->status          = uct_dcx_cqe_status(cqe, &failure->reason);
    failure->syndrome        = err->syndrome;
    failure->vendor_syndrome = err->vendor_err_synd;
    failure->cause           = uct_dcx_peer_cause(err->syndrome);
    failure->index           = be16toh(cqe->wqe_counter);
    failure->qpn             = dci->qp->qp_num;
    if (uct_dcx_dci_is_shared(dci) && uct_dcx_failure_is_flush(failure)) {
        /* nobody has cancelled it */
        failure->status = UCS_ERR_IO_ERROR;
        failure->cause  = "another one on the same initiator did, and it is "
                          "not known whether this one has arrived";
    }

    ep = uct_dcx_dci_wqe_ep(dci, failure->index);
    uct_dcx_peer_name(iface, ep, failure->peer);
    if (ep == NULL) {
        uct_dcx_failure_log(failure, iface, UCS_LOG_LEVEL_DEBUG);
    }
}


void uct_dcx_failure_report(const uct_dcx_failure_t *failure,
                            uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    ucs_log_level_t level = UCS_LOG_LEVEL_DEBUG;
    ucs_status_t status;

    if (ep != NULL) {
        status = uct_iface_handle_ep_err(&iface->super.super,
                                         &ep->super.super, failure->status);
        if (failure->status != UCS_ERR_CANCELED) {
            level = uct_base_iface_failure_log_level(&iface->super, status,
                                                     failure->status);
        }
    }
    uct_dcx_failure_log(failure, iface, level);
}
