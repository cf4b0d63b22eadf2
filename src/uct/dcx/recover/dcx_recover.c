/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Recovers an initiator that fails; see dcx_recover.h.
 *
 * 1. An error completion says that the queue, or one stream of it, has
 *    stopped. WQEs before it have been acknowledged, and end.
 * 2. A shared initiator drains: no endpoint posts on it. The device executes
 *    the WQEs of other streams and flushes the rest (PRM, "QP error state";
 *    mlx5dv_dci_stream_id_reset(3)), with a completion for each WQE, which
 *    says if it was executed. Acknowledged WQEs end. On an exclusive one
 *    all WQEs behind the failure are lost, and nothing is waited for.
 * 3. The QP is reset, so that the device does not use the queue any longer.
 *    Lost WQEs are removed, the others are posted again (dcx_resend.c).
 * 4. Errors are reported to the user: first of operations, in order, then of
 *    endpoints. The initiator works already, so callbacks may do anything.
 *
 * If the device fails in step 3, the initiator is lost: no endpoint gets it any
 * longer, and the endpoints of a shared one fail.
 *
 * If the endpoint of an exclusive initiator is destroyed while the user waits
 * for outstanding operations, the initiator is reset without an error. The
 * operations end before it returns to the pool, directly from the ring. So this
 * does not use set->lost, which recovery may be reporting from at that time.
 */
#include "dcx_recover.h"
#include "dcx_failure.h"
#include "uct/dcx/queue/dcx_desc.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/sched/dcx_ep_fail.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/sched/dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* --- memory --------------------------------------------------------------- */

