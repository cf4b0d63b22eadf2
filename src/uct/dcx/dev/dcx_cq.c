/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues off the fast path: creating, arming, and the meaning of
 * errors. See dcx_cq.h for polling.
 */
#include "dcx_cq.h"

#include <string.h>
#include <ucs/debug/log.h>


static ucs_status_t uct_dcx_cq_take_over(uct_dcx_cq_t *cq)
{
    struct mlx5dv_cq dv_cq = {};
    struct mlx5dv_obj obj  = {.cq = {.in = cq->cq, .out = &dv_cq}};
    uint32_t i;

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    cq->ci    = 0;
    cq->owner = 0;
    cq->size  = dv_cq.cqe_size;
    cq->count = dv_cq.cqe_cnt;
    cq->cqe64 = (uint8_t *)dv_cq.buf + dv_cq.cqe_size -
                sizeof(struct mlx5_cqe64);
    cq->end     = cq->cqe64 + (size_t)cq->count * cq->size;
    cq->next    = cq->cqe64;
    cq->dbrec   = dv_cq.dbrec;
    cq->uar     = dv_cq.cq_uar;
    cq->cqn     = dv_cq.cqn;
    cq->arm_sn  = 0;
    cq->unacked = 0;

    /* An entry never written has owner 0, which in the first round means
     * "written". With owner 1, polling does not need to check the opcode. */
    for (i = 0; i < cq->count; ++i) {
        uct_dcx_cq_entry(cq, i)->op_own |= MLX5_CQE_OWNER_MASK;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_cq_init(uct_dcx_cq_t *cq,
                             const uct_dcx_cq_params_t *params)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe        = params->length,
        .cq_context = cq,
        .channel    = params->channel,
    };
    struct mlx5dv_cq_init_attr dv_attr = {
        .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
        .cqe_size  = params->cqe_size,
    };
    struct ibv_cq_ex *cq_ex;

    cq->what       = params->what;
    cq->cqn        = 0;
    cq->has_failed = 0;
    cq_ex          = mlx5dv_create_cq(params->ctx, &attr, &dv_attr);
    if (cq_ex == NULL) {
        ucs_log(params->log_level,
                "%s: failed to create a completion queue of %u entries: %m",
                ibv_get_device_name(params->ctx->device), params->length);
        return UCS_ERR_IO_ERROR;
    }

    cq->cq = ibv_cq_ex_to_cq(cq_ex);
    if (uct_dcx_cq_take_over(cq) != UCS_OK) {
        ucs_error("%s: mlx5dv_init_obj(cq) failed: %m",
                  ibv_get_device_name(params->ctx->device));
        ibv_destroy_cq(cq->cq);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


void uct_dcx_cq_cleanup(uct_dcx_cq_t *cq)
{
    ibv_ack_cq_events(cq->cq, cq->unacked);
    if (ibv_destroy_cq(cq->cq) != 0) {
        ucs_warn("cq 0x%x: failed to destroy: %m", cq->cqn);
    }
}


void uct_dcx_cq_arm(uct_dcx_cq_t *cq, int solicited)
{
    uint32_t cmd = ((cq->arm_sn & 3) << 28) |
                   (solicited ? MLX5_CQ_DB_REQ_NOT_SOL : MLX5_CQ_DB_REQ_NOT) |
                   (cq->ci & 0xffffff);
    uint64_t doorbell = htobe64(((uint64_t)cmd << 32) | cq->cqn);

    cq->dbrec[1] = htobe32(cmd);

    /* the device reads the record when the register is written */
    uct_dcx_wc_start();
    *(volatile uint64_t *)((char *)cq->uar + MLX5_CQ_DOORBELL) = doorbell;
    uct_dcx_wc_flush();
}


void uct_dcx_cq_event(uct_dcx_cq_t *cq)
{
    cq->arm_sn++;
    cq->unacked++;
}


/* Moves entry @from to entry @to; the owner bit stays with the place. */
static void uct_dcx_cq_move(uct_dcx_cq_t *cq, uint32_t from, uint32_t to)
{
    struct mlx5_cqe64 *cqe = uct_dcx_cq_entry(cq, to);
    uint8_t owner          = cqe->op_own & MLX5_CQE_OWNER_MASK;

    memcpy(cqe, uct_dcx_cq_entry(cq, from), sizeof(*cqe));
    cqe->op_own = (cqe->op_own & ~MLX5_CQE_OWNER_MASK) | owner;
}


void uct_dcx_cq_remove(uct_dcx_cq_t *cq, uint32_t qpn)
{
    uint32_t end = cq->ci;
    uint32_t begin, index;

    while (((end - cq->ci) < cq->count) &&
           (uct_dcx_cq_check_owner(uct_dcx_cq_entry(cq, end),
                                   !!(end & cq->count)) != NULL)) {
        ++end;
    }

    /* The others stay in order, right before the next ones. */
    begin = end;
    for (index = end; index != cq->ci; --index) {
        if (uct_dcx_cqe_qpn(uct_dcx_cq_entry(cq, index - 1)) == qpn) {
            continue;
        }

        --begin;
        if (begin != index - 1) {
            uct_dcx_cq_move(cq, index - 1, begin);
        }
    }

    cq->ci    = begin;
    cq->next  = (uint8_t *)uct_dcx_cq_entry(cq, begin);
    cq->owner = (begin & cq->count) ? MLX5_CQE_OWNER_MASK : 0;
    uct_dcx_cq_update(cq);
}


static const uct_dcx_syndrome_t uct_dcx_syndromes[256] = {
    [MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR] = {UCS_ERR_IO_ERROR,
                                            "local length error",
                                            "a length is not valid"},
    [MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR] =
        {UCS_ERR_IO_ERROR, "local QP operation error",
         "this process posted a WQE that the device does not support"},
    [MLX5_CQE_SYNDROME_LOCAL_PROT_ERR] =
        {UCS_ERR_IO_ERROR, "local protection error",
         "memory of this process is not registered, or no longer registered"},
    [MLX5_CQE_SYNDROME_WR_FLUSH_ERR] = {UCS_ERR_CANCELED,
                                        "flushed, the QP is in error state",
                                        "it was canceled"},
    [MLX5_CQE_SYNDROME_MW_BIND_ERR] =
        {UCS_ERR_IO_ERROR, "memory window bind error",
         "the device rejected the layout of an mkey"},
    [MLX5_CQE_SYNDROME_BAD_RESP_ERR] = {UCS_ERR_IO_ERROR, "bad response",
                                        "the peer sent an invalid response"},
    [MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR] =
        {UCS_ERR_IO_ERROR, "local access error",
         "memory of this process is registered as read-only"},
    [MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR] =
        {UCS_ERR_IO_ERROR, "remote invalid request",
         "the peer rejected the request; set the same UCX_DCX_SEG_SIZE in all "
         "processes"},
    [MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR] =
        {UCS_ERR_CONNECTION_RESET, "remote access error",
         "the peer does not allow the access: wrong rkey or address, or its "
         "memory is no longer registered"},
    [MLX5_CQE_SYNDROME_REMOTE_OP_ERR] =
        {UCS_ERR_CONNECTION_RESET, "remote operation error",
         "the peer's device could not execute it; its memory may have been "
         "unmapped"},
    [MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] =
        {UCS_ERR_ENDPOINT_TIMEOUT, "transport retry count exceeded",
         "the peer does not answer; check that it is alive and its port is up"},
    [MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR] =
        {UCS_ERR_ENDPOINT_TIMEOUT, "receiver not ready for too long",
         "the peer has no receive buffer: it makes no progress, or needs a "
         "larger UCX_DCX_RX_QUEUE_LEN"},
    [MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR] = {UCS_ERR_ENDPOINT_TIMEOUT,
                                              "remote side aborted",
                                              "the peer aborted it"},
};


const uct_dcx_syndrome_t *uct_dcx_cqe_syndrome(const struct mlx5_cqe64 *cqe)
{
    static const uct_dcx_syndrome_t unknown = {
        UCS_ERR_IO_ERROR,
        "unknown error",
        "the syndrome is not known to dcx",
    };
    const uct_dcx_syndrome_t *syndrome =
        &uct_dcx_syndromes[((const struct mlx5_err_cqe *)cqe)->syndrome];

    return (syndrome->reason != NULL) ? syndrome : &unknown;
}
