/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations that are posted in more than one room; see dcx_post.h.
 */
#include "dcx_post.h"


void uct_dcx_post_done_comp(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                            ucs_status_t status)
{
    if (slot->comp != NULL) {
        uct_invoke_completion(slot->comp, status);
    }
}


void uct_dcx_post_end_special(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep, unsigned ds,
                              uct_dcx_post_t *tx)
{
    uct_dcx_sq_t *sq = &dci->txq.sq;
    uct_dcx_wqe_t wqe;
    uint32_t *stream;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, sq->pi);
    wqe.ds = ds;
    if (ep->flags & UCT_DCX_EP_FLAG_GRH) {
        uct_dcx_wqe_grh(&wqe, &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh);
    }

    if (ep->flags & UCT_DCX_EP_FLAG_SHARED) {
        stream    = &dci->streams[ep->stream];
        sq->carry = uct_dcx_wqe_flags(*stream);
        *stream   = UCT_DCX_WQE_STREAM(ep->stream);
        tx->flags |= MLX5_WQE_CTRL_CQ_UPDATE;
        ep->last                    = sq->pi;
        dci->eps[sq->pi & sq->mask] = ep;
    }

    uct_dcx_txq_post(&dci->txq, &wqe, tx);
}


/* An RDMA write of 0 bytes needs no key. */
void uct_dcx_post_probe(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                        uct_completion_t *comp)
{
    uct_dcx_post_t tx = {.opcode = MLX5_OPCODE_RDMA_WRITE, .comp = comp};
    uct_dcx_wqe_t wqe;

    if (comp != NULL) {
        tx.flags = MLX5_WQE_CTRL_CQ_UPDATE;
        tx.done  = uct_dcx_post_done_comp;
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, 0, 0);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
}