ucs_status_t uct_dcx_recover_init(uct_dcx_dci_set_t *set)
{
    size_t num_bb = set->params.num_bb;
    uct_dcx_lost_t *lost;

    lost = ucs_calloc(1,
                      sizeof(*lost) +
                          num_bb * (sizeof(*lost->slots) + sizeof(*lost->eps) +
                                    sizeof(*lost->owners) + MLX5_SEND_WQE_BB),
                      "uct_dcx_lost");
    if (lost == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_list_head_init(&lost->ops);
    lost->slots  = (uct_dcx_slot_t *)(lost + 1);
    lost->eps    = (uct_dcx_ep_t **)(lost->slots + num_bb);
    lost->owners = lost->eps + num_bb;
    lost->ring   = (uint8_t *)(lost->owners + num_bb);
    set->lost    = lost;
    return UCS_OK;
}


void uct_dcx_recover_cleanup(uct_dcx_dci_set_t *set)
{
    ucs_free(set->lost);
}


/* --- acknowledged WQEs ---------------------------------------------------- */

static uct_dcx_op_t *uct_dcx_recover_find_op(uct_dcx_dci_t *dci, uint16_t index)
{
    uct_dcx_op_t *op;

    ucs_list_for_each (op, &dci->txq.ops, wqe) {
        if (op->index == index) {
            return op;
        }
    }
    return NULL;
}


/* Ends the acknowledged WQE at @index. In a callback the user may destroy
 * endpoints, or cancel them, but cannot post. */
static void uct_dcx_recover_acknowledged(uct_dcx_dci_t *dci, uint16_t index)
{
    uct_dcx_slot_t *slot, ended;
    uct_dcx_op_t *op;
    uint16_t number;

    for (number = dci->txq.head; number != dci->txq.tail; ++number) {
        slot = uct_dcx_txq_slot(&dci->txq, number);
        if (slot->index == index) {
            ended        = *slot;
            slot->done   = NULL;
            slot->status = UCS_OK;
            uct_dcx_slot_end(&dci->txq, &ended, UCS_OK);
            break;
        }
    }

    while ((op = uct_dcx_recover_find_op(dci, index)) != NULL) {
        uct_dcx_op_wqe_done(op, UCS_OK);
    }
}


/* --- after the last completion -------------------------------------------- */

static const uct_dcx_syndrome_t uct_dcx_recover_unusable = {
    UCS_ERR_IO_ERROR,
    "the DCI is no longer used",
    "the device failed to reset the DCI",
};

static const uct_dcx_syndrome_t uct_dcx_recover_silent = {
    UCS_ERR_IO_ERROR,
    "no completion",
    "the device, or a queue of it, has failed; this operation may have arrived",
};


/* Sets the failure of the streams that have none. */
static void uct_dcx_recover_fail_streams(const uct_dcx_dci_set_t *set,
                                         uct_dcx_dci_t *dci,
                                         const uct_dcx_syndrome_t *meaning)
{
    const uct_dcx_failure_t failure = {
        .status   = meaning->status,
        .meaning  = meaning,
        .syndrome = MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
    };
    unsigned i;

    for (i = 0; i < set->pool.num_streams; ++i) {
        if (dci->failures[i].status == UCS_OK) {
            dci->failures[i] = failure;
        }
    }
}


/* Marks an initiator as LOST. Streams without a failure get one. */
static void uct_dcx_recover_retire(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_tx_set_state(dci, UCT_DCX_DCI_LOST);
    uct_dcx_pending_set_ready(set, dci); /* pending requests get the error when
                                          * they are called */
    set->num_lost++;
    if (uct_dcx_dci_is_shared(dci)) {
        uct_dcx_recover_fail_streams(set, dci, &uct_dcx_recover_unusable);
    }
}


/* Resets the queue, so that the device does not use its memory any longer, and
 * makes the initiator work again, or LOST. Goes through the error state: some
 * devices cannot reset a queue that works. Returns 0 if the reset fails. */
static int uct_dcx_recover_reset(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

    ucs_debug("%s: DCI 0x%x was reset, %u WQEBBs are outstanding",
              set->port->name, dci->txq.sq.qpn, uct_dcx_sq_used(&dci->txq.sq));
    if ((uct_dcx_dci_modify(dci, &error, 0) != 0) ||
        (uct_dcx_dci_modify(dci, &reset, 0) != 0)) {
        ucs_error("%s: failed to reset DCI 0x%x: %m", set->port->name,
                  dci->txq.sq.qpn);
        return 0;
    }

    uct_dcx_cq_remove(dci->txq.cq, dci->txq.sq.qpn);
    if (uct_dcx_dci_connect(set, dci) != UCS_OK) {
        uct_dcx_recover_retire(set, dci);
    }
    return 1;
}


/* Takes an exclusive initiator away from its endpoint. */
static void uct_dcx_recover_part(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_ep_t *ep = dci->ep;

    if (ep != NULL) {
        set->lost->ep = ep;
        uct_dcx_tx_part(dci, ep);
        uct_dcx_pending_lost_dci(set, ep, dci);
        uct_dcx_lost_add_ep(set->lost, dci, ep);
    }
}


/* Rings the doorbell for all WQEs in the queue. */
static void uct_dcx_recover_ring(uct_dcx_sq_t *sq)
{
    uint64_t doorbell;

    if (sq->pi != sq->ci) {
        memcpy(&doorbell, uct_dcx_sq_block(sq, sq->last), sizeof(doorbell));
        uct_dcx_sq_ring(sq, sq->last, sq->pi - sq->last, doorbell);
    }
}


/* Ends lost operations. A callback may destroy the endpoint, which ends the
 * others meanwhile. */
static void uct_dcx_recover_end_ops(uct_dcx_lost_t *lost)
{
    while (lost->next < lost->num_slots) {
        uct_dcx_slot_end(NULL, &lost->slots[lost->next++], UCS_OK);
    }

    while (!ucs_list_is_empty(&lost->ops)) {
        uct_dcx_op_wqe_done(ucs_list_head(&lost->ops, uct_dcx_op_t, wqe),
                            UCS_OK);
    }
}


int uct_dcx_recover_is_ending(const uct_dcx_dci_set_t *set)
{
    return (set->lost->next < set->lost->num_slots) ||
           !ucs_list_is_empty(&set->lost->ops);
}


ucs_status_t uct_dcx_recover_flush(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep,
                                   uct_completion_t *comp)
{
    return uct_dcx_recover_is_ending(set) ?
               uct_dcx_op_flush(&set->ops, ep, &set->lost->ops, 0, comp) :
               UCS_OK;
}


static void uct_dcx_recover_report(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_lost_t *lost = set->lost;
    const uct_dcx_failure_t *failure;
    unsigned i;

    uct_dcx_recover_end_ops(lost);
    lost->num_slots = 0;
    lost->next      = 0;
    lost->ep        = NULL;
    for (i = 0; i < lost->num_eps; ++i) {
        if (lost->eps[i] == NULL) {
            continue;
        }

        failure = &dci->failures[lost->eps[i]->stream];
        uct_dcx_op_purge(&set->ops, lost->eps[i], failure->status);
        if (lost->eps[i] != NULL) { /* not destroyed by the purge */
            uct_dcx_failure_report(failure, dci, lost->eps[i]);
        }
    }
    lost->num_eps = 0;
}


/* DRAINING -> OPEN or WAITQ: a shared initiator works again. */
static void uct_dcx_recover_reopen(uct_dcx_dci_t *dci)
{
    uct_dcx_tx_set_state(dci, ucs_arbiter_is_empty(&dci->waitq) ?
                                  UCT_DCX_DCI_OPEN :
                                  UCT_DCX_DCI_WAITQ);
}


static void uct_dcx_recover_end(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    dci->txq.turn++;
    uct_dcx_pending_dci_available(set, dci);
    uct_dcx_tx_release(set, dci);
    uct_dcx_recover_report(set, dci);
}


static void uct_dcx_recover_finish(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_lost_t *lost = set->lost;
    int is_shared        = uct_dcx_dci_is_shared(dci);

    ucs_assert((lost->num_slots == 0) && (lost->num_eps == 0));
    if (!uct_dcx_recover_reset(set, dci)) {
        uct_dcx_recover_retire(set, dci);
    }

    uct_dcx_recover_part(set, dci);
    if (is_shared && (dci->state != UCT_DCX_DCI_LOST)) {
        uct_dcx_recover_reopen(dci);
        uct_dcx_resend(lost, dci);
        uct_dcx_dci_fence_all(dci, set->pool.num_streams);
        uct_dcx_recover_ring(&dci->txq.sq);
    } else {
        uct_dcx_lost_add_all(lost, dci);
    }
    uct_dcx_recover_end(set, dci);
}


/* --- from the first completion to the last -------------------------------- */

/* Begins recovery. Returns 0 if a callback has reset the queue, by destroying
 * the endpoint. Nothing else can return the initiator to the pool, as this WQE
 * is still outstanding. */
static int uct_dcx_recover_begin(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                                 uint16_t index)
{
    if (!uct_dcx_txq_retire(&dci->txq, index)) {
        return 0;
    }

    ucs_debug("%s: DCI 0x%x has failed", set->port->name, dci->txq.sq.qpn);
    if (uct_dcx_dci_is_shared(dci)) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_DRAINING);
    }

    memset(dci->failures, 0, set->pool.num_streams * sizeof(*dci->failures));
    return 1;
}


