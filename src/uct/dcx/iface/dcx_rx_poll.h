/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Takes receive completions, for both kinds of interface: dcx_rx.c, and
 * dcx_rx_tm.c, whose device matches tags. Each inlines it with its own handling
 * of a completion, and its own end of a call of progress.
 */
#ifndef UCT_DCX_RX_POLL_H
#define UCT_DCX_RX_POLL_H

#include "dcx_rx_deliver.h"


/* Delivers a message of @length bytes at @data. @flags: UCT_CB_PARAM_FLAG_DESC
 * allows the user to keep its buffer. */
typedef void (*uct_dcx_rx_message_t)(uct_dcx_iface_t *iface,
                                     const struct mlx5_cqe64 *cqe, void *data,
                                     size_t length, unsigned flags);

/* Handles a completion. Returns 1 if it released an entry of the queue. */
typedef int (*uct_dcx_rx_handle_t)(uct_dcx_iface_t *iface,
                                   struct mlx5_cqe64 *cqe);

/* Takes more completions after @count of them. Returns the number of all. */
typedef unsigned (*uct_dcx_rx_more_t)(uct_dcx_iface_t *iface, unsigned count);

/* Ends a call of progress. Returns the number of send completions. */
typedef unsigned (*uct_dcx_rx_end_t)(uct_dcx_iface_t *iface);


/* Calls @deliver with the place of a message, which is one of three. @opcodes:
 * bits of op_own that are those of MLX5_CQE_RESP_SEND. Returns 0 for another
 * completion. */
static UCS_F_ALWAYS_INLINE int uct_dcx_rx_message(uct_dcx_iface_t *iface,
                                                  struct mlx5_cqe64 *cqe,
                                                  uint8_t opcodes,
                                                  uct_dcx_rx_message_t deliver)
{
    const uint8_t send = MLX5_CQE_RESP_SEND << 4;
    uint8_t what       = cqe->op_own &
                   (opcodes | MLX5_INLINE_SCATTER_64 | MLX5_INLINE_SCATTER_32);
    size_t length = be32toh(cqe->byte_cnt);

    if (ucs_likely(what == (send | MLX5_INLINE_SCATTER_32))) {
        deliver(iface, cqe, cqe, length, 0);
    } else if (what == send) {
        deliver(iface, cqe, uct_dcx_rx_buffer(&iface->super.rx, cqe), length,
                UCT_CB_PARAM_FLAG_DESC);
    } else if (ucs_likely(what == (send | MLX5_INLINE_SCATTER_64))) {
        /* in the first half of the 128 bytes */
        deliver(iface, cqe, cqe - 1, length, 0);
    } else {
        return 0;
    }
    return 1;
}


/* Delivers an active message; its buffer comes back if the user keeps it. */
static UCS_F_ALWAYS_INLINE void uct_dcx_rx_am(uct_dcx_iface_t *iface,
                                              const struct mlx5_cqe64 *cqe,
                                              void *data, size_t length,
                                              unsigned flags)
{
    ucs_status_t status = uct_dcx_rx_deliver(iface, data, length, flags);

    if ((flags != 0) && ucs_unlikely(status == UCS_INPROGRESS)) {
        uct_dcx_rx_keep(&iface->super.rx, cqe);
    }
}


/* Ends a call of progress that has taken @count completions. */
static UCS_F_ALWAYS_INLINE unsigned
uct_dcx_rx_taken(uct_dcx_iface_t *iface, unsigned count, uct_dcx_rx_end_t end)
{
    uct_dcx_cq_update(&iface->super.rx.cq);
    if (iface->super.rx.excess >= 0) {
        uct_dcx_queues_refill(&iface->super);
    }
    return count + end(iface);
}


/* Takes more completions, after @count of them. */
static UCS_F_ALWAYS_INLINE unsigned
uct_dcx_rx_take_more(uct_dcx_iface_t *iface, unsigned count,
                     uct_dcx_rx_handle_t handle, uct_dcx_rx_end_t end)
{
    uct_dcx_cq_t *cq = &iface->super.rx.cq;
    struct mlx5_cqe64 *cqe;

    while ((count < iface->super.rx.max_poll) &&
           ((cqe = uct_dcx_cq_next(cq)) != NULL)) {
        uct_dcx_cq_advance(cq, cq->size);
        if (handle(iface, cqe)) {
            uct_dcx_rx_free(&iface->super.rx, cqe->wqe_counter);
        }
        ++count;
    }
    return uct_dcx_rx_taken(iface, count, end);
}


/* Takes the first completion. Most calls find one only; @more takes the
 * others. */
static UCS_F_ALWAYS_INLINE unsigned uct_dcx_rx_take(uct_dcx_iface_t *iface,
                                                    struct mlx5_cqe64 *cqe,
                                                    uct_dcx_rx_handle_t handle,
                                                    uct_dcx_rx_more_t more,
                                                    uct_dcx_rx_end_t end)
{
    uct_dcx_cq_t *cq = &iface->super.rx.cq;
    __be16 index;

    uct_dcx_cq_advance(cq, cq->size);
    if (ucs_likely(handle(iface, cqe))) {
        index = cqe->wqe_counter;

        /* An entry is posted only when its completion has room. */
        uct_dcx_cq_update(cq);
        if (uct_dcx_rx_free(&iface->super.rx, index)) {
            uct_dcx_queues_refill(&iface->super);
        }
    } else {
        uct_dcx_cq_update(cq);
    }

    return ucs_likely(uct_dcx_cq_next(cq) == NULL) ? 1 + end(iface) :
                                                     more(iface, 1);
}

#endif
