/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Send completions, and the wish for them. Called by progress (dcx_iface.c) in
 * the interface's thread.
 *
 * Not every WQE asks for a completion: the first one on an idle queue does, one
 * every UCX_DCX_TX_CQ_MODERATION blocks behind it, and those whose end the user
 * waits for; each ends all before it. When the last one that asked has
 * completed and others are behind it, the next one asks; if none is posted
 * until the next call of progress, or somebody waits, a NOP is posted that
 * asks. So each that is outstanding ends with a completion that has been asked
 * for, or its initiator is in the list of tails.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>


/* --- WQEs behind the last one that asked for a completion ----------------- */

/* Whether a completion is on its way that ends the WQE at 'index', which is
 * outstanding. */
static inline int
uct_dcx_tx_is_asked_for(const uct_dcx_dci_t *dci, uint16_t index)
{
    const uct_dcx_sq_t *sq = &dci->sq;

    return (sq->again & MLX5_WQE_CTRL_CQ_UPDATE) ||
           (uct_dcx_dci_is_outstanding(dci, sq->signaled) &&
            UCS_CIRCULAR_COMPARE16(sq->signaled, >=, index));
}


/* Whether WQEs are outstanding and no completion is on its way for any. */
static inline int uct_dcx_tx_has_tail(const uct_dcx_dci_t *dci)
{
    return !uct_dcx_dci_is_idle(dci) &&
           !uct_dcx_tx_is_asked_for(dci, dci->sq.ci);
}


/* To the target of the last WQE: the address is still there. */
static void uct_dcx_tx_post_nop(uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq       = &dci->sq;
    const uint8_t *last    = uct_dcx_sq_block(sq, sq->last);
    const uct_dcx_av_t *av = (const uct_dcx_av_t*)(last + UCT_DCX_WQE_SEG);
    uct_dcx_tx_t tx        = {
        .opcode = MLX5_OPCODE_NOP,
        .flags  = MLX5_WQE_CTRL_CQ_UPDATE
    };
    uct_dcx_wqe_t wqe;

    uct_dcx_wqe_begin(&wqe, sq->start, sq->mask, sq->pi);
    uct_dcx_wqe_av(&wqe, av);
    if (av->dqp_dct & htobe32(MLX5_EXTENDED_UD_AV)) {
        uct_dcx_wqe_grh(&wqe, (const uct_dcx_grh_t*)(av + 1));
    }
    uct_dcx_tx_post(dci, &wqe, &tx);
}


void uct_dcx_tx_ask(uct_dcx_dci_t *dci)
{
    if (!uct_dcx_dci_is_idle(dci) &&
        !uct_dcx_tx_is_asked_for(dci, dci->sq.last)) {
        uct_dcx_tx_post_nop(dci);
    }
}


static void uct_dcx_tx_ask_list(ucs_list_link_t *tails)
{
    uct_dcx_dci_t *dci;

    while (!ucs_list_is_empty(tails)) {
        dci = ucs_list_extract_head(tails, uct_dcx_dci_t, tail);
        ucs_list_head_init(&dci->tail);
        if (uct_dcx_tx_has_tail(dci)) {
            uct_dcx_tx_post_nop(dci);
        }
    }
}


void uct_dcx_tx_ask_tails(uct_dcx_iface_t *iface)
{
    iface->todo &= ~UCT_DCX_TODO_TAILS;
    uct_dcx_tx_ask_list(&iface->dci.tails_due);
    uct_dcx_tx_ask_list(&iface->dci.tails);
}


void uct_dcx_tx_do_tails(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;

    uct_dcx_tx_ask_list(&set->tails_due);
    if (set->throttled || ucs_list_is_empty(&set->tails)) {
        uct_dcx_tx_ask_tails(iface); /* somebody waits, or nothing is left */
        return;
    }

    ucs_list_splice_tail(&set->tails_due, &set->tails);
    ucs_list_head_init(&set->tails);
}


/* A completion has been handled, and none will come behind it: the next WQE
 * asks, or a NOP. */
static void uct_dcx_tx_add_tail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_look(&dci->sq);
    ucs_list_del(&dci->tail);
    ucs_list_add_tail(&iface->dci.tails, &dci->tail);
    iface->todo |= UCT_DCX_TODO_TAILS;
}


/* --- completions ---------------------------------------------------------- */

/* Operations have ended. After their callbacks, so that an endpoint which
 * goes on sending keeps what it has, and nobody overtakes those who wait. On
 * a shared initiator there is nothing to settle, and never a tail. */
static void uct_dcx_tx_ended(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_pending_got_room(iface, dci);
    uct_dcx_tx_settle(iface, dci);
    if (uct_dcx_tx_has_tail(dci)) {
        uct_dcx_tx_add_tail(iface, dci);
    }
}


/* The WQE at 'index' and all before it have completed. */
static void uct_dcx_tx_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                                 uint16_t index)
{
    uint16_t begin = dci->sq.ci;
    uint16_t until = uct_dcx_sq_end(&dci->sq, index);

    if (uct_dcx_dci_retire(dci, until)) {
        uct_dcx_pending_spend(dci, until - begin);
        if (uct_dcx_dci_is_shared(dci)) {
            uct_dcx_spill_completed(iface, dci, begin);
            uct_dcx_dci_forget_eps(dci, begin);
        }
        uct_dcx_tx_ended(iface, dci);
    }
}


