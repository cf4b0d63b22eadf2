/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One DC initiator: creation, connection, and the end of its operations. See
 * dcx_dci.h for who owns it. States of a DCI: RESET, INIT, RTR, RTS as any
 * reliable QP, but with no peer: the peer is in each WQE.
 */
#include "dcx_dci_drain.h"

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
    const uct_dcx_dci_params_t *params = &iface->dci.params;
    struct ibv_qp_attr init            = {
        .qp_state   = IBV_QPS_INIT,
        .pkey_index = iface->port.pkey_index,
        .port_num   = iface->port.num
    };
    struct ibv_qp_attr rtr             = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = iface->port.mtu
    };
    struct ibv_qp_attr rts             = {
        .qp_state      = IBV_QPS_RTS,
        .timeout       = params->timeout,
        .retry_cnt     = params->retry_count,
        .rnr_retry     = params->rnr_retry_count,
        .max_rd_atomic = params->max_rd_atomic
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


/* Each stream may be in error, if the device lets it: then no error of one is
 * that of the whole initiator. */
static void uct_dcx_dci_fill_streams(const uct_dcx_dci_set_t *set,
                                     struct mlx5dv_qp_init_attr *attr)
{
    attr->comp_mask   |= MLX5DV_QP_INIT_ATTR_MASK_DCI_STREAMS;
    attr->dc_init_attr.dci_streams.log_num_concurent = set->params.log_streams;
    attr->dc_init_attr.dci_streams.log_num_errored   = set->params.log_errored;
}


static ucs_status_t
uct_dcx_dci_create_qp(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      ucs_log_level_t level)
{
    const uct_dcx_dci_set_t *set       = &iface->dci;
    struct ibv_qp_init_attr_ex attr    = {
        .qp_type    = IBV_QPT_DRIVER,
        .qp_context = (void*)(uintptr_t)dci->index, /* for its events */
        .comp_mask  = IBV_QP_INIT_ATTR_PD,
        .pd         = iface->port.dev->pd,
        .send_cq    = dci->cq->cq,
        .recv_cq    = dci->cq->cq,
        .cap        = {
            .max_send_sge = 1,
            .max_send_wr  = set->params.max_send_wr
        }
    };
    /* results of gets and atomics go to memory, never into the completion */
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC |
                        MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
        .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}
    };

    if (set->pool.policy->has_streams &&
        uct_dcx_pool_is_shared(&set->pool, dci->index)) {
        uct_dcx_dci_fill_streams(set, &dv_attr);
    }

    dci->qp = mlx5dv_create_qp(iface->port.dev->ctx, &attr, &dv_attr);
    if (dci->qp == NULL) {
        ucs_log(level, "%s: failed to create DCI %u of %u: %m; lower "
                "UCX_DCX_NUM_DCI or UCX_DCX_TX_QUEUE_LEN",
                uct_dcx_iface_name(iface), set->num_created + 1,
                uct_dcx_pool_num_dci(&set->pool));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static ucs_status_t
uct_dcx_dci_init_sq(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq       = &dci->sq;
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj obj  = {.qp = {.in = dci->qp, .out = &dv_qp}};

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) != 0) {
        ucs_error("%s: mlx5dv_init_obj(qp) failed: %m",
                  uct_dcx_iface_name(iface));
        return UCS_ERR_IO_ERROR;
    }

    /* the completion queue is made for so many, see uct_dcx_dci_group_init() */
    if (!ucs_is_pow2(dv_qp.sq.wqe_cnt) ||
        (dv_qp.sq.wqe_cnt > iface->dci.params.num_bb) ||
        (dv_qp.sq.wqe_cnt <= iface->limits.max_bb + UCT_DCX_SQ_SPARE) ||
        (dv_qp.sq.stride != MLX5_SEND_WQE_BB)) {
        ucs_error("%s: a send queue of %u blocks of %u bytes is of no use, "
                  "%u were asked for; change UCX_DCX_TX_QUEUE_LEN",
                  uct_dcx_iface_name(iface), dv_qp.sq.wqe_cnt,
                  dv_qp.sq.stride, iface->dci.params.num_bb);
        return UCS_ERR_INVALID_PARAM;
    }

    sq->start   = dv_qp.sq.buf;
    sq->dbrec   = &dv_qp.dbrec[MLX5_SND_DBR];
    sq->bf      = (uintptr_t)dv_qp.bf.reg;
    sq->bf_flip = dv_qp.bf.size;
    sq->qpn     = dci->qp->qp_num;
    sq->mask    = dv_qp.sq.wqe_cnt - 1;
    sq->ring    = dv_qp.sq.wqe_cnt - iface->limits.max_bb - UCT_DCX_SQ_SPARE;
    sq->room    = sq->ring;
    sq->limit   = sq->ring;
    sq->sender  = uct_dcx_wqe_sender(sq->qpn);
    uct_dcx_sq_moderate(sq, uct_dcx_pool_is_shared(&iface->dci.pool,
                                                   dci->index) ?
                            0 : iface->dci.params.moderation);
    uct_dcx_sq_reset(sq);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_dci_init_ops(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    unsigned num_streams = iface->dci.pool.num_streams;
    unsigned num_bb      = dci->sq.mask + 1;
    unsigned i;

    dci->ops = ucs_calloc(num_bb, sizeof(*dci->ops), "uct_dcx_ops");
    if (dci->ops == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < num_bb; ++i) {
        dci->ops[i].place = i;
    }

    if (!uct_dcx_pool_is_shared(&iface->dci.pool, dci->index)) {
        return UCS_OK;
    }

    dci->eps     = ucs_calloc(num_bb, sizeof(*dci->eps), "uct_dcx_eps");
    dci->streams = ucs_malloc(num_streams * sizeof(*dci->streams),
                              "uct_dcx_streams");
    if ((dci->eps == NULL) || (dci->streams == NULL)) {
        ucs_free(dci->streams);
        ucs_free(dci->eps);
        ucs_free(dci->ops);
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i < num_streams; ++i) {
        dci->streams[i] = UCT_DCX_WQE_STREAM(i);
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_dci_init(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                              ucs_log_level_t level)
{
    ucs_status_t status;

    ucs_list_head_init(&dci->flushes);
    ucs_list_head_init(&dci->tail);
    ucs_arbiter_init(&dci->waiters);

    status = uct_dcx_dci_create_qp(iface, dci, level);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_init_sq(iface, dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    status = uct_dcx_dci_connect(iface, dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    status = uct_dcx_dci_init_ops(iface, dci);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    return UCS_OK;

err_destroy_qp:
    ibv_destroy_qp(dci->qp);
    dci->qp = NULL;
    return status;
}


void uct_dcx_dci_cleanup(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_op_t *op;

    if (ibv_destroy_qp(dci->qp) != 0) {
        ucs_warn("%s: failed to destroy DCI 0x%x: %m",
                 uct_dcx_iface_name(iface), dci->sq.qpn);
    }

    /* the device is off the buffers: those still outstanding can be freed */
    while (dci->op_head != dci->op_tail) {
        op = uct_dcx_dci_op(dci, dci->op_head++);
        if (op->done != NULL) {
            op->done(dci, op, UCS_ERR_CANCELED);
        }
    }
    uct_dcx_flush_end(&dci->flushes, NULL, UCS_ERR_CANCELED);

    ucs_arbiter_cleanup(&dci->waiters);
    uct_dcx_drain_free(dci->drain);
    ucs_free(dci->streams);
    ucs_free(dci->eps);
    ucs_free(dci->ops);
}


void uct_dcx_flush_end_one(uct_dcx_flush_t *flush, ucs_status_t status)
{
    uct_completion_t *comp = flush->comp;

    ucs_list_del(&flush->list);
    ucs_mpool_put(flush);
    uct_invoke_completion(comp, status);
}


static uct_dcx_flush_t *
uct_dcx_flush_find(const ucs_list_link_t *flushes, const uct_dcx_ep_t *ep)
{
    uct_dcx_flush_t *flush;

    ucs_list_for_each(flush, flushes, list) {
        if ((ep == NULL) || (flush->ep == ep)) {
            return flush;
        }
    }
    return NULL;
}


void uct_dcx_flush_end(ucs_list_link_t *flushes, const uct_dcx_ep_t *ep,
                       ucs_status_t status)
{
    uct_dcx_flush_t *flush;

    /* each time from the beginning: a callback may end others */
    while ((flush = uct_dcx_flush_find(flushes, ep)) != NULL) {
        uct_dcx_flush_end_one(flush, status);
    }
}


void uct_dcx_dci_end_flushes(uct_dcx_dci_t *dci, uint16_t until,
                             ucs_status_t status)
{
    uct_dcx_flush_t *flush;

    while (!ucs_list_is_empty(&dci->flushes)) {
        flush = ucs_list_head(&dci->flushes, uct_dcx_flush_t, list);
        if (!UCS_CIRCULAR_COMPARE16(flush->index, <, until)) {
            break;
        }
        uct_dcx_flush_end_one(flush, status);
    }
}


ucs_status_t uct_dcx_flush_add(ucs_list_link_t *flushes, uct_dcx_ep_t *ep,
                               uint16_t index, uct_completion_t *comp)
{
    ucs_list_link_t *pos = flushes->prev;
    uct_dcx_flush_t *flush;

    flush = ucs_mpool_get(&uct_dcx_ep_iface(ep)->dci.flush_mp);
    if (flush == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    flush->ep     = ep;
    flush->comp   = comp;
    flush->index  = index;
    flush->status = UCS_ERR_CANCELED;

    /* mostly it is the last one: who flushes has posted just before */
    while ((pos != flushes) &&
           UCS_CIRCULAR_COMPARE16(
                   ucs_container_of(pos, uct_dcx_flush_t, list)->index, >,
                   index)) {
        pos = pos->prev;
    }
    ucs_list_insert_after(pos, &flush->list);
    return UCS_OK;
}


void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    uct_dcx_op_t *op;
    uint16_t place;

    dci->sq.odd = 1;
    for (place = dci->op_head; place != dci->op_tail; ++place) {
        op = uct_dcx_dci_op(dci, place);
        if ((op->done != NULL) && (uct_dcx_dci_wqe_ep(dci, op->index) == ep)) {
            op->canceled = 1;
        }
    }
}
