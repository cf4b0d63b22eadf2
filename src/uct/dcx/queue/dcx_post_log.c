/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What is posted, as a line of UCX_LOG_LEVEL=data, read from the segments of its
 * WQE; see dcx_post.h.
 */
#include "dcx_post.h"

#include <ucs/debug/log.h>

enum {
    UCT_DCX_POST_LOG_FIRST = 2,  /* segment, behind ctrl and address */
    UCT_DCX_POST_LOG_HEAD  = 128 /* so many bytes of a message are shown */
};

/* A message: how long it is, and how it begins */
typedef struct uct_dcx_post_log {
    size_t  length;
    size_t  num_head;
    uint8_t head[UCT_DCX_POST_LOG_HEAD + UCT_DCX_WQE_SEG];
} uct_dcx_post_log_t;


static const char *uct_dcx_post_log_name(uint8_t opcode)
{
    switch (opcode) {
    case MLX5_OPCODE_NOP:              return "NOP";
    case MLX5_OPCODE_RDMA_WRITE:       return "RDMA_WRITE";
    case MLX5_OPCODE_RDMA_READ:        return "RDMA_READ";
    case MLX5_OPCODE_SEND:             return "SEND";
    case MLX5_OPCODE_SEND_IMM:         return "SEND_IMM";
    case MLX5_OPCODE_ATOMIC_CS:        return "ATOMIC_CS";
    case MLX5_OPCODE_ATOMIC_FA:        return "ATOMIC_FA";
    case MLX5_OPCODE_ATOMIC_MASKED_CS: return "ATOMIC_MASKED_CS";
    case MLX5_OPCODE_ATOMIC_MASKED_FA: return "ATOMIC_MASKED_FA";
    default:                           return "WQE";
    }
}


/* Inline bytes that begin at 'number'; they may go on at the ring's start. */
static void
uct_dcx_post_log_inline(uct_dcx_post_log_t *log, const uct_dcx_wqe_t *wqe,
                        unsigned number, size_t length)
{
    size_t size = UCT_DCX_WQE_INLINE_HDR + length, at;

    size = ucs_min(size, sizeof(log->head));
    for (at = 0; at < size; at += UCT_DCX_WQE_SEG) {
        memcpy(log->head + at, uct_dcx_wqe_seg_at(wqe, number++),
               UCT_DCX_WQE_SEG);
    }
    log->num_head = size - UCT_DCX_WQE_INLINE_HDR;
    memmove(log->head, log->head + UCT_DCX_WQE_INLINE_HDR, log->num_head);
}


/* What the segments from 'number' on carry. A message begins inline, or in a
 * buffer of ours; what is behind that may be anybody's memory. */
static void
uct_dcx_post_log_read(uct_dcx_post_log_t *log, const uct_dcx_wqe_t *wqe,
                      unsigned number, int is_message)
{
    const struct mlx5_wqe_data_seg *data;
    const unsigned first = number;
    size_t length;

    log->length   = 0;
    log->num_head = 0;
    while (number < wqe->ds) {
        data   = uct_dcx_wqe_seg_at(wqe, number);
        length = be32toh(data->byte_count) & ~MLX5_INLINE_SEG;
        log->length += length;
        if (data->byte_count & htobe32(MLX5_INLINE_SEG)) {
            if (number == first) {
                uct_dcx_post_log_inline(log, wqe, number, length);
            }
            number += ucs_div_round_up(UCT_DCX_WQE_INLINE_HDR + length,
                                       UCT_DCX_WQE_SEG);
        } else {
            if (is_message && (number == first)) {
                log->num_head = ucs_min(length, UCT_DCX_POST_LOG_HEAD);
                memcpy(log->head, (const void*)(uintptr_t)be64toh(data->addr),
                       log->num_head);
            }
            number++;
        }
    }
}


/* What the user's tracer says of an active message */
static void
uct_dcx_post_log_am(const uct_dcx_post_log_t *log, uct_dcx_ep_t *ep, char *text,
                    size_t size)
{
    const uct_dcx_am_hdr_t *hdr = (const uct_dcx_am_hdr_t*)log->head;
    int length;

    if ((log->num_head < sizeof(*hdr)) || (hdr->opcode != IBV_TMH_NO_TAG) ||
        (hdr->am_id >= UCT_AM_ID_MAX)) {
        return;
    }

    length = snprintf(text, size, " am_id %u ", hdr->am_id);
    uct_iface_dump_am(ucs_derived_of(ep->super.super.iface, uct_base_iface_t),
                      UCT_AM_TRACE_TYPE_SEND, hdr->am_id, hdr + 1,
                      log->num_head - sizeof(*hdr), text + length,
                      size - length);
}


void uct_dcx_post_log(const uct_dcx_wqe_t *wqe, const uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep, uint8_t opcode)
{
    const struct mlx5_wqe_raddr_seg *raddr;
    char text[256] = "";
    uct_dcx_post_log_t log;

    if ((opcode == MLX5_OPCODE_SEND) || (opcode == MLX5_OPCODE_SEND_IMM)) {
        uct_dcx_post_log_read(&log, wqe, UCT_DCX_POST_LOG_FIRST, 1);
        uct_dcx_post_log_am(&log, ep, text, sizeof(text));
    } else if (opcode == MLX5_OPCODE_NOP) {
        log.length = 0;
    } else {
        raddr = uct_dcx_wqe_seg_at(wqe, UCT_DCX_POST_LOG_FIRST);
        snprintf(text, sizeof(text), " 0x%" PRIx64 " rkey 0x%x",
                 be64toh(raddr->raddr), be32toh(raddr->rkey));
        log.length = 0;
        if ((opcode == MLX5_OPCODE_RDMA_WRITE) ||
            (opcode == MLX5_OPCODE_RDMA_READ)) {
            uct_dcx_post_log_read(&log, wqe, UCT_DCX_POST_LOG_FIRST + 1, 0);
        }
    }

    ucs_trace_data("TX: DCI 0x%x [%u] to DCT 0x%x of LID %u: %s len %zu%s",
                   dci->txq.sq.qpn, wqe->index,
                   be32toh(ep->av.dqp_dct) & 0xffffff, be16toh(ep->av.rlid),
                   uct_dcx_post_log_name(opcode), log.length, text);
}
