/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shared initiator has drained after an error: what is lost, and what is
 * posted again; see dcx_dci_lost.h. Innocent endpoints have operations there
 * too. Their WQEs are still in the ring, are brought together at its start, and
 * go out after the queue has been restarted. Each send and atomic is executed
 * exactly once; a put or get to the target of the failed one may be twice:
 *
 * - Each stream is a queue of its own; an initiator without streams has one.
 *   What stands before the first WQE of a stream that failed, or was flushed,
 *   has been acknowledged, and has ended with success.
 * - A stream sends to one target at a time, and turns to the next one when all
 *   that it has sent to the last one is acknowledged (InfiniBand specification,
 *   annex on DC; softhca executes one WQE after the other). So what stands
 *   behind the first WQE to another target has not begun, and is posted again.
 * - Up to there WQEs are to one target. If the first failed, those of its
 *   endpoint end with the error. One of another endpoint to the same target may
 *   have begun: not if the target refused the failed one, as it then executes
 *   nothing that came behind; nor if the failed one was to send what we could
 *   not read, as packets go out in order. Else, a put or get is posted again:
 *   as it has not completed, nobody may rely on what it writes being there, or
 *   not being there. A send or an atomic cannot be, and takes its endpoint with
 *   it; it is that of a peer that did not answer.
 * - If the first was flushed, another stream has taken the whole initiator to
 *   the error state, and the same holds for it and those behind it. Devices
 *   with room for an error in each stream (dcx_dci.c) do not do that.
 * - Operations of one endpoint end in order: all that stand behind a lost one
 *   are lost.
 * - A fence is carried by the WQE behind it, whosever that is. If that is lost,
 *   those behind it on its stream have the fence.
 */
#include "dcx_dci_drain.h"
#include "dcx_tx.h"

#include <ucs/debug/memtrack_int.h>


/* What the ring was like before. */
typedef struct uct_dcx_sort {
    uint8_t           *blocks;
    uct_dcx_ep_t      **eps;
    uint16_t          mask;
    uint16_t          end;
    uct_dcx_failure_t *failures; /* of each stream */
} uct_dcx_sort_t;


/* --- WQEs that are read back ---------------------------------------------- */

static const struct mlx5_wqe_ctrl_seg *
uct_dcx_sort_ctrl(const uct_dcx_sort_t *sort, uint16_t index)
{
    return (const void*)(sort->blocks + ((size_t)(index & sort->mask)
                                         << MLX5_SEND_WQE_SHIFT));
}


static unsigned uct_dcx_sort_num_bb(const struct mlx5_wqe_ctrl_seg *ctrl)
{
    return uct_dcx_wqe_ds_to_bb(be32toh(ctrl->qpn_ds) & 0x3f);
}


static uct_dcx_ep_t *
uct_dcx_sort_ep(const uct_dcx_sort_t *sort, uint16_t index)
{
    return sort->eps[index & sort->mask];
}


/* What became of the WQE at 'index'; NULL: it was acknowledged. */
static uct_dcx_failure_t *
uct_dcx_sort_failure(const uct_dcx_sort_t *sort, uint16_t index)
{
    return uct_dcx_drain_failure(sort->failures, uct_dcx_sort_ctrl(sort, index),
                                 index);
}


/* Whether the WQEs at both are to the same target */
static int uct_dcx_sort_is_same_target(const uct_dcx_sort_t *sort,
                                       uint16_t index_a, uint16_t index_b)
{
    const uct_dcx_av_t *a =
            (const uct_dcx_av_t*)(uct_dcx_sort_ctrl(sort, index_a) + 1);
    const uct_dcx_av_t *b =
            (const uct_dcx_av_t*)(uct_dcx_sort_ctrl(sort, index_b) + 1);

    return (a->key == b->key) &&
           !((a->dqp_dct ^ b->dqp_dct) & htobe32(0xffffff));
}


static unsigned uct_dcx_sort_opcode(const uct_dcx_sort_t *sort, uint16_t index)
{
    return be32toh(uct_dcx_sort_ctrl(sort, index)->opmod_idx_opcode) & 0xff;
}


static int
uct_dcx_sort_is_repeatable(const uct_dcx_sort_t *sort, uint16_t index)
{
    unsigned opcode = uct_dcx_sort_opcode(sort, index);

    return (opcode == MLX5_OPCODE_RDMA_WRITE) ||
           (opcode == MLX5_OPCODE_RDMA_READ) || (opcode == MLX5_OPCODE_NOP);
}


/* Whether nothing behind the failed WQE has been executed */
static int uct_dcx_sort_is_end(const uct_dcx_sort_t *sort,
                               const uct_dcx_failure_t *failure)
{
    unsigned opcode = uct_dcx_sort_opcode(sort, failure->index);

    return uct_dcx_failure_is_refusal(failure) ||
           (uct_dcx_failure_is_local(failure) &&
            ((opcode == MLX5_OPCODE_SEND) ||
             (opcode == MLX5_OPCODE_RDMA_WRITE)));
}


