/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receiving: delivery of active messages, and the DC target that lets them in;
 * see dcx_rx.h.
 */
#include "dcx_rx.h"
#include "dcx_tx_poll.h"
#include "uct/dcx/base/dcx_sizes.h"

#include <sys/random.h>
#include <ucs/debug/log.h>


/* The device is done with the entry that a completion has named. Returns
 * whether enough of them are free to be posted. */
static UCS_F_ALWAYS_INLINE int uct_dcx_rx_free(uct_dcx_rx_t *rx, __be16 index)
{
    rx->wqes[rx->tail].next.next_wqe_index = index;
    rx->tail                               = be16toh(index);
    return ++rx->excess >= 0;
}


/* A message of 'length' bytes at 'hdr'. Returns UCS_INPROGRESS if the user
 * keeps the buffer, as 'flags' allow. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_rx_deliver(uct_dcx_iface_t *iface, const uct_dcx_am_hdr_t *hdr,
                   size_t length, unsigned flags)
{
    size_t payload;

    if (ucs_unlikely(__builtin_sub_overflow(length, sizeof(*hdr), &payload) ||
                     (hdr->am_id >= UCT_AM_ID_MAX))) {
        uct_dcx_fc_receive(&iface->fc, hdr, length);
        return UCS_OK;
    }

    uct_iface_trace_am(&iface->super.super, UCT_AM_TRACE_TYPE_RECV, hdr->am_id,
                       hdr + 1, payload, "RX: AM");
    return uct_iface_invoke_am(&iface->super.super, hdr->am_id,
                               (void*)(hdr + 1), payload, flags);
}


static UCS_F_ALWAYS_INLINE uct_dcx_am_hdr_t *
uct_dcx_rx_buffer(const uct_dcx_rx_t *rx, const struct mlx5_cqe64 *cqe)
{
    return rx->hdrs[be16toh(cqe->wqe_counter)];
}


/* The user owns the buffer, from the headroom before the payload on. */
static UCS_F_NOINLINE void
uct_dcx_rx_keep(uct_dcx_rx_t *rx, const struct mlx5_cqe64 *cqe)
{
    void *desc = UCS_PTR_BYTE_OFFSET(uct_dcx_rx_buffer(rx, cqe) + 1,
                                     -(ptrdiff_t)rx->headroom);

    uct_recv_desc(desc)                 = &rx->release;
    rx->hdrs[be16toh(cqe->wqe_counter)] = NULL;
    rx->missing++;
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_rx_deliver_buffer(uct_dcx_iface_t *iface, size_t length,
                          const struct mlx5_cqe64 *cqe)
{
    ucs_status_t status;

    status = uct_dcx_rx_deliver(iface, uct_dcx_rx_buffer(&iface->super.rx, cqe),
                                length, UCT_CB_PARAM_FLAG_DESC);
    if (ucs_unlikely(status == UCS_INPROGRESS)) {
        uct_dcx_rx_keep(&iface->super.rx, cqe);
    }
}


/* Returns whether the completion took an entry of the queue. */
static UCS_F_NOINLINE int
uct_dcx_rx_failed(uct_dcx_queues_t *queues, const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;

    ucs_error("%s: receive failed on DCT 0x%x: %s (syndrome 0x%x, vendor 0x%x)",
              queues->port.name, queues->rx.dct->qp_num,
              uct_dcx_cqe_syndrome(cqe)->reason, err->syndrome,
              err->vendor_err_synd);
    return be16toh(cqe->wqe_counter) < queues->rx.length;
}


void uct_dcx_rx_refill(uct_dcx_queues_t *queues)
{
    uct_dcx_rx_t *rx = &queues->rx;

    uct_dcx_srq_post(rx);
    if (rx->excess >= 0) {
        /* no message may come any more */
        queues->dci.todo |= UCT_DCX_TODO_REFILL;
    } else {
        queues->dci.todo &= ~UCT_DCX_TODO_REFILL;
    }
}


/* One byte has the opcode, and says where the message is. Returns whether an
 * entry of the queue is free. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_rx_handle(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    const uint8_t send = MLX5_CQE_RESP_SEND << 4;
    uint8_t what       = cqe->op_own & (0xf0 | MLX5_INLINE_SCATTER_64 |
                                        MLX5_INLINE_SCATTER_32);
    size_t length      = be32toh(cqe->byte_cnt);

    if (ucs_likely(what == (send | MLX5_INLINE_SCATTER_32))) {
        uct_dcx_rx_deliver(iface, (uct_dcx_am_hdr_t*)cqe, length, 0);
    } else if (what == send) {
        uct_dcx_rx_deliver_buffer(iface, length, cqe);
    } else if (ucs_likely(what == (send | MLX5_INLINE_SCATTER_64))) {
        /* first half of 128 bytes */
        uct_dcx_rx_deliver(iface, (uct_dcx_am_hdr_t*)(cqe - 1), length, 0);
    } else {
        return uct_dcx_rx_failed(&iface->super, cqe);
    }
    return 1;
}


