/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DC initiators away from the fast path: creation, connection, the end of
 * operations, and what happens when one fails. See dcx_dci.h for who owns
 * them. States of a DCI: RESET, INIT, RTR, RTS as any reliable QP, but with no
 * peer: the peer is in each WQE.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>


/* What a completion with error told. */
typedef struct uct_dcx_failure {
    ucs_status_t status;
    const char   *reason;
    unsigned     syndrome;
    unsigned     vendor_syndrome;
    uint16_t     index;    /* block of the WQE */
    uint32_t     qpn;
    uint32_t     dctn;     /* of the peer, 0 if not known */
} uct_dcx_failure_t;


static ucs_mpool_ops_t uct_dcx_flush_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};


static int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr,
                              int mask)
{
    return ibv_modify_qp(dci->qp, attr, mask | IBV_QP_STATE);
}


/* From RESET to RTS. */
static ucs_status_t
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


static void uct_dcx_sq_reset(uct_dcx_sq_t *sq)
{
    sq->pi    = 0;
    sq->ci    = 0;
    sq->fence = 0;
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
    sq->limit   = dv_qp.sq.wqe_cnt - iface->limits.max_bb - 1;
    uct_dcx_sq_reset(sq);
    return UCS_OK;
}


static ucs_status_t
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


static void uct_dcx_dci_cleanup(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    if (ibv_destroy_qp(dci->qp) != 0) {
        ucs_warn("%s: failed to destroy DCI 0x%x: %m",
                 uct_dcx_iface_name(iface), dci->sq.qpn);
    }

    /* the device is off the buffers: those still outstanding can be freed */
    uct_dcx_dci_cancel(dci);
    uct_dcx_dci_retire(iface, dci, dci->sq.pi, UCS_ERR_CANCELED);
    ucs_free(dci->ops);
}


/* The memory that results of atomics land in: 8 bytes for each block of each
 * send queue, so that an atomic never waits for it. */
static ucs_status_t uct_dcx_dci_set_init_results(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned per_dci       = set->dci[0].sq.mask + 1;
    size_t size            = set->num_dci * per_dci * sizeof(*set->results);
    void *results;
    unsigned i;

    size = ucs_align_up(size, ucs_get_page_size());
    if (ucs_posix_memalign(&results, ucs_get_page_size(), size,
                           "uct_dcx_results") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    set->results_mr = ibv_reg_mr(iface->port.dev->pd, results, size,
                                 IBV_ACCESS_LOCAL_WRITE);
    if (set->results_mr == NULL) {
        ucs_error("%s: failed to register %zu bytes: %m; see 'ulimit -l'",
                  uct_dcx_iface_name(iface), size);
        ucs_free(results);
        return UCS_ERR_IO_ERROR;
    }

    set->results      = results;
    set->results_lkey = set->results_mr->lkey;
    for (i = 0; i < set->num_dci; ++i) {
        set->dci[i].results = set->results + (i * per_dci);
    }
    return UCS_OK;
}


static void uct_dcx_dci_set_cleanup_results(uct_dcx_dci_set_t *set)
{
    if (ibv_dereg_mr(set->results_mr) != 0) {
        ucs_warn("mr 0x%x: failed to deregister: %m", set->results_lkey);
    }
    ucs_free(set->results);
}


/* Fills the table if no two QP numbers share their low bits. */
static int uct_dcx_dci_set_try_qpn_mask(uct_dcx_dci_set_t *set)
{
    uint16_t *slot;
    unsigned i;

    memset(set->by_qpn, 0xff, (set->qpn_mask + 1) * sizeof(*set->by_qpn));
    for (i = 0; i < set->num_dci; ++i) {
        slot = &set->by_qpn[set->dci[i].sq.qpn & set->qpn_mask];
        if (*slot != UCT_DCX_NO_DCI) {
            return 0;
        }
        *slot = i;
    }
    return 1;
}


static ucs_status_t uct_dcx_dci_set_init_qpns(uct_dcx_dci_set_t *set)
{
    uint32_t size;

    /* numbers differ within their 24 bits, so the search comes to an end */
    for (size = ucs_roundup_pow2(set->num_dci); size <= UCS_BIT(24);
         size *= 2) {
        set->qpn_mask = size - 1;
        set->by_qpn   = ucs_malloc(size * sizeof(*set->by_qpn),
                                   "uct_dcx_by_qpn");
        if (set->by_qpn == NULL) {
            return UCS_ERR_NO_MEMORY;
        }

        if (uct_dcx_dci_set_try_qpn_mask(set)) {
            return UCS_OK;
        }
        ucs_free(set->by_qpn);
    }

    ucs_error("two DC initiators have the same QP number");
    return UCS_ERR_IO_ERROR;
}


static ucs_status_t
uct_dcx_dci_set_create_all(uct_dcx_iface_t *iface,
                           const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    ucs_status_t status;

    set->dci = ucs_calloc(config->tx.num_dci, sizeof(*set->dci),
                          "uct_dcx_dci");
    if (set->dci == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    for (set->num_dci = 0; set->num_dci < config->tx.num_dci;
         ++set->num_dci) {
        status = uct_dcx_dci_init(iface, &set->dci[set->num_dci], config);
        if (status != UCS_OK) {
            goto err;
        }
    }
    return UCS_OK;

err:
    while (set->num_dci > 0) {
        uct_dcx_dci_cleanup(iface, &set->dci[--set->num_dci]);
    }
    ucs_free(set->dci);
    return status;
}


static void uct_dcx_dci_set_destroy_all(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned i;

    for (i = 0; i < set->num_dci; ++i) {
        uct_dcx_dci_cleanup(iface, &set->dci[i]);
    }
    ucs_free(set->dci);
}


static void
uct_dcx_dci_set_init_retries(uct_dcx_dci_set_t *set,
                             const uct_dcx_device_t *dev,
                             const uct_dcx_iface_config_t *config)
{
    unsigned max_rd_atomic = ucs_max(dev->attr.max_qp_init_rd_atom, 1);

    set->timeout         = uct_dcx_config_timeout_code(config->tx.timeout);
    set->retry_count     = config->tx.retry_count;
    set->rnr_retry_count = config->tx.rnr_retry_count;
    set->max_rd_atomic   = ucs_min(config->tx.max_rd_atomic, max_rd_atomic);
}


ucs_status_t uct_dcx_dci_set_init(uct_dcx_iface_t *iface,
                                  const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    ucs_status_t status;

    set->failing = NULL;
    uct_dcx_dci_set_init_retries(set, iface->port.dev, config);
    ucs_arbiter_init(&set->wait_dci);
    ucs_arbiter_init(&set->wait_room);

    status = ucs_mpool_init(&set->flush_mp, 0, sizeof(uct_dcx_flush_t), 0,
                            UCS_SYS_CACHE_LINE_SIZE, 64, UINT_MAX,
                            &uct_dcx_flush_mpool_ops, "uct_dcx_flushes");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_create_all(iface, config);
    if (status != UCS_OK) {
        goto err_cleanup_mpool;
    }

    status = uct_dcx_dci_set_init_results(iface);
    if (status != UCS_OK) {
        goto err_destroy_all;
    }

    status = uct_dcx_dci_set_init_qpns(set);
    if (status != UCS_OK) {
        goto err_cleanup_results;
    }

    if (uct_dcx_pool_init(&set->pool, config->tx.policy, set->num_dci) != 0) {
        status = UCS_ERR_NO_MEMORY;
        goto err_free_qpns;
    }

    return UCS_OK;

err_free_qpns:
    ucs_free(set->by_qpn);
err_cleanup_results:
    uct_dcx_dci_set_cleanup_results(set);
err_destroy_all:
    uct_dcx_dci_set_destroy_all(iface);
err_cleanup_mpool:
    ucs_mpool_cleanup(&set->flush_mp, 1);
    return status;
}


void uct_dcx_dci_set_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;

    uct_dcx_dci_set_destroy_all(iface);
    uct_dcx_dci_set_cleanup_results(set);
    uct_dcx_pool_cleanup(&set->pool);
    ucs_free(set->by_qpn);
    ucs_mpool_cleanup(&set->flush_mp, 1);
    ucs_arbiter_cleanup(&set->wait_room);
    ucs_arbiter_cleanup(&set->wait_dci);
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


void uct_dcx_dci_retire(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                        uint16_t until, ucs_status_t status)
{
    uct_dcx_sq_t *sq = &dci->sq;
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
        }

        sq->ci += op->num_bb;
        if (ucs_unlikely(!ucs_queue_is_empty(&dci->flushes))) {
            uct_dcx_dci_end_flushes(dci, status);
        }
    }
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


void uct_dcx_dci_cancel(uct_dcx_dci_t *dci)
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
    dci->in_error = 0;
    if (uct_dcx_dci_connect(iface, dci) != UCS_OK) {
        ucs_fatal("%s: DCI 0x%x is lost", uct_dcx_iface_name(iface),
                  dci->sq.qpn);
    }
}