/* Any completion */
static UCS_F_NOINLINE void
uct_dcx_tx_handle_any(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint16_t index     = be16toh(cqe->wqe_counter);
    uct_dcx_dci_t *dci = uct_dcx_dci_find(iface, &iface->dci,
                                          uct_dcx_cqe_qpn(cqe));

    if (dci == NULL) {
        uct_dcx_dci_drain_take(iface, cqe);
        return;
    }

    ucs_assertv(uct_dcx_dci_is_outstanding(dci, index),
                "DCI 0x%x: completion of WQE %u, but outstanding are %u-%u",
                dci->sq.qpn, index, dci->sq.ci, dci->sq.pi);

    if (uct_dcx_cqe_is_sent(cqe)) {
        uct_dcx_tx_completed(iface, dci, index);
    } else {
        uct_dcx_dci_fail(iface, dci, cqe);
    }
}


/* What most completions are: that of all that was outstanding on an exclusive
 * initiator, with one operation to end or none, and nobody waits for anything.
 * Returns 0 if it is another. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_tx_is_plain(const uct_dcx_dci_t *dci, const struct mlx5_cqe64 *cqe)
{
    return (dci->sq.qpn == uct_dcx_cqe_qpn(cqe)) && uct_dcx_cqe_is_sent(cqe) &&
           (dci->sq.last == be16toh(cqe->wqe_counter)) && !dci->sq.odd &&
           ((uint16_t)(dci->op_tail - dci->op_head) <= 1);
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle_plain(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq = &dci->sq;
    uct_dcx_ep_t *ep = dci->ep;
    uct_dcx_op_t *op;

    /* in his callback the user finds everything ended; the place of the
     * operation in its ring is not taken again so soon */
    sq->ci = sq->pi;
    uct_dcx_sq_idle(sq);
    if (dci->op_head != dci->op_tail) {
        op = uct_dcx_dci_op(dci, dci->op_head++);
        ucs_assert(!op->canceled);
        if (op->done == uct_dcx_tx_done_desc) {
            ucs_mpool_put_inline(op->buffer); /* no word of the user */
        } else {
            op->done(dci, op, UCS_OK);
            if (ucs_unlikely(dci->ep != ep)) {
                return; /* he has destroyed it */
            }

            if (ucs_unlikely(sq->odd || !uct_dcx_dci_is_idle(dci))) {
                uct_dcx_tx_ended(iface, dci);
                return;
            }
        }
    }

    /* uct_dcx_tx_settle() in short */
    dci->turn++;
    dci->ep = NULL;
    ep->dci = UCT_DCX_NO_DCI;
    uct_dcx_pool_put(&iface->dci.pool, dci->index);
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(&iface->dci, uct_dcx_cqe_qpn(cqe));

    if (ucs_likely(uct_dcx_tx_is_plain(dci, cqe))) {
        uct_dcx_tx_handle_plain(iface, dci);
    } else {
        uct_dcx_tx_handle_any(iface, cqe);
    }
}


/* The same in a row of completions, where most are of WQEs that others are
 * outstanding behind: there is nothing to settle, and nobody waits for room. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle_row(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(&iface->dci, uct_dcx_cqe_qpn(cqe));
    uint16_t index     = be16toh(cqe->wqe_counter);

    if ((dci->sq.qpn != uct_dcx_cqe_qpn(cqe)) || !uct_dcx_cqe_is_sent(cqe) ||
        (dci->sq.last == index) || dci->sq.odd) {
        uct_dcx_tx_handle(iface, cqe);
    } else if (uct_dcx_dci_retire(dci, index + 1) &&
               ucs_unlikely(!uct_dcx_tx_is_asked_for(dci, index + 1))) {
        uct_dcx_tx_ended(iface, dci);
    }
}


/* One completion was taken. */
static unsigned uct_dcx_tx_poll_cq(uct_dcx_iface_t *iface, uct_dcx_cq_t *cq)
{
    unsigned count = 1;
    const struct mlx5_cqe64 *cqe;

    while ((count < iface->tx_max_poll) &&
           ((cqe = uct_dcx_cq_next(cq)) != NULL)) {
        uct_dcx_cq_advance(cq, sizeof(*cqe));
        uct_dcx_tx_handle_row(iface, cqe);
        ++count;
    }

    uct_dcx_cq_update(cq);
    return count;
}


unsigned uct_dcx_tx_poll_others(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned count         = 0;
    const struct mlx5_cqe64 *cqe;
    unsigned i;

    for (i = 1; i < set->num_groups; ++i) {
        cqe = uct_dcx_cq_next(&set->group[i].cq);
        if (cqe != NULL) {
            uct_dcx_cq_advance(&set->group[i].cq, sizeof(*cqe));
            uct_dcx_tx_handle_any(iface, cqe);
            count += uct_dcx_tx_poll_cq(iface, &set->group[i].cq);
        }
    }
    return count;
}


/* What there is to do after completions, which make room for those who wait */
static UCS_F_NOINLINE unsigned
uct_dcx_tx_do(uct_dcx_iface_t *iface, unsigned count)
{
    return count + uct_dcx_iface_do(iface);
}


/* One completion was taken, and there are more. */
static UCS_F_NOINLINE unsigned uct_dcx_tx_poll_more(uct_dcx_iface_t *iface)
{
    unsigned count = uct_dcx_tx_poll_cq(iface, &iface->dci.group[0].cq);

    return (iface->todo == 0) ? count : uct_dcx_tx_do(iface, count);
}


/* Most calls find one. */
unsigned
uct_dcx_tx_poll(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    /* before the callbacks: a reset looks at what is unread from here */
    uct_dcx_cq_advance(&iface->dci.group[0].cq, sizeof(*cqe));
    uct_dcx_tx_handle(iface, cqe);
    if (uct_dcx_cq_next(&iface->dci.group[0].cq) != NULL) {
        return uct_dcx_tx_poll_more(iface);
    }

    uct_dcx_cq_update(&iface->dci.group[0].cq);
    return ucs_likely(iface->todo == 0) ? 1 : uct_dcx_tx_do(iface, 1);
}
