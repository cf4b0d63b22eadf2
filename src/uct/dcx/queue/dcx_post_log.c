/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Logs a posted WQE in a line of UCX_LOG_LEVEL=data, from the segments of the
 * WQE; see dcx_post.h.
 */
#include "dcx_post.h"

#include <ucs/debug/log.h>

enum {
    UCT_DCX_POST_LOG_FIRST = 2,   /* first segment after ctrl and address */
    UCT_DCX_POST_LOG_SIZE  = 1024 /* bytes, more than any WQE has */
};

/* The data of a WQE: its length, and its first piece, if that is in our memory:
 * a part of the WQE, or a buffer */
typedef struct uct_dcx_post_log {
    size_t length;
    const void *head;
    size_t head_length;
    uint8_t segs[UCT_DCX_POST_LOG_SIZE];
} uct_dcx_post_log_t;


static const char *uct_dcx_post_log_name(uint8_t opcode)
{
    switch (opcode) {
    case MLX5_OPCODE_NOP:
        return "NOP";
    case MLX5_OPCODE_RDMA_WRITE:
        return "RDMA_WRITE";
    case MLX5_OPCODE_RDMA_READ:
        return "RDMA_READ";
    case MLX5_OPCODE_SEND:
        return "SEND";
    case MLX5_OPCODE_SEND_IMM:
        return "SEND_IMM";
    case MLX5_OPCODE_ATOMIC_CS:
        return "ATOMIC_CS";
    case MLX5_OPCODE_ATOMIC_FA:
        return "ATOMIC_FA";
    case MLX5_OPCODE_ATOMIC_MASKED_CS:
        return "ATOMIC_MASKED_CS";
    case MLX5_OPCODE_ATOMIC_MASKED_FA:
        return "ATOMIC_MASKED_FA";
    default:
        return "WQE";
    }
}


/* Reads @length inline bytes from segment @number on; they may continue at the
 * ring's start. */
static void uct_dcx_post_log_inline(uct_dcx_post_log_t *log,
                                    const uct_dcx_wqe_t *wqe, unsigned number,
                                    size_t length)
{
    size_t at;

    for (at = 0; at < (UCT_DCX_WQE_INLINE_HDR + length);
         at += UCT_DCX_WQE_SEG) {
        memcpy(log->segs + at, uct_dcx_wqe_seg_at(wqe, number++),
               UCT_DCX_WQE_SEG);
    }
    log->head        = log->segs + UCT_DCX_WQE_INLINE_HDR;
    log->head_length = length;
}


/* Reads the data of the segments from @number on. A message begins inline, or
 * is in one buffer of ours, or in device memory, which is not read; other data
 * segments may name memory of the user. */
static void uct_dcx_post_log_read(uct_dcx_post_log_t *log,
                                  const uct_dcx_wqe_t *wqe,
                                  const uct_dcx_dm_t *dm, unsigned number)
{
    const struct mlx5_wqe_data_seg *data;
    const unsigned first = number;
    size_t length;

    log->length      = 0;
    log->head_length = 0;
    while (number < wqe->ds) {
        data   = uct_dcx_wqe_seg_at(wqe, number);
        length = be32toh(data->byte_count) & ~MLX5_INLINE_SEG;
        log->length += length;
        if (!(data->byte_count & htobe32(MLX5_INLINE_SEG))) {
            if (number++ == first) {
                log->head = (const void *)(uintptr_t)be64toh(data->addr);
                if (uct_dcx_dm_has(dm, be32toh(data->lkey))) {
                    log->head = dm->copied;
                }
                log->head_length = length;
            }
            continue;
        }

        if (number == first) {
            uct_dcx_post_log_inline(log, wqe, number, length);
        }
        number += ucs_div_round_up(UCT_DCX_WQE_INLINE_HDR + length,
                                   UCT_DCX_WQE_SEG);
    }
}


/* Adds the text of the user's tracer for an active message. The tracer gets all
 * of a copied message, but only the header of a zero-copy one: it trusts that
 * header. */
static void uct_dcx_post_log_am(const uct_dcx_post_log_t *log, uct_dcx_ep_t *ep,
                                char *text, size_t size)
{
    const uct_dcx_am_hdr_t *hdr = log->head;
    int length;

    if ((log->head_length < sizeof(*hdr)) || (hdr->opcode != IBV_TMH_NO_TAG) ||
        (hdr->am_id >= UCT_AM_ID_MAX)) {
        return;
    }

    length = snprintf(text, size, " am_id %u ", hdr->am_id);
    uct_iface_dump_am(ucs_derived_of(ep->super.super.iface, uct_base_iface_t),
                      UCT_AM_TRACE_TYPE_SEND, hdr->am_id, hdr + 1,
                      log->head_length - sizeof(*hdr), text + length,
                      size - length);
}


void uct_dcx_post_log(const uct_dcx_wqe_t *wqe, const uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep, uint8_t opcode)
{
    const struct mlx5_wqe_raddr_seg *raddr;
    char text[256] = "", lid[16] = "";
    const uct_dcx_dm_t *dm = &uct_dcx_ep_queues(ep)->dm;
    uct_dcx_post_log_t log;

    if ((opcode == MLX5_OPCODE_SEND) || (opcode == MLX5_OPCODE_SEND_IMM)) {
        uct_dcx_post_log_read(&log, wqe, dm, UCT_DCX_POST_LOG_FIRST);
        uct_dcx_post_log_am(&log, ep, text, sizeof(text));
    } else if (opcode == MLX5_OPCODE_NOP) {
        log.length = 0;
    } else {
        raddr = uct_dcx_wqe_seg_at(wqe, UCT_DCX_POST_LOG_FIRST);
        snprintf(text, sizeof(text), " 0x%" PRIx64 " rkey 0x%x",
                 be64toh(raddr->raddr), be32toh(raddr->rkey));
        /* Operands of atomics are between remote address and data. */
        uct_dcx_post_log_read(&log, wqe, dm,
                              ((opcode == MLX5_OPCODE_RDMA_WRITE) ||
                               (opcode == MLX5_OPCODE_RDMA_READ)) ?
                                  UCT_DCX_POST_LOG_FIRST + 1 :
                                  wqe->ds - 1);
    }

    if (!uct_dcx_port_is_roce(uct_dcx_ep_dci_set(ep)->port)) {
        snprintf(lid, sizeof(lid), " at lid %u", be16toh(ep->av.rlid));
    }
    ucs_trace_data("TX: DCI 0x%x [%u] to DCT 0x%x%s: %s len %zu%s",
                   dci->txq.sq.qpn, wqe->index, uct_dcx_av_dctn(&ep->av), lid,
                   uct_dcx_post_log_name(opcode), log.length, text);
}
