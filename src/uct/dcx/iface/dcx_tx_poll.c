/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Send completions; see dcx_tx_poll.h. queue/dcx_signal.h says which WQEs
 * request one.
 */
#include "dcx_tx_poll.h"
#include "dcx_fatal.h"
#include "uct/dcx/fc/dcx_fc.h"
#include "uct/dcx/queue/dcx_desc.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/recover/dcx_recover.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/debug/log.h>


/* Serves an initiator whose operations have ended. Called after their
 * callbacks, so that an endpoint that continues to send keeps its initiator,
 * and does not overtake endpoints that wait. A shared initiator is not
 * released, and has no unsignaled WQE. */
static void uct_dcx_tx_ended(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_pending_dci_available(set, dci);
    uct_dcx_tx_release(set, dci);
    if (uct_dcx_signal_has_unsignaled(dci)) {
        uct_dcx_signal_add_unsignaled(set, dci);
    }
}


/* Completes the WQE at @index and all before it. */
static void uct_dcx_tx_completed(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                                 uint16_t index)
{
    uint16_t begin = dci->txq.sq.ci;
    uint16_t until = uct_dcx_sq_end(&dci->txq.sq, index);

    if (uct_dcx_txq_retire(&dci->txq, until)) {
        uct_dcx_tx_spend(dci, until - begin);
        if (uct_dcx_dci_is_shared(dci)) {
            uct_dcx_dci_forget_eps(dci, begin);
        }
        uct_dcx_tx_ended(set, dci);
    }
}


/* Handles any completion. */
static UCS_F_NOINLINE void uct_dcx_tx_handle_any(uct_dcx_dci_set_t *set,
                                                 const struct mlx5_cqe64 *cqe)
{
    uint16_t index     = be16toh(cqe->wqe_counter);
    uct_dcx_dci_t *dci = uct_dcx_dci_find(set, uct_dcx_cqe_qpn(cqe));

    ucs_assertv(uct_dcx_txq_is_outstanding(&dci->txq, index) ||
                    (dci->state == UCT_DCX_DCI_LOST),
                "DCI 0x%x: completion of WQE %u, but outstanding are %u-%u",
                dci->txq.sq.qpn, index, dci->txq.sq.ci, dci->txq.sq.pi);

    if (uct_dcx_cqe_is_sent(cqe) && (dci->state != UCT_DCX_DCI_DRAINING) &&
        (dci->state != UCT_DCX_DCI_LOST)) {
        uct_dcx_tx_completed(set, dci, index);
    } else {
        uct_dcx_recover_take(set, dci, cqe);
    }
}


/* Returns non-zero for the usual completion: of all that was outstanding on an
 * exclusive initiator, with at most one operation to end, and without waiting
 * endpoints. */
static UCS_F_ALWAYS_INLINE int uct_dcx_tx_is_plain(const uct_dcx_dci_t *dci,
                                                   const struct mlx5_cqe64 *cqe)
{
    const uct_dcx_txq_t *txq = &dci->txq;

    return (txq->sq.qpn == uct_dcx_cqe_qpn(cqe)) && uct_dcx_cqe_is_sent(cqe) &&
           (txq->sq.last == be16toh(cqe->wqe_counter)) &&
           (dci->state == UCT_DCX_DCI_HELD) &&
           ((uint16_t)(txq->tail - txq->head) <= 1);
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle_plain(uct_dcx_queues_t *queues, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq = &dci->txq.sq;
    uct_dcx_ep_t *ep = dci->ep;
    uct_dcx_slot_t *op;

    /* The user's callback finds everything ended; the slot of the operation is
     * not reused that soon. */
    sq->ci = sq->pi;
    uct_dcx_sq_idle(sq);
    if (dci->txq.head != dci->txq.tail) {
        op = uct_dcx_txq_slot(&dci->txq, dci->txq.head++);
        ucs_assert(op->status == UCS_OK);
        if (op->done == uct_dcx_desc_done) {
            ucs_mpool_put_inline(op->buffer); /* the user is not called */
        } else {
            op->done(&dci->txq, op, UCS_OK);
            if (ucs_unlikely(dci->ep != ep)) {
                return; /* the callback destroyed it */
            }

            if (ucs_unlikely((dci->state != UCT_DCX_DCI_HELD) ||
                             !uct_dcx_txq_is_idle(&dci->txq))) {
                uct_dcx_tx_ended(&queues->dci, dci);
                return;
            }
        }
    }

    uct_dcx_tx_put(&queues->dci, dci, ep);
}


static UCS_F_ALWAYS_INLINE void uct_dcx_tx_handle(uct_dcx_queues_t *queues,
                                                  const struct mlx5_cqe64 *cqe)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(&queues->dci, uct_dcx_cqe_qpn(cqe));

    if (ucs_likely(uct_dcx_tx_is_plain(dci, cqe))) {
        uct_dcx_tx_handle_plain(queues, dci);
    } else {
        uct_dcx_tx_handle_any(&queues->dci, cqe);
    }
}


