/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared initiator from its first completion with error until it works again.
 * An error stops one stream, the device flushes what is posted on it, and goes
 * on with the others; without streams, or with too many in error, it flushes
 * all (PRM, "QP error state"; mlx5dv_dci_stream_id_reset(3)). Until all has
 * completed, one way or the other, nothing is posted: it is known then what has
 * been executed, and nothing is on the wire when the queue is reset.
 *
 * Completions come in the order of the ring. Operations that were acknowledged
 * end when theirs is there; what becomes of the others is sorted out at the end
 * (dcx_dci_sort.c). Called by progress, with completions: the QP number in
 * dci->sq, by which progress finds it, is none as long as it drains.
 */
#include "dcx_dci_drain.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* Makes a number that no QP has, and WQEs do not show: it is above their 24
 * bits. */
#define UCT_DCX_DRAIN_QPN  UCS_BIT(24)


void uct_dcx_drain_free(uct_dcx_drain_t *drain)
{
    ucs_free(drain);
}


static uct_dcx_failure_t *
uct_dcx_drain_failure_at(const uct_dcx_dci_t *dci, uint16_t index)
{
    return uct_dcx_drain_failure(dci->drain->failures,
                                 uct_dcx_sq_block(&dci->sq, index), index);
}


/* --- what has been acknowledged ------------------------------------------- */

/* In a callback the user may destroy endpoints, or give them up, but finds no
 * room to post. */
static void uct_dcx_drain_end_op(uct_dcx_dci_t *dci, uct_dcx_op_t *op)
{
    ucs_status_t status    = op->canceled ? UCS_ERR_CANCELED : UCS_OK;
    uct_dcx_op_done_t done = op->done;

    op->canceled = 0;
    op->done     = NULL;
    done(dci, op, status);
}


static void uct_dcx_drain_end_ops(uct_dcx_dci_t *dci)
{
    uct_dcx_drain_t *drain = dci->drain;
    uct_dcx_op_t *op;

    /* it may have begun in a callback of one of several that have completed */
    if (UCS_CIRCULAR_COMPARE16(drain->place, <, dci->op_head)) {
        drain->place = dci->op_head;
    }

    while (drain->place != dci->op_tail) {
        op = uct_dcx_dci_op(dci, drain->place);
        if (!uct_dcx_drain_has_taken(dci, op->index)) {
            break;
        }

        drain->place++;
        if (uct_dcx_drain_failure_at(dci, op->index) == NULL) {
            uct_dcx_drain_end_op(dci, op);
        }
    }
}


/* The next flush of those that wait for what has been acknowledged */
static uct_dcx_flush_t *uct_dcx_drain_next_flush(const uct_dcx_dci_t *dci)
{
    uct_dcx_flush_t *flush;

    ucs_list_for_each(flush, &dci->flushes, list) {
        if (!uct_dcx_drain_has_taken(dci, flush->index)) {
            break;
        }

        if (uct_dcx_drain_failure_at(dci, flush->index) == NULL) {
            return flush;
        }
    }
    return NULL;
}


static void uct_dcx_drain_end_flushes(uct_dcx_dci_t *dci)
{
    uct_dcx_flush_t *flush;

    /* each time from the beginning: a callback may end others */
    while ((flush = uct_dcx_drain_next_flush(dci)) != NULL) {
        uct_dcx_flush_end_one(flush, UCS_OK);
    }
}


/* --- from the first to the last completion -------------------------------- */

static void uct_dcx_drain_finish(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_drain_t *drain = dci->drain;
    uct_dcx_sq_t *sq       = &dci->sq;
    uct_dcx_lost_t lost;

    dci->drain = NULL;
    sq->qpn    = dci->qp->qp_num;
    sq->room   = drain->room;
    if (ucs_arbiter_is_empty(&dci->waiters)) {
        sq->limit = sq->room;
    }

    uct_dcx_lost_init(&lost, dci);
    uct_dcx_dci_stop(iface, dci);
    uct_dcx_lost_sort(&lost, dci, drain->failures);
    uct_dcx_dci_recover(iface, dci, &lost);
    uct_dcx_drain_free(drain);
}


static void uct_dcx_drain_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                                    const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_wqe_ctrl_seg *ctrl;
    uct_dcx_failure_t *failure;
    uint16_t index;

    index   = be16toh(cqe->wqe_counter);
    ctrl    = uct_dcx_sq_block(&dci->sq, index);
    failure = &dci->drain->failures[be16toh(ctrl->dci_stream_channel_id)];
    if ((uct_dcx_cqe_opcode(cqe) != MLX5_CQE_REQ) &&
        (failure->status == UCS_OK)) {
        uct_dcx_failure_parse(failure, iface, dci, cqe);
    }

    dci->drain->next = uct_dcx_sq_end(&dci->sq, index);
    uct_dcx_drain_end_ops(dci);
    uct_dcx_drain_end_flushes(dci);
    if (dci->drain->next == dci->sq.pi) {
        uct_dcx_drain_finish(iface, dci);
    }
}


static void uct_dcx_drain_begin(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq = &dci->sq;
    uct_dcx_drain_t *drain;

    drain = ucs_calloc(1, sizeof(*drain) + (iface->dci.pool.num_streams *
                                            sizeof(drain->failures[0])),
                       "uct_dcx_drain");
    if (drain == NULL) {
        ucs_fatal("no memory to recover from a failure");
    }

    ucs_debug("%s: DCI 0x%x drains, %u blocks", uct_dcx_iface_name(iface),
              sq->qpn, uct_dcx_sq_used(sq));
    drain->next     = sq->ci;
    drain->place    = dci->op_head;
    drain->room     = sq->room;
    drain->is_fresh = 1;
    dci->drain      = drain;
    sq->qpn        |= UCT_DCX_DRAIN_QPN;
    sq->room        = -1; /* nobody has any */
    sq->limit       = -1;
}


void uct_dcx_dci_drain(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       const struct mlx5_cqe64 *cqe)
{
    if (dci->drain == NULL) { /* a callback may have begun it */
        uct_dcx_drain_begin(iface, dci);
    }
    dci->drain->is_fresh = 0;
    uct_dcx_drain_completed(iface, dci, cqe);
}


void uct_dcx_dci_drain_all(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (dci->drain == NULL) {
        uct_dcx_drain_begin(iface, dci);
    }

    if (uct_dcx_dci_modify(dci, &attr, 0) != 0) {
        ucs_error("DCI 0x%x cannot be brought to the error state: %m",
                  dci->qp->qp_num);
    }
}


static void uct_dcx_drain_take(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                               const struct mlx5_cqe64 *cqe)
{
    if (dci->drain->is_fresh) {
        dci->drain->is_fresh = 0;
        uct_dcx_dci_retire(dci, be16toh(cqe->wqe_counter));
    }
    uct_dcx_drain_completed(iface, dci, cqe);
}


void
uct_dcx_dci_drain_take(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint32_t qpn           = uct_dcx_cqe_qpn(cqe) | UCT_DCX_DRAIN_QPN;
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        if (set->dci[set->created[i]].sq.qpn == qpn) {
            uct_dcx_drain_take(iface, &set->dci[set->created[i]], cqe);
            return;
        }
    }
}
