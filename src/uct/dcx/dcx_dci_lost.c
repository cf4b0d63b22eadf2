/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator fails: what is lost, and what is posted again; see
 * dcx_dci_lost.h. On an exclusive initiator all is lost that stands behind the
 * failed operation. On a shared one, innocent endpoints have operations there
 * too; their WQEs are still in the ring, are brought together at its start, and
 * go out after the queue has been restarted. Each is executed exactly once:
 *
 * - What stands before the failed WQE has been acknowledged, and ends with
 *   success. It is not posted again.
 * - A DCI sends to one target at a time, and turns to the next one when all
 *   that it has sent to the last one is acknowledged (InfiniBand specification,
 *   annex on DC; softhca executes one WQE after the other). So what stands
 *   behind the first WQE to another target has not begun, and is posted again.
 * - Up to there WQEs are to the failed target. Those of the failed endpoint end
 *   with the error. One of another endpoint to the same target may have begun:
 *   not if the target refused the failed one, as it then executes nothing that
 *   came behind. Else, a put or get is posted again: as it has not completed,
 *   nobody may rely on what it writes being there, or not being there. A send
 *   or an atomic cannot be, and takes its endpoint with it; it is that of a
 *   peer that did not answer.
 * - Operations of one endpoint end in order: all that stand behind a lost one
 *   are lost.
 */
#include "dcx_dci_lost.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* What the ring was like before. */
typedef struct uct_dcx_lost_ring {
    const uint8_t *blocks;
    uct_dcx_ep_t  **eps;    /* NULL: exclusive */
    uint16_t      mask;
} uct_dcx_lost_ring_t;


static void *uct_dcx_lost_alloc(size_t count, size_t size)
{
    void *memory = ucs_malloc(ucs_max(count, 1) * size, "uct_dcx_lost");

    if (memory == NULL) {
        ucs_fatal("no memory to recover from a failure");
    }
    return memory;
}


void uct_dcx_lost_init(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci)
{
    unsigned num_bb = uct_dcx_sq_used(&dci->sq);

    lost->ops     = uct_dcx_lost_alloc(num_bb, sizeof(*lost->ops));
    lost->num_ops = 0;
    lost->eps     = uct_dcx_lost_alloc(num_bb, sizeof(*lost->eps));
    lost->num_eps = 0;
    ucs_list_head_init(&lost->flushes);
}


void uct_dcx_lost_cleanup(uct_dcx_lost_t *lost)
{
    ucs_free(lost->eps);
    ucs_free(lost->ops);
}


/* --- WQEs that are read back ----------------------------------------------- */

static const struct mlx5_wqe_ctrl_seg *
uct_dcx_lost_ctrl(const uct_dcx_lost_ring_t *ring, uint16_t index)
{
    return (const void*)(ring->blocks + ((size_t)(index & ring->mask)
                                         << MLX5_SEND_WQE_SHIFT));
}


static unsigned uct_dcx_lost_num_bb(const struct mlx5_wqe_ctrl_seg *ctrl)
{
    return uct_dcx_wqe_ds_to_bb(be32toh(ctrl->qpn_ds) & 0x3f);
}


static uct_dcx_ep_t *
uct_dcx_lost_ep(const uct_dcx_lost_ring_t *ring, uint16_t index)
{
    return ring->eps[index & ring->mask];
}


static int uct_dcx_lost_is_same_target(const struct mlx5_wqe_ctrl_seg *a,
                                       const struct mlx5_wqe_ctrl_seg *b)
{
    const uct_dcx_av_t *av_a = (const uct_dcx_av_t*)(a + 1);
    const uct_dcx_av_t *av_b = (const uct_dcx_av_t*)(b + 1);

    return (av_a->key == av_b->key) &&
           !((av_a->dqp_dct ^ av_b->dqp_dct) & htobe32(0xffffff));
}


static int uct_dcx_lost_is_repeatable(const struct mlx5_wqe_ctrl_seg *ctrl)
{
    unsigned opcode = be32toh(ctrl->opmod_idx_opcode) & 0xff;

    return (opcode == MLX5_OPCODE_RDMA_WRITE) ||
           (opcode == MLX5_OPCODE_RDMA_READ) || (opcode == MLX5_OPCODE_NOP);
}


/* --- who is lost ----------------------------------------------------------- */

static void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, uct_dcx_ep_t *ep)
{
    if ((ep != NULL) && !(ep->flags & UCT_DCX_EP_FLAG_LOST)) {
        ep->flags                 |= UCT_DCX_EP_FLAG_LOST;
        lost->eps[lost->num_eps++] = ep;
    }
}