/* One completion was taken, and there are more. */
static UCS_F_NOINLINE unsigned uct_dcx_rx_poll_more(uct_dcx_iface_t *iface)
{
    uct_dcx_cq_t *cq = &iface->super.rx.cq;
    unsigned count   = 1;
    struct mlx5_cqe64 *cqe;

    while ((count < iface->super.rx.max_poll) &&
           ((cqe = uct_dcx_cq_next(cq)) != NULL)) {
        uct_dcx_cq_advance(cq, cq->size);
        if (uct_dcx_rx_handle(iface, cqe)) {
            uct_dcx_rx_free(&iface->super.rx, cqe->wqe_counter);
        }
        ++count;
    }

    uct_dcx_cq_update(cq);
    if (iface->super.rx.excess >= 0) {
        uct_dcx_rx_refill(&iface->super);
    }
    return count + uct_dcx_tx_progress(iface);
}


/* Most calls find one. */
unsigned uct_dcx_rx_poll(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    uct_dcx_cq_t *cq = &iface->super.rx.cq;
    __be16 index;

    uct_dcx_cq_advance(cq, cq->size);
    if (ucs_likely(uct_dcx_rx_handle(iface, cqe))) {
        index = cqe->wqe_counter;

        /* entries are posted only when as many completions have room */
        uct_dcx_cq_update(cq);
        if (uct_dcx_rx_free(&iface->super.rx, index)) {
            uct_dcx_rx_refill(&iface->super);
        }
    }

    return ucs_likely(uct_dcx_cq_next(cq) == NULL) ?
           1 + uct_dcx_tx_progress(iface) : uct_dcx_rx_poll_more(iface);
}


