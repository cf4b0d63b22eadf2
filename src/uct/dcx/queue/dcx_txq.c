/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A send queue of any of our QPs; see dcx_txq.h.
 */
#include "dcx_txq.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* Returns the doorbell register. A shared one is that of the first QP. */
static uct_dcx_bf_t *uct_dcx_txq_bf(uct_dcx_txq_t *txq,
                                    const uct_dcx_txq_params_t *params,
                                    const struct mlx5dv_qp *dv_qp)
{
    if (params->bf == NULL) {
        uct_dcx_bf_init(&txq->own_bf, dv_qp->bf.reg, dv_qp->bf.size);
        uct_dcx_bf_set_mode(&txq->own_bf, 0, 0);
        return &txq->own_bf;
    }

    if (params->bf->half == 0) {
        uct_dcx_bf_init(params->bf, dv_qp->bf.reg, dv_qp->bf.size);
    }
    return params->bf;
}


static ucs_status_t uct_dcx_txq_take_over(uct_dcx_txq_t *txq,
                                          const uct_dcx_txq_params_t *params)
{
    const char *name       = ibv_get_device_name(params->qp->context->device);
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj obj  = {.qp = {.in = params->qp, .out = &dv_qp}};
    uct_dcx_sq_params_t sq;

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) != 0) {
        ucs_error("%s: mlx5dv_init_obj(qp) failed: %m", name);
        return UCS_ERR_IO_ERROR;
    }

    if (!ucs_is_pow2(dv_qp.sq.wqe_cnt) || (dv_qp.sq.wqe_cnt > params->num_bb) ||
        (dv_qp.sq.wqe_cnt <= params->max_bb + UCT_DCX_SQ_SPARE) ||
        (dv_qp.sq.stride != MLX5_SEND_WQE_BB)) {
        ucs_error("%s: dcx does not support a send queue of %u WQEBBs of %u "
                  "bytes (%u were requested); change UCX_DCX_TX_QUEUE_LEN",
                  name, dv_qp.sq.wqe_cnt, dv_qp.sq.stride, params->num_bb);
        return UCS_ERR_INVALID_PARAM;
    }

    sq.start    = dv_qp.sq.buf;
    sq.dbrec    = &dv_qp.dbrec[MLX5_SND_DBR];
    sq.bf       = uct_dcx_txq_bf(txq, params, &dv_qp);
    sq.qpn      = params->qp->qp_num;
    sq.num_bb   = dv_qp.sq.wqe_cnt;
    sq.capacity = dv_qp.sq.wqe_cnt - params->max_bb - UCT_DCX_SQ_SPARE;
    sq.window   = params->moderation;
    uct_dcx_sq_init(&txq->sq, &sq);
    return UCS_OK;
}


ucs_status_t uct_dcx_txq_init(uct_dcx_txq_t *txq,
                              const uct_dcx_txq_params_t *params)
{
    ucs_status_t status;
    unsigned i;

    status = uct_dcx_txq_take_over(txq, params);
    if (status != UCS_OK) {
        return status;
    }

    txq->slots = ucs_calloc(txq->sq.mask + 1, sizeof(*txq->slots),
                            "uct_dcx_txq_slots");
    if (txq->slots == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (i = 0; i <= txq->sq.mask; ++i) {
        txq->slots[i].result = i;
    }

    ucs_list_head_init(&txq->ops);
    txq->head = 0;
    txq->tail = 0;
    txq->turn = 0;
    txq->cq   = params->cq;
    txq->qp   = params->qp;
    return UCS_OK;
}


int uct_dcx_txq_end_ops(uct_dcx_txq_t *txq, uint16_t until)
{
    unsigned turn = txq->turn;
    uct_dcx_op_t *op;

    while (!ucs_list_is_empty(&txq->ops)) {
        op = ucs_list_head(&txq->ops, uct_dcx_op_t, wqe);
        if (!UCS_CIRCULAR_COMPARE16(op->index, <, until)) {
            break;
        }

        uct_dcx_op_wqe_done(op, UCS_OK);
        if (txq->turn != turn) {
            return 0;
        }
    }
    return 1;
}


void uct_dcx_txq_cancel(uct_dcx_txq_t *txq)
{
    uct_dcx_slot_t *slot;

    while (txq->head != txq->tail) {
        slot = uct_dcx_txq_slot(txq, txq->head++);
        if (slot->done != NULL) {
            uct_dcx_slot_end(txq, slot, UCS_ERR_CANCELED);
        }
    }

    while (!ucs_list_is_empty(&txq->ops)) {
        uct_dcx_op_wqe_done(ucs_list_head(&txq->ops, uct_dcx_op_t, wqe),
                            UCS_ERR_CANCELED);
    }
}


void uct_dcx_txq_cleanup(uct_dcx_txq_t *txq)
{
    uct_dcx_txq_cancel(txq);
    ucs_free(txq->slots);
}
