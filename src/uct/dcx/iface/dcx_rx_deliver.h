/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A received message, from its completion to the user, and the release of its
 * queue entry. Inlined into the functions that take completions
 * (dcx_rx_poll.h).
 */
#ifndef UCT_DCX_RX_DELIVER_H
#define UCT_DCX_RX_DELIVER_H

#include "dcx_rx.h"

#include <ucs/debug/log.h>


/* Releases entry @index, wqe_counter of a completion. Returns 1 if enough
 * entries are free to be posted. */
static UCS_F_ALWAYS_INLINE int uct_dcx_rx_free(uct_dcx_rx_t *rx, __be16 index)
{
    rx->wqes[rx->tail].next.next_wqe_index = index;
    rx->tail                               = be16toh(index);
    return ++rx->excess >= 0;
}


/* Delivers a message of @length bytes at @hdr. Returns UCS_INPROGRESS if the
 * user keeps the buffer, which UCT_CB_PARAM_FLAG_DESC in @flags allows. */
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
                               (void *)(hdr + 1), payload, flags);
}


static UCS_F_ALWAYS_INLINE uct_dcx_am_hdr_t *
uct_dcx_rx_buffer(const uct_dcx_rx_t *rx, const struct mlx5_cqe64 *cqe)
{
    return rx->hdrs[be16toh(cqe->wqe_counter)];
}


/* Passes the buffer to the user, from the headroom before @payload on. The user
 * returns it by @release. */
static UCS_F_ALWAYS_INLINE void uct_dcx_rx_give(uct_dcx_rx_t *rx,
                                                const struct mlx5_cqe64 *cqe,
                                                void *payload,
                                                uct_recv_desc_t *release)
{
    void *desc = UCS_PTR_BYTE_OFFSET(payload, -(ptrdiff_t)rx->headroom);

    uct_recv_desc(desc)                 = release;
    rx->hdrs[be16toh(cqe->wqe_counter)] = NULL;
    rx->missing++;
}


/* Passes the buffer of an active message to the user. Not extern: the compiler
 * makes better code for callers in the same file. */
static UCS_F_NOINLINE void uct_dcx_rx_keep(uct_dcx_rx_t *rx,
                                           const struct mlx5_cqe64 *cqe)
{
    uct_dcx_rx_give(rx, cqe, uct_dcx_rx_buffer(rx, cqe) + 1, &rx->release);
}


/* Handles a failed receive, or a message with an opcode that no process of dcx
 * sends. Returns 1 if the completion took an entry of the queue. */
static UCS_F_NOINLINE int uct_dcx_rx_failed(uct_dcx_queues_t *queues,
                                            const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe *)cqe;
    unsigned opcode = mlx5dv_get_cqe_opcode((struct mlx5_cqe64 *)cqe);

    if (opcode == MLX5_CQE_RESP_ERR) {
        uct_dcx_queues_dropped(queues,
                               "receive failed on DCT 0x%x: %s (syndrome 0x%x, "
                               "vendor 0x%x)",
                               queues->rx.dctn,
                               uct_dcx_cqe_syndrome(cqe)->reason, err->syndrome,
                               err->vendor_err_synd);
    } else {
        uct_dcx_queues_dropped(queues,
                               "%u bytes with unexpected opcode %u: the sender "
                               "does not use dcx",
                               be32toh(cqe->byte_cnt), opcode);
    }
    return be16toh(cqe->wqe_counter) < queues->rx.length;
}

#endif
