/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receiving if the device matches tags: the completions of an XRQ. Those of its
 * list go to tm/. Unexpected messages, and messages without tag, lie where an
 * active message does; see dcx_rx.h.
 */
#include "dcx_rx_poll.h"
#include "dcx_tx_poll.h"
#include "uct/dcx/tm/dcx_tm_unexp.h"

#include <ucs/debug/log.h>


/* Handles a failed operation or receive, or a message with an opcode that no
 * process of dcx sends. Returns 1 if an entry of the queue is free. */
static UCS_F_NOINLINE int uct_dcx_rx_tm_failed(uct_dcx_iface_t *iface,
                                               struct mlx5_cqe64 *cqe)
{
    if (mlx5dv_get_cqe_opcode(cqe) == MLX5_CQE_REQ_ERR) {
        uct_dcx_tm_failed(&iface->tm, cqe);
        return 0;
    }
    return uct_dcx_rx_failed(&iface->super, cqe);
}


/* Delivers an active message, or handles the end of our own rendezvous. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_rx_tm_no_tag(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe,
                     void *data, size_t length, unsigned flags)
{
    const struct ibv_tmh *tmh = data;

    if (ucs_unlikely(tmh->opcode == IBV_TMH_FIN) && (length >= sizeof(*tmh))) {
        uct_dcx_tm_rndv_fin(&iface->tm.rndv, tmh->app_ctx);
    } else {
        uct_dcx_rx_am(iface, cqe, data, length, flags);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_rx_tm_unexpected(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe,
                         void *data, size_t length, unsigned flags)
{
    uct_dcx_tm_t *tm    = &iface->tm;
    struct ibv_tmh *tmh = data;
    ucs_status_t status = uct_dcx_tm_unexpected(tm, tmh, length, cqe, flags);

    if ((flags != 0) && ucs_unlikely(status == UCS_INPROGRESS)) {
        uct_dcx_rx_give(&iface->super.rx, cqe, tmh + 1, &tm->release);
    }
}


/* Returns non-zero for a message that matches no tagged buffer. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_rx_tm_is_message(const struct mlx5_cqe64 *cqe)
{
    return (cqe->app_op == PRM_CQE_TM_NO_TAG) ||
           (cqe->app_op == PRM_CQE_TM_UNEXPECTED);
}


/* Handle a completion of one kind. Return 1 if an entry of the queue is
 * free. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_rx_tm_handle_no_tag(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    return uct_dcx_rx_message(iface, cqe, 0xf0, uct_dcx_rx_tm_no_tag) ?
               1 :
               uct_dcx_rx_tm_failed(iface, cqe);
}


static UCS_F_ALWAYS_INLINE int
uct_dcx_rx_tm_handle_unexpected(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    /* also MLX5_CQE_RESP_SEND_IMM */
    return uct_dcx_rx_message(iface, cqe, 0xe0, uct_dcx_rx_tm_unexpected) ?
               1 :
               uct_dcx_rx_tm_failed(iface, cqe);
}


static UCS_F_ALWAYS_INLINE int uct_dcx_rx_tm_handle_list(uct_dcx_iface_t *iface,
                                                         struct mlx5_cqe64 *cqe)
{
    const uint8_t first = MLX5_CQE_RESP_SEND << 4;
    const uint8_t last  = (MLX5_CQE_NO_PACKET << 4) | 0xf;

    /* A write with an immediate, too, takes a receive buffer. */
    if (ucs_unlikely((uint8_t)(cqe->op_own - first) > last - first)) {
        return uct_dcx_rx_tm_failed(iface, cqe);
    }

    uct_dcx_tm_list_complete(&iface->tm, cqe);
    return 0;
}


static UCS_F_ALWAYS_INLINE int uct_dcx_rx_tm_handle(uct_dcx_iface_t *iface,
                                                    struct mlx5_cqe64 *cqe)
{
    switch (cqe->app_op) {
    case PRM_CQE_TM_NO_TAG:
        return uct_dcx_rx_tm_handle_no_tag(iface, cqe);
    case PRM_CQE_TM_UNEXPECTED:
        return uct_dcx_rx_tm_handle_unexpected(iface, cqe);
    default:
        return uct_dcx_rx_tm_handle_list(iface, cqe);
    }
}


static UCS_F_ALWAYS_INLINE unsigned uct_dcx_rx_tm_end(uct_dcx_iface_t *iface)
{
    if (ucs_unlikely(uct_dcx_tm_is_behind(&iface->tm))) {
        uct_dcx_tm_sync(&iface->tm);
    }
    return uct_dcx_tx_progress(iface);
}


static UCS_F_NOINLINE unsigned uct_dcx_rx_tm_poll_more(uct_dcx_iface_t *iface,
                                                       unsigned count)
{
    return uct_dcx_rx_take_more(iface, count, uct_dcx_rx_tm_handle,
                                uct_dcx_rx_tm_end);
}


/* Take a message of one kind, and more. An active message does not change
 * the count that the device has to be told. */
static UCS_F_NOINLINE unsigned uct_dcx_rx_tm_poll_no_tag(uct_dcx_iface_t *iface,
                                                         struct mlx5_cqe64 *cqe)
{
    return uct_dcx_rx_take(iface, cqe, uct_dcx_rx_tm_handle_no_tag,
                           uct_dcx_rx_tm_poll_more, uct_dcx_tx_progress);
}


static UCS_F_NOINLINE unsigned
uct_dcx_rx_tm_poll_unexpected(uct_dcx_iface_t *iface, struct mlx5_cqe64 *cqe)
{
    return uct_dcx_rx_take(iface, cqe, uct_dcx_rx_tm_handle_unexpected,
                           uct_dcx_rx_tm_poll_more, uct_dcx_rx_tm_end);
}


/* Takes completions of the list. A rendezvous has two, and the second is more
 * likely to be next than a message. */
static UCS_F_NOINLINE unsigned uct_dcx_rx_tm_poll_list(uct_dcx_iface_t *iface,
                                                       struct mlx5_cqe64 *cqe)
{
    uct_dcx_rx_t *rx = &iface->super.rx;
    unsigned count   = 0;

    do {
        uct_dcx_cq_advance(&rx->cq, rx->cq.size);
        if (uct_dcx_rx_tm_handle_list(iface, cqe)) {
            uct_dcx_rx_free(rx, cqe->wqe_counter);
        }
        ++count;
        cqe = uct_dcx_cq_next(&rx->cq);
    } while ((cqe != NULL) && (count < rx->max_poll) &&
             !uct_dcx_rx_tm_is_message(cqe));

    return (cqe != NULL) ? uct_dcx_rx_tm_poll_more(iface, count) :
                           uct_dcx_rx_taken(iface, count, uct_dcx_rx_tm_end);
}


/* UCT's progress. Most calls find nothing, and save no register. */
unsigned uct_dcx_rx_tm_progress(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&iface->super.rx.cq);

    if (cqe == NULL) {
        return uct_dcx_tx_progress(iface);
    }

    switch (cqe->app_op) {
    case PRM_CQE_TM_NO_TAG:
        return uct_dcx_rx_tm_poll_no_tag(iface, cqe);
    case PRM_CQE_TM_UNEXPECTED:
        return uct_dcx_rx_tm_poll_unexpected(iface, cqe);
    default:
        return uct_dcx_rx_tm_poll_list(iface, cqe);
    }
}
