/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receiving if the device matches tags: the completions of an XRQ. Those of its
 * list go to tm/. Unexpected messages, and messages without tag, lie where an
 * active message does; see dcx_rx.h.
 */
#include "dcx_rx_deliver.h"
#include "dcx_tx_poll.h"
#include "uct/dcx/tm/dcx_tm.h"

#include <ucs/debug/log.h>


/* Returns the place of a message; stores in @flags whether the user may keep
 * it. */
static UCS_F_ALWAYS_INLINE void *uct_dcx_rx_tm_data(const uct_dcx_rx_t *rx,
                                                    struct mlx5_cqe64 *cqe,
                                                    unsigned *flags)
{
    *flags = 0;
    if (cqe->op_own & MLX5_INLINE_SCATTER_32) {
        return cqe;
    }

    if (cqe->op_own & MLX5_INLINE_SCATTER_64) {
        return cqe - 1; /* in the first half of the 128 bytes */
    }

    *flags = UCT_CB_PARAM_FLAG_DESC;
    return uct_dcx_rx_buffer(rx, cqe);
}


static void uct_dcx_rx_tm_unexpected(uct_dcx_iface_t *iface,
                                     struct mlx5_cqe64 *cqe)
{
    uct_dcx_rx_t *rx = &iface->super.rx;
    uct_dcx_tm_t *tm = &iface->tm;
    ucs_status_t status;
    struct ibv_tmh *tmh;
    unsigned flags;

    tmh    = uct_dcx_rx_tm_data(rx, cqe, &flags);
    status = uct_dcx_tm_unexpected(tm, tmh, be32toh(cqe->byte_cnt), cqe, flags);
    if (ucs_unlikely(status == UCS_INPROGRESS)) {
        uct_dcx_rx_give(rx, cqe, tmh + 1, &tm->release);
    }
}


/* Handles an active message, or the end of our own rendezvous. */
static void uct_dcx_rx_tm_no_tag(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    uct_dcx_rx_t *rx = &iface->super.rx;
    size_t length    = be32toh(cqe->byte_cnt);
    uct_dcx_am_hdr_t *hdr;
    ucs_status_t status;
    unsigned flags;

    hdr = uct_dcx_rx_tm_data(rx, cqe, &flags);
    if ((hdr->opcode == IBV_TMH_FIN) && (length >= sizeof(struct ibv_tmh))) {
        uct_dcx_tm_rndv_fin(&iface->tm.rndv, ((struct ibv_tmh *)hdr)->app_ctx);
        return;
    }

    status = uct_dcx_rx_deliver(iface, hdr, length, flags);
    if (ucs_unlikely(status == UCS_INPROGRESS)) {
        uct_dcx_rx_keep(rx, cqe);
    }
}


/* Returns 1 if an entry of the queue is free. */
static int uct_dcx_rx_tm_handle(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    const uint8_t first = MLX5_CQE_RESP_SEND << 4;
    const uint8_t last  = (MLX5_CQE_NO_PACKET << 4) | 0xf;

    /* A write with an immediate, too, takes a receive buffer. */
    if (ucs_unlikely((uint8_t)(cqe->op_own - first) > last - first)) {
        if (mlx5dv_get_cqe_opcode(cqe) == MLX5_CQE_REQ_ERR) {
            uct_dcx_tm_failed(&iface->tm, cqe);
            return 0;
        }
        return uct_dcx_rx_failed(&iface->super, cqe);
    }

    switch (cqe->app_op) {
    case PRM_CQE_TM_NO_TAG:
        uct_dcx_rx_tm_no_tag(iface, cqe);
        return 1;
    case PRM_CQE_TM_UNEXPECTED:
        uct_dcx_rx_tm_unexpected(iface, cqe);
        return 1;
    default:
        uct_dcx_tm_list_complete(&iface->tm, cqe);
        return 0;
    }
}


static UCS_F_NOINLINE unsigned uct_dcx_rx_tm_poll(uct_dcx_iface_t *iface,
                                                  struct mlx5_cqe64 *cqe)
{
    uct_dcx_rx_t *rx = &iface->super.rx;
    uct_dcx_tm_t *tm = &iface->tm;
    unsigned count   = 0;

    do {
        uct_dcx_cq_advance(&rx->cq, rx->cq.size);
        if (uct_dcx_rx_tm_handle(iface, cqe)) {
            uct_dcx_rx_free(rx, cqe->wqe_counter);
        }
        ++count;
    } while ((count < rx->max_poll) &&
             ((cqe = uct_dcx_cq_next(&rx->cq)) != NULL));

    uct_dcx_cq_update(&rx->cq);
    if (rx->excess >= 0) {
        uct_dcx_queues_refill(&iface->super);
    }

    if (tm->unexpected != tm->synced) {
        uct_dcx_tm_sync(tm);
    }
    return count + uct_dcx_tx_progress(iface);
}


/* UCT's progress. Most calls find nothing, and save no register. */
unsigned uct_dcx_rx_tm_progress(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&iface->super.rx.cq);

    return (cqe != NULL) ? uct_dcx_rx_tm_poll(iface, cqe) :
                           uct_dcx_tx_progress(iface);
}
