/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One DC initiator: creation, connection, and the cancellation of its
 * operations. dcx_dci.h describes its ownership. A DCI has the states RESET,
 * INIT, RTR, RTS of any reliable QP, but no peer: each WQE has the peer's
 * address.
 */
#include "dcx_endpoint.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask)
{
    return ibv_modify_qp(dci->txq.qp, attr, mask | IBV_QP_STATE);
}


ucs_status_t uct_dcx_dci_connect(const uct_dcx_dci_set_t *set,
                                 uct_dcx_dci_t *dci)
{
    const uct_dcx_dci_params_t *params = &set->params;
    struct ibv_qp_attr init            = {
                   .qp_state   = IBV_QPS_INIT,
                   .pkey_index = set->port->pkey_index,
                   .port_num   = set->port->num,
    };
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = set->port->mtu,
    };
    struct ibv_qp_attr rts = {
        .qp_state      = IBV_QPS_RTS,
        .timeout       = params->timeout,
        .retry_cnt     = params->retry_count,
        .rnr_retry     = params->rnr_retry_count,
        .max_rd_atomic = params->max_rd_atomic,
    };

    uct_dcx_port_fill_ah(set->port, &rtr.ah_attr);
    if (uct_dcx_dci_modify(dci, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT) ||
        uct_dcx_dci_modify(dci, &rtr, IBV_QP_PATH_MTU | IBV_QP_AV) ||
        uct_dcx_dci_modify(dci, &rts,
                           IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC)) {
        ucs_error("%s: failed to modify DCI 0x%x to RTS: %m", set->port->name,
                  dci->txq.qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static ucs_status_t uct_dcx_dci_create_qp(const uct_dcx_dci_set_t *set,
                                          uct_dcx_dci_t *dci,
                                          const uct_dcx_cq_t *cq,
                                          ucs_log_level_t level)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type    = IBV_QPT_DRIVER,
        .qp_context = (void *)(uintptr_t)dci->index, /* for its events */
        .comp_mask  = IBV_QP_INIT_ATTR_PD,
        .pd         = set->td.pd,
        .send_cq    = cq->cq,
        .recv_cq    = cq->cq,
        .cap = {.max_send_sge = 1, .max_send_wr = set->params.max_send_wr},
    };
    /* Results of gets and atomics go to memory, never into the completion. */
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC |
                     MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI},
    };

    if (set->pool.policy->has_streams) {
        /* Any number of streams may be in error, if the device supports it:
         * then an error of one stream does not stop the whole initiator. */
        dv_attr.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
        dv_attr.dc_init_attr.dci_streams.log_num_concurent =
            set->params.log_streams;
        dv_attr.dc_init_attr.dci_streams.log_num_errored =
            set->params.log_errored;
    }

    dci->txq.qp = mlx5dv_create_qp(set->port->dev->ctx, &attr, &dv_attr);
    if (dci->txq.qp == NULL) {
        ucs_log(level,
                "%s: failed to create DCI %u of %u: %m; lower "
                "UCX_DCX_NUM_DCI or UCX_DCX_TX_QUEUE_LEN",
                set->port->name, set->num_created + 1, set->pool.num_dci);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


/* Allocates the state of each stream, and of each WQEBB if the initiator is
 * shared. */
static ucs_status_t uct_dcx_dci_alloc(uct_dcx_dci_t *dci, int is_shared,
                                      unsigned num_streams)
{
    unsigned i;

    dci->failures = ucs_malloc(num_streams * sizeof(*dci->failures),
                               "uct_dcx_failures");
    if (!is_shared) {
        return (dci->failures == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }

    dci->streams = ucs_malloc(num_streams * sizeof(*dci->streams),
                              "uct_dcx_streams");
    dci->eps     = ucs_calloc(dci->txq.sq.mask + 1, sizeof(*dci->eps),
                              "uct_dcx_eps");
    if ((dci->failures == NULL) || (dci->streams == NULL) ||
        (dci->eps == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < num_streams; ++i) {
        dci->streams[i] = UCT_DCX_WQE_STREAM(i);
    }
    return UCS_OK;
}


static void uct_dcx_dci_free(uct_dcx_dci_t *dci, int is_shared)
{
    ucs_free(dci->failures);
    if (is_shared) {
        ucs_free(dci->streams);
        ucs_free(dci->eps);
    }
}


ucs_status_t uct_dcx_dci_init(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                              uct_dcx_cq_t *cq, ucs_log_level_t level)
{
    int is_shared               = set->pool.policy->is_shared;
    uct_dcx_txq_params_t params = {
        .cq         = cq,
        .bf         = (set->td.td == NULL) ? NULL : &set->td.bf,
        .max_bb     = set->max_bb,
        .num_bb     = set->params.num_bb,
        .moderation = (is_shared || set->traced) ? 0 : set->params.moderation,
    };
    ucs_status_t status;

    dci->fence = set->params.fence;
    ucs_list_head_init(&dci->unsignaled);
    ucs_list_head_init(&dci->ready);
    ucs_arbiter_init(&dci->waitq);

    status = uct_dcx_dci_create_qp(set, dci, cq, level);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_connect(set, dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    params.qp = dci->txq.qp;
    status    = uct_dcx_txq_init(&dci->txq, &params);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    status = uct_dcx_dci_alloc(dci, is_shared, set->pool.num_streams);
    if (status != UCS_OK) {
        goto err_free;
    }

    dci->state = is_shared ? UCT_DCX_DCI_OPEN : UCT_DCX_DCI_IDLE;
    return UCS_OK;

err_free:
    uct_dcx_dci_free(dci, is_shared);
    uct_dcx_txq_cleanup(&dci->txq);
err_destroy_qp:
    ibv_destroy_qp(dci->txq.qp);
    dci->txq.qp = NULL;
    return status;
}


void uct_dcx_dci_cleanup(uct_dcx_dci_t *dci)
{
    if (ibv_destroy_qp(dci->txq.qp) != 0) {
        ucs_warn("%s: failed to destroy DCI 0x%x: %m",
                 ibv_get_device_name(dci->txq.qp->context->device),
                 dci->txq.sq.qpn);
    }

    uct_dcx_txq_cleanup(&dci->txq);
    ucs_arbiter_cleanup(&dci->waitq);
    uct_dcx_dci_free(dci, uct_dcx_dci_is_shared(dci));
}


void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    uct_dcx_slot_t *slot;
    uint16_t number;

    for (number = dci->txq.head; number != dci->txq.tail; ++number) {
        slot = uct_dcx_txq_slot(&dci->txq, number);
        if ((slot->done != NULL) &&
            (uct_dcx_dci_wqe_ep(dci, slot->index) == ep)) {
            slot->status = UCS_ERR_CANCELED;
        }
    }
}