/* The target answered that it did not execute the failed WQE. */
static int uct_dcx_lost_is_refused(const uct_dcx_failure_t *failure)
{
    return (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_REMOTE_OP_ERR) ||
           (failure->syndrome == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}


static void
uct_dcx_lost_find_eps(uct_dcx_lost_t *lost, const uct_dcx_lost_ring_t *ring,
                      const uct_dcx_failure_t *failure, uint16_t end)
{
    const struct mlx5_wqe_ctrl_seg *failed, *ctrl;
    uint16_t index = failure->index;

    uct_dcx_lost_add_ep(lost, uct_dcx_lost_ep(ring, index));
    if (uct_dcx_lost_is_refused(failure)) {
        return;
    }

    failed = uct_dcx_lost_ctrl(ring, index);
    for (; index != end; index += uct_dcx_lost_num_bb(ctrl)) {
        ctrl = uct_dcx_lost_ctrl(ring, index);
        if (!uct_dcx_lost_is_same_target(ctrl, failed)) {
            break;
        }

        if (!uct_dcx_lost_is_repeatable(ctrl)) {
            uct_dcx_lost_add_ep(lost, uct_dcx_lost_ep(ring, index));
        }
    }
}


/* Whether the WQE at 'index', with operation 'op' if it has one, is lost. What
 * destroyed endpoints have left goes on if it is to another target, and not
 * from memory of the user. */
static int
uct_dcx_lost_is_lost(const uct_dcx_lost_ring_t *ring, uint16_t index,
                     const uct_dcx_op_t *op, const uct_dcx_failure_t *failure)
{
    const uct_dcx_ep_t *ep = uct_dcx_lost_ep(ring, index);

    if (ep != NULL) {
        return ep->flags & UCT_DCX_EP_FLAG_LOST;
    }

    return ((op != NULL) && (op->done == uct_dcx_tx_done_comp)) ||
           uct_dcx_lost_is_same_target(uct_dcx_lost_ctrl(ring, index),
                                       uct_dcx_lost_ctrl(ring,
                                                         failure->index));
}


/* --- what is taken, and what is left --------------------------------------- */

static void uct_dcx_lost_done_nothing(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                      ucs_status_t status)
{
}


static void uct_dcx_lost_add_op(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                                uct_dcx_op_t *op, uct_dcx_ep_t *ep)
{
    uct_dcx_lost_op_t *lost_op = &lost->ops[lost->num_ops++];

    lost_op->op  = *op;
    lost_op->ep  = ep;
    op->canceled = 0;

    /* Others keep their places in the ring of operations: results of atomics
     * land there. This one ends with the WQE before it. */
    op->done  = uct_dcx_lost_done_nothing;
    op->index = dci->sq.last;
    if (dci->sq.pi == 0) {
        dci->op_head++;
    }
}


/* Copies a WQE to the end of what is posted again. */
static void uct_dcx_lost_keep(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                              const uct_dcx_lost_ring_t *ring, uint16_t index)
{
    const struct mlx5_wqe_ctrl_seg *old = uct_dcx_lost_ctrl(ring, index);
    uct_dcx_ep_t *ep                    = uct_dcx_lost_ep(ring, index);
    unsigned num_bb                     = uct_dcx_lost_num_bb(old);
    uct_dcx_sq_t *sq                    = &dci->sq;
    uint32_t what                       = be32toh(old->opmod_idx_opcode);
    struct mlx5_wqe_ctrl_seg *ctrl;
    unsigned i;

    for (i = 0; i < num_bb; ++i) {
        memcpy(uct_dcx_sq_block(sq, sq->pi + i),
               uct_dcx_lost_ctrl(ring, index + i), MLX5_SEND_WQE_BB);
    }

    ctrl                   = uct_dcx_sq_block(sq, sq->pi);
    ctrl->opmod_idx_opcode = htobe32((what & ~0xffff00u) |
                                     ((uint32_t)sq->pi << 8));
    ctrl->fm_ce_se        |= MLX5_WQE_CTRL_CQ_UPDATE;

    dci->eps[sq->pi & sq->mask] = ep;
    if (ep != NULL) {
        ep->last = sq->pi;
    }
    if (op != NULL) {
        op->index = sq->pi;
    }
    sq->last = sq->pi;
    sq->pi  += num_bb;
}


/* The flushes that wait for the WQE that began at 'index' */
static void uct_dcx_lost_move_flushes(ucs_list_link_t *from, uint16_t index,
                                      ucs_list_link_t *to, uint16_t new_index)
{
    uct_dcx_flush_t *flush;

    while (!ucs_list_is_empty(from)) {
        flush = ucs_list_head(from, uct_dcx_flush_t, list);
        if (flush->index != index) {
            break;
        }

        flush->index = new_index;
        ucs_list_del(&flush->list);
        ucs_list_add_tail(to, &flush->list);
    }
}


static void uct_dcx_lost_sort(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                              const uct_dcx_lost_ring_t *ring,
                              const uct_dcx_failure_t *failure, uint16_t end)
{
    uint16_t index = failure->index;
    uint16_t place = dci->op_head;
    UCS_LIST_HEAD(flushes);
    uct_dcx_op_t *op;

    ucs_list_splice_tail(&flushes, &dci->flushes);
    ucs_list_head_init(&dci->flushes);

    while (index != end) {
        op = uct_dcx_dci_op(dci, place);
        if ((place == dci->op_tail) || (op->index != index)) {
            op = NULL;
        } else {
            ++place;
        }

        if (uct_dcx_lost_is_lost(ring, index, op, failure)) {
            uct_dcx_lost_move_flushes(&flushes, index, &lost->flushes, index);
            if (op != NULL) {
                uct_dcx_lost_add_op(lost, dci, op,
                                    uct_dcx_lost_ep(ring, index));
            }
        } else {
            uct_dcx_lost_move_flushes(&flushes, index, &dci->flushes,
                                      dci->sq.pi);
            uct_dcx_lost_keep(dci, op, ring, index);
        }
        index += uct_dcx_lost_num_bb(uct_dcx_lost_ctrl(ring, index));
    }
}


/* All of it, in order */
static void uct_dcx_lost_take_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci)
{
    uct_dcx_lost_op_t *lost_op;

    for (; dci->op_head != dci->op_tail; dci->op_head++) {
        lost_op              = &lost->ops[lost->num_ops++];
        lost_op->op          = *uct_dcx_dci_op(dci, dci->op_head);
        lost_op->ep          = dci->ep;
        uct_dcx_dci_op(dci, dci->op_head)->canceled = 0;
    }

    if (dci->ep != NULL) {
        lost->eps[lost->num_eps++] = dci->ep;
    }
    ucs_list_splice_tail(&lost->flushes, &dci->flushes);
    ucs_list_head_init(&dci->flushes);
    uct_dcx_sq_reset(&dci->sq);
}