void uct_dcx_recover_take(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                          const struct mlx5_cqe64 *cqe)
{
    uint16_t index = be16toh(cqe->wqe_counter);
    uct_dcx_failure_t *failure;

    if (dci->state == UCT_DCX_DCI_LOST) {
        return;
    }

    if ((dci->state != UCT_DCX_DCI_DRAINING) &&
        !uct_dcx_recover_begin(set, dci, index)) {
        return;
    }

    failure = uct_dcx_failure_of(dci, uct_dcx_sq_block(&dci->txq.sq, index));
    if (uct_dcx_cqe_is_sent(cqe)) {
        uct_dcx_recover_acknowledged(dci, index);
    } else if (failure->status == UCS_OK) {
        uct_dcx_failure_parse(failure, set->port, dci, cqe);
    }

    if (!uct_dcx_dci_is_shared(dci) || (index == dci->txq.sq.last)) {
        uct_dcx_recover_finish(set, dci);
    }
}


/* --- without completions -------------------------------------------------- */

/* Gives each stream a failure, as if all WQEs had been flushed. */
static void uct_dcx_recover_begin_silent(uct_dcx_dci_set_t *set,
                                         uct_dcx_dci_t *dci)
{
    if (dci->state != UCT_DCX_DCI_DRAINING) {
        memset(dci->failures, 0,
               set->pool.num_streams * sizeof(*dci->failures));
    }
    uct_dcx_recover_fail_streams(set, dci, &uct_dcx_recover_silent);
}


/* Ends all that was outstanding with the failures of its streams. */
static void uct_dcx_recover_end_silent(uct_dcx_dci_set_t *set,
                                       uct_dcx_dci_t *dci)
{
    uct_dcx_recover_part(set, dci);
    uct_dcx_lost_add_all(set->lost, dci);
    uct_dcx_recover_end(set, dci);
}


int uct_dcx_recover_fatal(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    uct_dcx_recover_begin_silent(set, dci); /* also for recover_close() */
    if (!uct_dcx_recover_reset(set, dci) || (dci->state == UCT_DCX_DCI_LOST)) {
        return 0;
    }

    if (dci->state == UCT_DCX_DCI_IDLE) {
        uct_dcx_sq_reset(&dci->txq.sq);
        return 1;
    }

    if (uct_dcx_dci_is_shared(dci)) {
        uct_dcx_tx_set_state(dci, UCT_DCX_DCI_DRAINING);
        uct_dcx_recover_reopen(dci);
    }
    uct_dcx_recover_end_silent(set, dci);
    return 1;
}


/* Stops an initiator; a device that has failed as a whole refuses commands. */
static void uct_dcx_recover_stop(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

    (void)uct_dcx_dci_modify(dci, &error, 0);
    (void)uct_dcx_dci_modify(dci, &reset, 0);
    uct_dcx_cq_remove(dci->txq.cq, dci->txq.sq.qpn);
    uct_dcx_recover_begin_silent(set, dci);
    uct_dcx_recover_retire(set, dci);
}


void uct_dcx_recover_close(uct_dcx_dci_set_t *set)
{
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        if (dci->state != UCT_DCX_DCI_LOST) {
            uct_dcx_recover_stop(set, dci);
        }
    }

    uct_dcx_pool_close(&set->pool);
    set->is_short = 1;
    set->num_lost = set->pool.num_dci;

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_recover_end_silent(set, &set->dci[set->created[i]]);
    }
}