/* --- who is lost ---------------------------------------------------------- */

/* Whether the WQE at 'index' takes its endpoint with it */
static int uct_dcx_sort_is_fatal(const uct_dcx_sort_t *sort,
                                 uct_dcx_failure_t *failure, uint16_t index)
{
    if ((index == failure->index) && !uct_dcx_failure_is_flush(failure)) {
        failure->may_follow = !uct_dcx_sort_is_end(sort, failure);
        return 1;
    }

    if (index == failure->index) {
        failure->may_follow = 1;
    } else if (!uct_dcx_sort_is_same_target(sort, index, failure->index)) {
        failure->may_follow = 0;
    }
    return failure->may_follow && !uct_dcx_sort_is_repeatable(sort, index);
}


static void uct_dcx_sort_find_eps(const uct_dcx_sort_t *sort,
                                  uct_dcx_lost_t *lost, uint16_t index)
{
    uct_dcx_failure_t *failure;
    uct_dcx_ep_t *ep;

    for (; index != sort->end;
         index += uct_dcx_sort_num_bb(uct_dcx_sort_ctrl(sort, index))) {
        ep      = uct_dcx_sort_ep(sort, index);
        failure = uct_dcx_sort_failure(sort, index);
        if ((failure != NULL) && uct_dcx_sort_is_fatal(sort, failure, index) &&
            (ep != NULL) && !(ep->flags & UCT_DCX_EP_FLAG_LOST)) {
            ep->flags |= UCT_DCX_EP_FLAG_LOST;
            uct_dcx_lost_add_ep(lost, ep, failure);
        }
    }
}


/* Whether the WQE at 'index', with operation 'op' if it has one, is lost. What
 * destroyed endpoints have left goes on if it is to another target, and not
 * from memory of the user. */
static int uct_dcx_sort_is_lost(const uct_dcx_sort_t *sort,
                                const uct_dcx_failure_t *failure,
                                uint16_t index, const uct_dcx_op_t *op)
{
    const uct_dcx_ep_t *ep = uct_dcx_sort_ep(sort, index);

    if (ep != NULL) {
        return ep->flags & UCT_DCX_EP_FLAG_LOST;
    }

    return ((op != NULL) && (op->done == uct_dcx_tx_done_comp)) ||
           (uct_dcx_sort_is_same_target(sort, index, failure->index) &&
            !(uct_dcx_failure_is_flush(failure) &&
              uct_dcx_sort_is_repeatable(sort, index)));
}


/* --- what is taken, and what is left -------------------------------------- */

/* Brings an operation to the end of those that are kept. It changes places with
 * one that is out: each place of results stays that of one operation. */
static void uct_dcx_sort_keep_op(uct_dcx_dci_t *dci, uct_dcx_op_t *op)
{
    uct_dcx_op_t *to  = uct_dcx_dci_op(dci, dci->op_tail++);
    uct_dcx_op_t kept = *op;

    *op = *to;
    *to = kept;
}


/* A WQE is lost, but not its fence. */
static void uct_dcx_sort_pass_fence(const uct_dcx_sort_t *sort,
                                    uct_dcx_dci_t *dci, uint16_t index)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = uct_dcx_sort_ctrl(sort, index);

    if (ctrl->fm_ce_se & MLX5_WQE_CTRL_FENCE) {
        uct_dcx_dci_fence(dci, be16toh(ctrl->dci_stream_channel_id));
    }
}


/* Copies a WQE to the end of what is posted again. A fence that waits for one
 * to carry it is carried by all of the stream from here on. */
static void uct_dcx_sort_keep(const uct_dcx_sort_t *sort, uct_dcx_dci_t *dci,
                              uct_dcx_op_t *op, uint16_t index)
{
    const struct mlx5_wqe_ctrl_seg *old = uct_dcx_sort_ctrl(sort, index);
    uct_dcx_ep_t *ep                    = uct_dcx_sort_ep(sort, index);
    unsigned num_bb                     = uct_dcx_sort_num_bb(old);
    uct_dcx_sq_t *sq                    = &dci->sq;
    uint32_t what                       = be32toh(old->opmod_idx_opcode);
    uint16_t stream                     = be16toh(old->dci_stream_channel_id);
    struct mlx5_wqe_ctrl_seg *ctrl;
    unsigned i;

    for (i = 0; i < num_bb; ++i) {
        memcpy(uct_dcx_sq_block(sq, sq->pi + i),
               uct_dcx_sort_ctrl(sort, index + i), MLX5_SEND_WQE_BB);
    }

    ctrl                   = uct_dcx_sq_block(sq, sq->pi);
    ctrl->opmod_idx_opcode = htobe32((what & ~0xffff00u) |
                                     ((uint32_t)sq->pi << 8));
    ctrl->fm_ce_se        |= MLX5_WQE_CTRL_CQ_UPDATE |
                             (dci->streams[stream] & MLX5_WQE_CTRL_FENCE);

    dci->eps[sq->pi & sq->mask] = ep;
    if (ep != NULL) {
        ep->last = sq->pi;
    }
    if (op != NULL) {
        op->index = sq->pi;
        uct_dcx_sort_keep_op(dci, op);
    }
    sq->last = sq->pi;
    sq->pi  += num_bb;
}