static ucs_status_t
uct_dcx_rx_modify_dct(uct_dcx_queues_t *queues,
                      const uct_dcx_iface_config_t *config)
{
    struct ibv_qp *dct      = queues->rx.dct;
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .pkey_index      = queues->port.pkey_index,
        .port_num        = queues->port.num,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC
    };

    if (ibv_modify_qp(dct, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    attr.qp_state      = IBV_QPS_RTR;
    attr.path_mtu      = queues->port.mtu;
    attr.min_rnr_timer = uct_dcx_config_rnr_code(config->rx.rnr_timeout);
    uct_dcx_port_fill_ah(&queues->port, &attr.ah_attr);
    return (ibv_modify_qp(dct, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER |
                                      IBV_QP_AV | IBV_QP_PATH_MTU) != 0) ?
           UCS_ERR_IO_ERROR : UCS_OK;
}


/* Without the flag libmlx5 requests data in the completion, and the device
 * puts up to 64 bytes there if the completion has 128 (create_dct in libmlx5
 * and in the kernel's mlx5_ib); it refuses the flag that forces it. */
static ucs_status_t
uct_dcx_rx_create_dct(uct_dcx_queues_t *queues,
                      const uct_dcx_iface_config_t *config)
{
    uct_dcx_rx_t *rx                   = &queues->rx;
    struct ibv_qp_init_attr_ex attr    = {
        .qp_type   = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd        = queues->port.dev->pd,
        .send_cq   = queues->rx.cq.cq,
        .recv_cq   = queues->rx.cq.cq,
        .srq       = rx->srq
    };
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type        = MLX5DV_DCTYPE_DCT,
                         .dct_access_key = rx->dc_key}
    };

    if (config->rx.inl == 0) {
        dv_attr.comp_mask   |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
        dv_attr.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    }

    rx->dct = mlx5dv_create_qp(queues->port.dev->ctx, &attr, &dv_attr);
    if (rx->dct == NULL) {
        ucs_error("%s: failed to create a DCT: %m", queues->port.name);
        return UCS_ERR_IO_ERROR;
    }

    if (uct_dcx_rx_modify_dct(queues, config) != UCS_OK) {
        ucs_error("%s: the DCT cannot be brought to RTR: %m",
                  queues->port.name);
        ibv_destroy_qp(rx->dct);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


/* Buffers are posted again while a batch of messages is being delivered
 * (dcx_fc_grant.c), and its completions are given back only at its end. */
static ucs_status_t
uct_dcx_rx_init_cq(uct_dcx_queues_t *queues,
                   const uct_dcx_iface_config_t *config)
{
    uct_dcx_cq_params_t params = {
        .ctx       = queues->port.dev->ctx,
        .channel   = queues->channel,
        .cqe_size  = (config->rx.inl == 0) ? 64 : 128,
        .what      = "receives",
        .log_level = UCS_LOG_LEVEL_ERROR
    };
    uct_dcx_sizes_t sizes;

    uct_dcx_sizes_init(&sizes, config);
    queues->rx.max_poll = sizes.rx_max_poll;
    params.length       = sizes.rx_cqes;
    return uct_dcx_cq_init(&queues->rx.cq, &params);
}


static ucs_status_t uct_dcx_rx_prepost(uct_dcx_queues_t *queues)
{
    uct_dcx_srq_post(&queues->rx);
    if (uct_dcx_srq_num_free(&queues->rx) > 0) {
        ucs_error("%s: memory is short for %u receive buffers of %u bytes; "
                  "lower UCX_DCX_RX_QUEUE_LEN", queues->port.name,
                  queues->rx.length, queues->rx.seg_size);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}


ucs_status_t
uct_dcx_rx_init(uct_dcx_queues_t *queues, const uct_dcx_iface_config_t *config,
                const uct_iface_params_t *params)
{
    uct_dcx_rx_t *rx = &queues->rx;
    ucs_status_t status;

    if (getrandom(&rx->dc_key, sizeof(rx->dc_key), 0) !=
        sizeof(rx->dc_key)) {
        ucs_error("no random number for the DC access key: %m");
        return UCS_ERR_IO_ERROR;
    }

    status = uct_dcx_srq_init(rx, &queues->super, queues->port.dev, config,
                              params);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_rx_init_cq(queues, config);
    if (status != UCS_OK) {
        goto err_cleanup_srq;
    }

    status = uct_dcx_rx_prepost(queues);
    if (status != UCS_OK) {
        goto err_cleanup_cq;
    }

    status = uct_dcx_rx_create_dct(queues, config);
    if (status != UCS_OK) {
        goto err_cleanup_cq;
    }

    return UCS_OK;

err_cleanup_cq:
    uct_dcx_cq_cleanup(&rx->cq);
err_cleanup_srq:
    uct_dcx_srq_cleanup(rx, queues->port.dev);
    return status;
}


void uct_dcx_rx_cleanup(uct_dcx_queues_t *queues)
{
    if (ibv_destroy_qp(queues->rx.dct) != 0) {
        ucs_warn("%s: failed to destroy the DCT: %m", queues->port.name);
    }

    uct_dcx_cq_cleanup(&queues->rx.cq);
    uct_dcx_srq_cleanup(&queues->rx, queues->port.dev);
}