void uct_dcx_recover_close_ep(uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    uct_dcx_lost_t *lost   = set->lost;

    if (!uct_dcx_ep_fail(ep, UCS_ERR_IO_ERROR)) {
        return;
    }

    lost->eps[0]  = ep;
    lost->num_eps = 1;
    uct_dcx_op_purge(&set->ops, ep, UCS_ERR_IO_ERROR);
    if (lost->eps[0] != NULL) { /* not destroyed by the purge */
        uct_dcx_failure_report_closed(ep);
    }
    lost->num_eps = 0;
}


/* --- destroyed endpoints -------------------------------------------------- */

/* Removes a destroyed endpoint: its error handler will not be called, and its
 * own lost operations end now. */
static void uct_dcx_recover_forget(uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < lost->num_eps; ++i) {
        if (lost->eps[i] == ep) {
            lost->eps[i] = NULL;
        }
    }

    if (lost->ep == ep) {
        uct_dcx_recover_end_ops(lost);
    }
}


/* Stops the device from using an exclusive initiator's WQEs, even if the peer
 * does not answer. Returns 0 if it may still use them: then the flushed NOP at
 * the end reports that the initiator is in error. */
static int uct_dcx_recover_abort(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci)
{
    if (!uct_dcx_txq_is_idle(&dci->txq)) {
        if ((dci->state != UCT_DCX_DCI_LOST) && /* it was stopped before */
            !uct_dcx_recover_reset(set, dci)) {
            uct_dcx_signal_post_nop(dci);
            return 0;
        }
        uct_dcx_sq_reset(&dci->txq.sq);
    }
    return 1;
}


/* Returns non-zero if any outstanding WQE of @ep needs a completion or uses
 * user memory. Otherwise all of them may be executed later. */
static int uct_dcx_recover_awaits(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    const uct_dcx_slot_t *slot;
    uint16_t number;

    for (number = dci->txq.head; number != dci->txq.tail; ++number) {
        slot = uct_dcx_txq_slot(&dci->txq, number);
        if ((slot->done != uct_dcx_desc_done) &&
            (slot->done != uct_dcx_ep_done_mark) &&
            (uct_dcx_dci_wqe_ep(dci, slot->index) == ep)) {
            return 1;
        }
    }
    return 0;
}


/* Returns a flush of @ep, which is being destroyed, or NULL. */
static uct_dcx_op_t *uct_dcx_recover_find_flush(ucs_list_link_t *flushes,
                                                const uct_dcx_ep_t *ep)
{
    uct_dcx_op_t *op;

    ucs_list_for_each (op, flushes, wqe) {
        if (op->ep == ep) {
            return op;
        }
    }
    return NULL;
}


/* Ends the flushes of an endpoint that is destroyed while WQEs are outstanding,
 * or lost operations are being ended: UCP expects their end in
 * uct_ep_destroy(). */
static void uct_dcx_recover_end_flushes(ucs_list_link_t *flushes,
                                        const uct_dcx_ep_t *ep)
{
    uct_dcx_op_t *op;

    while ((op = uct_dcx_recover_find_flush(flushes, ep)) != NULL) {
        uct_dcx_op_wqe_done(op, UCS_ERR_CANCELED);
    }
}


/* The initiator belongs to no endpoint while callbacks run: operations end
 * directly from the ring, even if the callbacks destroy more endpoints. */
void uct_dcx_recover_leave(uct_dcx_dci_set_t *set, uct_dcx_ep_t *ep)
{
    uint16_t index     = uct_dcx_ep_last_dci(ep);
    uct_dcx_dci_t *dci = (index != UCT_DCX_NO_DCI) ? &set->dci[index] : NULL;
    int is_stopped     = 0;

    uct_dcx_recover_forget(set->lost, ep);
    if (dci != NULL) {
        is_stopped = !uct_dcx_dci_is_shared(dci) &&
                     uct_dcx_recover_awaits(dci, ep) &&
                     uct_dcx_recover_abort(set, dci);
    }

    if (is_stopped) {
        uct_dcx_tx_part(dci, ep);
    } else if (dci != NULL) {
        uct_dcx_tx_leave(set, dci, ep);
    }

    ep->flags |= UCT_DCX_EP_FLAG_MUTED;
    uct_dcx_ep_fail(ep, UCS_ERR_CANCELED); /* in case a callback posts */
    if (is_stopped) {
        dci->txq.turn++;
        uct_dcx_txq_cancel(&dci->txq);
        uct_dcx_tx_release(set, dci);
    } else if (dci != NULL) {
        uct_dcx_recover_end_flushes(&dci->txq.ops, ep);
    }
    uct_dcx_recover_end_flushes(&set->lost->ops, ep);
}
