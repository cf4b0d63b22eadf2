/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One DC initiator: creation, connection, and the end of its operations. See
 * dcx_dci.h for who owns it. States of a DCI: RESET, INIT, RTR, RTS as any
 * reliable QP, but with no peer: the peer is in each WQE.
 */
#include "dcx_iface.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask)
{
    return ibv_modify_qp(dci->qp, attr, mask | IBV_QP_STATE);
}


ucs_status_t
uct_dcx_dci_connect(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    const uct_dcx_dci_set_t *set = &iface->dci;
    struct ibv_qp_attr init      = {
        .qp_state   = IBV_QPS_INIT,
        .pkey_index = iface->port.pkey_index,
        .port_num   = iface->port.num
    };
    struct ibv_qp_attr rtr       = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = iface->port.mtu
    };
    struct ibv_qp_attr rts       = {
        .qp_state      = IBV_QPS_RTS,
        .timeout       = set->timeout,
        .retry_cnt     = set->retry_count,
        .rnr_retry     = set->rnr_retry_count,
        .max_rd_atomic = set->max_rd_atomic
    };

    uct_dcx_port_fill_ah(&iface->port, &rtr.ah_attr);
    if (uct_dcx_dci_modify(dci, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT) ||
        uct_dcx_dci_modify(dci, &rtr, IBV_QP_PATH_MTU | IBV_QP_AV) ||
        uct_dcx_dci_modify(dci, &rts, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC)) {
        ucs_error("%s: DCI 0x%x cannot be brought to RTS: %m",
                  uct_dcx_iface_name(iface), dci->qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static ucs_status_t
uct_dcx_dci_create_qp(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const uct_dcx_iface_config_t *config)
{
    const unsigned bb_per_wr           = 4; /* libmlx5's for a DCI, 1 sge */
    struct ibv_qp_init_attr_ex attr    = {
        .qp_type   = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd        = iface->port.dev->pd,
        .send_cq   = iface->tx_cq.cq,
        .recv_cq   = iface->tx_cq.cq,
        .cap       = {.max_send_sge = 1}
    };
    /* results of gets and atomics go to memory, never into the completion */
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC |
                        MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}
    };

    attr.cap.max_send_wr = ucs_div_round_up(config->tx.queue_len *
                                            iface->limits.max_bb, bb_per_wr);
    dci->qp              = mlx5dv_create_qp(iface->port.dev->ctx, &attr,
                                            &dv_attr);
    if (dci->qp == NULL) {
        ucs_error("%s: failed to create DCI %u of %u: %m; lower "
                  "UCX_DCX_NUM_DCI or UCX_DCX_TX_QUEUE_LEN",
                  uct_dcx_iface_name(iface), dci->index + 1,
                  config->tx.num_dci);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static ucs_status_t
uct_dcx_dci_init_sq(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                    unsigned num_dci)
{
    uct_dcx_sq_t *sq       = &dci->sq;
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj obj  = {.qp = {.in = dci->qp, .out = &dv_qp}};

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) != 0) {
        ucs_error("%s: mlx5dv_init_obj(qp) failed: %m",
                  uct_dcx_iface_name(iface));
        return UCS_ERR_IO_ERROR;
    }

    if (!ucs_is_pow2(dv_qp.sq.wqe_cnt) || (dv_qp.sq.wqe_cnt > 32768) ||
        (dv_qp.sq.wqe_cnt <= iface->limits.max_bb + 1) ||
        (dv_qp.sq.stride != MLX5_SEND_WQE_BB)) {
        ucs_error("%s: a send queue of %u blocks of %u bytes is of no use; "
                  "change UCX_DCX_TX_QUEUE_LEN", uct_dcx_iface_name(iface),
                  dv_qp.sq.wqe_cnt, dv_qp.sq.stride);
        return UCS_ERR_INVALID_PARAM;
    }

    /* a completion for each block must fit, see uct_dcx_iface_init_tx_cq() */
    if ((uint64_t)num_dci * dv_qp.sq.wqe_cnt > iface->tx_cq.count) {
        ucs_error("%s: %u send queues of %u blocks, but %u completions: "
                  "change UCX_DCX_TX_QUEUE_LEN", uct_dcx_iface_name(iface),
                  num_dci, dv_qp.sq.wqe_cnt, iface->tx_cq.count);
        return UCS_ERR_INVALID_PARAM;
    }

    sq->start   = dv_qp.sq.buf;
    sq->dbrec   = &dv_qp.dbrec[MLX5_SND_DBR];
    sq->bf      = (uintptr_t)dv_qp.bf.reg;
    sq->bf_flip = dv_qp.bf.size;
    sq->qpn     = dci->qp->qp_num;
    sq->mask    = dv_qp.sq.wqe_cnt - 1;
    sq->room    = dv_qp.sq.wqe_cnt - iface->limits.max_bb - 1;
    sq->limit   = sq->room;
    uct_dcx_sq_reset(sq);
    return UCS_OK;
}


