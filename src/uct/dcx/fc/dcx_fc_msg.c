/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages with the address of their sender; see dcx_fc_msg.h.
 */
#include "dcx_fc_msg.h"


/* A message in its WQE; our address follows in other segments. */
typedef struct uct_dcx_fc_msg_head {
    __be32 byte_count;
    uct_dcx_am_hdr_t hdr;
    uct_dcx_fc_grant_t state;
} UCS_S_PACKED uct_dcx_fc_msg_head_t;

static_assert(sizeof(uct_dcx_fc_msg_head_t) == UCT_DCX_WQE_SEG, "one segment");


void uct_dcx_fc_post_msg(uct_dcx_fc_t *fc, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                         uint8_t id, const uct_dcx_fc_grant_t *state)
{
    const uct_dcx_fc_msg_head_t head = {
        .byte_count = htobe32(MLX5_INLINE_SEG | (sizeof(uct_dcx_am_hdr_t) +
                                                 sizeof(uct_dcx_fc_request_t))),
        .hdr.am_id  = id,
        .state      = *state,
    };
    uct_dcx_post_t tx = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED,
    };
    uct_dcx_wqe_t wqe;
    unsigned i;

    uct_dcx_post_begin(&wqe, dci, ep);
    memcpy(uct_dcx_wqe_seg(&wqe), &head, UCT_DCX_WQE_SEG);
    for (i = 0; i < sizeof(fc->origin); i += UCT_DCX_WQE_SEG) {
        memcpy(uct_dcx_wqe_seg(&wqe), fc->origin.segs + i, UCT_DCX_WQE_SEG);
    }
    uct_dcx_post_end(&wqe, dci, ep, &tx);
}