void uct_dcx_lost_take(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                       const uct_dcx_failure_t *failure)
{
    unsigned num_bb = dci->sq.mask + 1;
    uint16_t end    = dci->sq.pi;
    uct_dcx_lost_ring_t ring;
    uint8_t *blocks;
    unsigned i;

    if (!uct_dcx_dci_is_shared(dci)) {
        uct_dcx_lost_take_all(lost, dci);
        return;
    }

    blocks      = uct_dcx_lost_alloc(num_bb, MLX5_SEND_WQE_BB);
    ring.blocks = memcpy(blocks, dci->sq.start, num_bb * MLX5_SEND_WQE_BB);
    ring.eps    = uct_dcx_lost_alloc(num_bb, sizeof(*ring.eps));
    ring.mask   = dci->sq.mask;
    memcpy(ring.eps, dci->eps, num_bb * sizeof(*ring.eps));

    uct_dcx_lost_find_eps(lost, &ring, failure, end);
    uct_dcx_sq_reset(&dci->sq);
    memset(dci->eps, 0, num_bb * sizeof(*dci->eps));
    uct_dcx_lost_sort(lost, dci, &ring, failure, end);
    for (i = 0; i < lost->num_eps; ++i) {
        lost->eps[i]->flags &= ~UCT_DCX_EP_FLAG_LOST;
    }

    ucs_free(ring.eps);
    ucs_free(blocks);
}


/* --- those who are told ---------------------------------------------------- */

static void uct_dcx_lost_end_op(uct_dcx_lost_op_t *lost_op, uct_dcx_dci_t *dci,
                                ucs_status_t status)
{
    uct_dcx_op_t op = lost_op->op;

    /* the user may destroy the endpoint, which ends all that has not ended */
    lost_op->op.done = NULL;
    if (op.done != NULL) {
        uct_dcx_dci_end_op(dci, &op, status);
    }
}


void uct_dcx_lost_end(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci,
                      ucs_status_t status)
{
    unsigned i;

    for (i = 0; i < lost->num_ops; ++i) {
        uct_dcx_lost_end_op(&lost->ops[i], dci, status);
    }
    uct_dcx_flush_end(&lost->flushes, NULL, status);
}


int uct_dcx_lost_has(const uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < lost->num_ops; ++i) {
        if ((lost->ops[i].ep == ep) && (lost->ops[i].op.done != NULL)) {
            return 1;
        }
    }
    return 0;
}


void uct_dcx_lost_forget(uct_dcx_lost_t *lost, const uct_dcx_ep_t *ep)
{
    unsigned i;

    for (i = 0; i < lost->num_eps; ++i) {
        if (lost->eps[i] == ep) {
            lost->eps[i] = NULL;
        }
    }

    for (i = 0; i < lost->num_ops; ++i) {
        if (lost->ops[i].ep == ep) {
            uct_dcx_lost_end_op(&lost->ops[i], NULL, UCS_ERR_CANCELED);
        }
    }
    uct_dcx_flush_end(&lost->flushes, ep, UCS_ERR_CANCELED);
}