ucs_status_t
uct_dcx_dci_init(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                 const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    dci->index = dci - iface->dci.dci;
    ucs_queue_head_init(&dci->flushes);

    status = uct_dcx_dci_create_qp(iface, dci, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_init_sq(iface, dci, config->tx.num_dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    status = uct_dcx_dci_connect(iface, dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    dci->ops = ucs_calloc(dci->sq.mask + 1, sizeof(*dci->ops), "uct_dcx_ops");
    if (dci->ops == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_destroy_qp;
    }

    return UCS_OK;

err_destroy_qp:
    ibv_destroy_qp(dci->qp);
    return status;
}


void uct_dcx_dci_cleanup(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    if (ibv_destroy_qp(dci->qp) != 0) {
        ucs_warn("%s: failed to destroy DCI 0x%x: %m",
                 uct_dcx_iface_name(iface), dci->sq.qpn);
    }

    /* the device is off the buffers: those still outstanding can be freed */
    uct_dcx_dci_retire(iface, dci, dci->sq.pi, UCS_ERR_CANCELED);
    ucs_free(dci->ops);
}


static void
uct_dcx_dci_end_flushes(uct_dcx_dci_t *dci, ucs_status_t status)
{
    uct_completion_t *comp;
    uct_dcx_flush_t *flush;

    while (!ucs_queue_is_empty(&dci->flushes)) {
        flush = ucs_queue_head_elem_non_empty(&dci->flushes, uct_dcx_flush_t,
                                              queue);
        if (UCS_CIRCULAR_COMPARE16(flush->pi, >, dci->sq.ci)) {
            break;
        }

        comp = flush->comp;
        ucs_queue_pull_non_empty(&dci->flushes);
        ucs_mpool_put(flush);
        uct_invoke_completion(comp, status);
    }
}


int uct_dcx_dci_retire(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       uint16_t until, ucs_status_t status)
{
    uct_dcx_sq_t *sq = &dci->sq;
    unsigned turn    = dci->turn;
    uct_dcx_op_done_t done;
    uct_dcx_op_t *op;

    while (sq->ci != until) {
        op   = &dci->ops[sq->ci & sq->mask];
        done = op->done;
        if (done != NULL) {
            /* what the user does in his callback finds it ended, and its
             * place in the ring still taken */
            op->done = NULL;
            done(dci, op, ucs_unlikely(op->canceled) ? UCS_ERR_CANCELED :
                                                       status);
            if (ucs_unlikely(dci->turn != turn)) {
                return 0;
            }
        }

        sq->ci += op->num_bb;
        if (ucs_unlikely(!ucs_queue_is_empty(&dci->flushes))) {
            uct_dcx_dci_end_flushes(dci, status);
            if (dci->turn != turn) {
                return 0;
            }
        }
    }
    return 1;
}


ucs_status_t uct_dcx_dci_add_flush(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                                   uct_completion_t *comp)
{
    uct_dcx_flush_t *flush;

    flush = ucs_mpool_get(&iface->dci.flush_mp);
    if (flush == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    flush->comp = comp;
    flush->pi   = dci->sq.pi;
    ucs_queue_push(&dci->flushes, &flush->queue);
    return UCS_OK;
}