/* Handles one of several completions. Most are of WQEs with others outstanding
 * after them: the initiator is not released, and the wait queue is empty. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle_row(uct_dcx_queues_t *queues, const struct mlx5_cqe64 *cqe)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(&queues->dci, uct_dcx_cqe_qpn(cqe));
    uint16_t index     = be16toh(cqe->wqe_counter);

    if ((dci->txq.sq.qpn != uct_dcx_cqe_qpn(cqe)) ||
        !uct_dcx_cqe_is_sent(cqe) || (dci->txq.sq.last == index) ||
        (dci->state != UCT_DCX_DCI_HELD)) {
        uct_dcx_tx_handle(queues, cqe);
    } else if (uct_dcx_txq_retire(&dci->txq, index + 1) &&
               ucs_unlikely(!uct_dcx_signal_is_requested(dci, index + 1))) {
        uct_dcx_tx_ended(&queues->dci, dci);
    }
}


/* Takes more completions of a queue, after the first one was taken. */
static unsigned uct_dcx_tx_poll_cq(uct_dcx_queues_t *queues, uct_dcx_cq_t *cq)
{
    unsigned count = 1;
    const struct mlx5_cqe64 *cqe;

    while ((count < queues->dci.max_poll) &&
           ((cqe = uct_dcx_cq_next(cq)) != NULL)) {
        uct_dcx_cq_advance(cq, sizeof(*cqe));
        uct_dcx_tx_handle_row(queues, cqe);
        ++count;
    }

    uct_dcx_cq_update(cq);
    return count;
}


static UCS_F_NOINLINE unsigned uct_dcx_tx_poll_others(uct_dcx_queues_t *queues)
{
    uct_dcx_dci_set_t *set = &queues->dci;
    unsigned count         = 0;
    const struct mlx5_cqe64 *cqe;
    unsigned i;

    for (i = 1; i < set->num_groups; ++i) {
        cqe = uct_dcx_cq_next(&set->group[i].cq);
        if (cqe != NULL) {
            uct_dcx_cq_advance(&set->group[i].cq, sizeof(*cqe));
            uct_dcx_tx_handle_any(set, cqe);
            count += uct_dcx_tx_poll_cq(queues, &set->group[i].cq);
        }
    }
    return count;
}


UCS_F_NOINLINE unsigned uct_dcx_tx_todo(uct_dcx_iface_t *iface, unsigned count)
{
    uct_dcx_dci_set_t *set = &iface->super.dci;

    if (ucs_unlikely(set->fatal != 0)) {
        uct_dcx_fatal_progress(iface);
        ++count;
    }

    if (set->todo & UCT_DCX_TODO_GROUPS) {
        count += uct_dcx_tx_poll_others(&iface->super);
    }

    if (set->todo & UCT_DCX_TODO_REFILL) {
        uct_dcx_queues_refill(&iface->super);
    }

    if (set->todo & (UCT_DCX_TODO_FC | UCT_DCX_TODO_RNDV)) {
        uct_dcx_fc_progress(&iface->fc);
    }

    if (set->todo & UCT_DCX_TODO_PENDING) {
        uct_dcx_pending_serve(set);
    }

    if (set->todo & UCT_DCX_TODO_UNSIGNALED) {
        uct_dcx_signal_progress(set);
    }
    return count;
}


/* Takes more completions of all queues, after the first one was taken. */
static UCS_F_NOINLINE unsigned uct_dcx_tx_poll_more(uct_dcx_iface_t *iface)
{
    uct_dcx_queues_t *queues = &iface->super;
    unsigned count = uct_dcx_tx_poll_cq(queues, &queues->dci.group[0].cq);

    return (queues->dci.has_todo == 0) ? count : uct_dcx_tx_todo(iface, count);
}


/* Takes completions; most calls find one. */
unsigned uct_dcx_tx_poll(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uct_dcx_queues_t *queues = &iface->super;

    /* Before the callbacks: a reset reads the unread completions from here. */
    uct_dcx_cq_advance(&queues->dci.group[0].cq, sizeof(*cqe));
    uct_dcx_tx_handle(queues, cqe);
    if (uct_dcx_cq_next(&queues->dci.group[0].cq) != NULL) {
        return uct_dcx_tx_poll_more(iface);
    }

    uct_dcx_cq_update(&queues->dci.group[0].cq);
    return ucs_likely(queues->dci.has_todo == 0) ? 1 :
                                                   uct_dcx_tx_todo(iface, 1);
}