static void
uct_dcx_dci_parse_failure(const uct_dcx_dci_t *dci,
                          const struct mlx5_cqe64 *cqe,
                          uct_dcx_failure_t *failure)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;

    failure->status          = uct_dcx_cqe_status(cqe, &failure->reason);
    failure->syndrome        = err->syndrome;
    failure->vendor_syndrome = err->vendor_err_synd;
    failure->index           = be16toh(cqe->wqe_counter);
    failure->qpn             = dci->sq.qpn;
    failure->dctn            = (dci->ep == NULL) ?
                               0 : be32toh(dci->ep->av.dqp_dct) & 0xffffff;
}


/* Tells the user that the peer of 'ep' is lost, once. A failure that nobody
 * handles is fatal: data of his is gone. */
static void
uct_dcx_dci_report(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                   const uct_dcx_failure_t *failure)
{
    ucs_log_level_t level = UCS_LOG_LEVEL_DEBUG;
    ucs_status_t status;

    if ((ep != NULL) && !(ep->flags & UCT_DCX_EP_FLAG_FAILED)) {
        ep->flags |= UCT_DCX_EP_FLAG_FAILED;
        status     = uct_iface_handle_ep_err(&iface->super.super,
                                             &ep->super.super,
                                             failure->status);
        if (failure->status != UCS_ERR_CANCELED) {
            level = uct_base_iface_failure_log_level(&iface->super, status,
                                                     failure->status);
        }
    }

    ucs_log(level, "%s:%u: %s (syndrome 0x%x, vendor 0x%x) on DCI 0x%x "
            "WQE %u to DCT 0x%x", uct_dcx_iface_name(iface), iface->port.num,
            failure->reason, failure->syndrome, failure->vendor_syndrome,
            failure->qpn, failure->index, failure->dctn);
}


void uct_dcx_dci_fail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const struct mlx5_cqe64 *cqe)
{
    uct_dcx_failure_t failure;
    uct_dcx_ep_t *ep;

    uct_dcx_dci_parse_failure(dci, cqe, &failure);

    /* what was posted before the failed operation was acknowledged */
    uct_dcx_dci_retire(iface, dci, failure.index, UCS_OK);

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
