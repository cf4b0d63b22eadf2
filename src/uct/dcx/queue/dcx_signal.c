/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completions for unsignaled WQEs; see dcx_signal.h.
 */
#include "dcx_signal.h"
#include "dcx_post.h"


/* Sends the NOP to the target of the last WQE, whose address is still in the
 * ring. The NOP has a fence, as in UCX's transports: otherwise it might
 * complete before previous reads and atomics. It is the fence of the initiator,
 * as the modes of two fences do not add up. */
void uct_dcx_signal_post_nop(uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq       = &dci->txq.sq;
    const uint8_t *last    = uct_dcx_sq_block(sq, sq->last);
    const uct_dcx_av_t *av = (const uct_dcx_av_t *)(last + UCT_DCX_WQE_SEG);
    uct_dcx_post_t tx      = {
             .opcode = MLX5_OPCODE_NOP,
             .flags  = MLX5_WQE_CTRL_CQ_UPDATE | dci->fence,
    };
    uct_dcx_wqe_t wqe;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, sq->pi);
    uct_dcx_wqe_av(&wqe, av);
    if (uct_dcx_av_has_grh(av)) {
        uct_dcx_wqe_grh(&wqe, (const uct_dcx_grh_t *)(av + 1));
    }
    uct_dcx_txq_post(&dci->txq, &wqe, &tx);
}


void uct_dcx_signal_request(uct_dcx_dci_t *dci)
{
    if (!uct_dcx_txq_is_idle(&dci->txq) &&
        !uct_dcx_signal_is_requested(dci, dci->txq.sq.last)) {
        uct_dcx_signal_post_nop(dci);
    }
}


static void uct_dcx_signal_request_list(ucs_list_link_t *list)
{
    uct_dcx_dci_t *dci;

    while (!ucs_list_is_empty(list)) {
        dci = ucs_list_extract_head(list, uct_dcx_dci_t, unsignaled);
        ucs_list_head_init(&dci->unsignaled);
        if (uct_dcx_signal_has_unsignaled(dci)) {
            uct_dcx_signal_post_nop(dci);
        }
    }
}


void uct_dcx_signal_request_all(uct_dcx_dci_set_t *set)
{
    set->todo &= ~UCT_DCX_TODO_UNSIGNALED;
    uct_dcx_signal_request_list(&set->unsignaled_due);
    uct_dcx_signal_request_list(&set->unsignaled);
}


void uct_dcx_signal_progress(uct_dcx_dci_set_t *set)
{
    uct_dcx_signal_request_list(&set->unsignaled_due);
    if (set->throttled || ucs_list_is_empty(&set->unsignaled)) {
        uct_dcx_signal_request_all(set); /* others wait, or the list is empty */
        return;
    }

    ucs_list_splice_tail(&set->unsignaled_due, &set->unsignaled);
    ucs_list_head_init(&set->unsignaled);
}


void uct_dcx_signal_add_unsignaled(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_stop(&dci->txq.sq);
    ucs_list_del(&dci->unsignaled);
    ucs_list_add_tail(&set->unsignaled, &dci->unsignaled);
    set->todo |= UCT_DCX_TODO_UNSIGNALED;
}