/* Where flushes go that wait for a WQE: they end with 'status', or wait for
 * what is posted again. */
static void uct_dcx_sort_flushes(uct_dcx_dci_t *dci, uct_dcx_lost_t *lost,
                                 ucs_list_link_t *flushes, uint16_t index,
                                 ucs_status_t status)
{
    uct_dcx_flush_t *flush;

    while (!ucs_list_is_empty(flushes)) {
        flush = ucs_list_head(flushes, uct_dcx_flush_t, list);
        if (flush->index != index) {
            break;
        }

        if (status != UCS_INPROGRESS) {
            uct_dcx_lost_add_flush(lost, flush, status);
            continue;
        }

        flush->index = dci->sq.pi;
        ucs_list_del(&flush->list);
        ucs_list_add_tail(&dci->flushes, &flush->list);
    }
}


/* One WQE, with its operation or NULL. Returns how it ends, UCS_INPROGRESS if
 * it is posted again. */
static ucs_status_t
uct_dcx_sort_wqe(const uct_dcx_sort_t *sort, const uct_dcx_op_t *op,
                 uint16_t index)
{
    const uct_dcx_failure_t *failure = uct_dcx_sort_failure(sort, index);

    if (failure == NULL) {
        return UCS_OK;
    }

    return uct_dcx_sort_is_lost(sort, failure, index, op) ? failure->status :
                                                            UCS_INPROGRESS;
}


static void uct_dcx_sort_all(const uct_dcx_sort_t *sort, uct_dcx_lost_t *lost,
                             uct_dcx_dci_t *dci, uint16_t index)
{
    uint16_t place = dci->op_head;
    uint16_t tail  = dci->op_tail;
    UCS_LIST_HEAD(flushes);
    ucs_status_t status;
    uct_dcx_op_t *op;

    ucs_list_splice_tail(&flushes, &dci->flushes);
    ucs_list_head_init(&dci->flushes);
    dci->op_tail = dci->op_head;

    for (; index != sort->end;
         index += uct_dcx_sort_num_bb(uct_dcx_sort_ctrl(sort, index))) {
        op = uct_dcx_dci_op(dci, place);
        if ((place == tail) || (op->index != index)) {
            op = NULL;
        } else {
            ++place;
        }

        status = uct_dcx_sort_wqe(sort, op, index);
        uct_dcx_sort_flushes(dci, lost, &flushes, index, status);
        if (status == UCS_INPROGRESS) {
            uct_dcx_sort_keep(sort, dci, op, index);
            continue;
        }

        uct_dcx_sort_pass_fence(sort, dci, index);
        if ((op != NULL) && (op->done != NULL)) {
            uct_dcx_lost_add_op(lost, op, uct_dcx_sort_ep(sort, index),
                                status);
            op->canceled = 0;
        }
    }
    ucs_assert(ucs_list_is_empty(&flushes));
}


void uct_dcx_lost_sort(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                       uct_dcx_failure_t *failures)
{
    unsigned num_bb     = dci->sq.mask + 1;
    uint16_t index      = dci->sq.ci;
    uct_dcx_sort_t sort = {
        .blocks   = uct_dcx_lost_alloc(num_bb, MLX5_SEND_WQE_BB),
        .eps      = uct_dcx_lost_alloc(num_bb, sizeof(*sort.eps)),
        .mask     = dci->sq.mask,
        .end      = dci->sq.pi,
        .failures = failures
    };
    unsigned i;

    memcpy(sort.blocks, dci->sq.start, num_bb * MLX5_SEND_WQE_BB);
    memcpy(sort.eps, dci->eps, num_bb * sizeof(*sort.eps));

    uct_dcx_sort_find_eps(&sort, lost, index);
    uct_dcx_sq_reset(&dci->sq);
    memset(dci->eps, 0, num_bb * sizeof(*dci->eps));
    uct_dcx_sort_all(&sort, lost, dci, index);
    for (i = 0; i < lost->num_eps; ++i) {
        lost->eps[i].ep->flags &= ~UCT_DCX_EP_FLAG_LOST;
    }

    ucs_free(sort.eps);
    ucs_free(sort.blocks);
}
