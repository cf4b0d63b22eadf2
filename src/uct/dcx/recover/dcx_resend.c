/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ends the lost operations of an initiator, and has the others posted again;
 * see dcx_resend.h. Called when all posted WQEs have completed, and the queue
 * has been reset (dcx_recover.c). WQEs of other endpoints are still in the
 * ring: they are moved to its start, in order. The rules:
 *
 * - Each stream is a queue of its own; an initiator without streams has one.
 *   WQEs before its first failure have been acknowledged.
 * - The endpoint of the WQE that failed is lost.
 * - A stream sends to one target at a time, and continues with the next target
 *   when all WQEs to the last one are acknowledged (InfiniBand specification,
 *   annex on DC). So WQEs behind the failure, to another target, have not been
 *   executed; nor have WQEs to the same target, if it refused the failed WQE.
 *   Otherwise this is unknown. A put or a get can be executed twice: as it
 *   has not completed, no program may rely on its data being there, or not
 *   being there. A send or an atomic cannot, and its endpoint is lost, too.
 * - All WQEs of a lost endpoint behind the failure end with its error, as its
 *   operations end in order. All others are posted again. WQEs of a destroyed
 *   endpoint are lost if they are to the same target: no user waits for them,
 *   and they would delay others.
 * - If the first failure of a stream is a flush, another stream has stopped
 *   the whole initiator: the same holds for WQEs behind it, and for itself.
 * - A lost WQE may have carried a fence for later ones: all WQEs that are
 *   posted again carry one, and so does the next WQE.
 */
#include "dcx_resend.h"
#include "dcx_failure.h"
#include "uct/dcx/sched/dcx_ep_fail.h"


/* --- reading WQEs --------------------------------------------------------- */

static const struct mlx5_wqe_ctrl_seg *
uct_dcx_resend_ctrl(const uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci,
                    uint16_t index)
{
    return (const void *)(lost->ring + ((size_t)(index & dci->txq.sq.mask)
                                        << MLX5_SEND_WQE_SHIFT));
}


static unsigned uct_dcx_resend_num_bb(const struct mlx5_wqe_ctrl_seg *ctrl)
{
    return uct_dcx_wqe_ds_to_bb(be32toh(ctrl->qpn_ds) & 0x3f);
}


static int uct_dcx_resend_is_repeatable(const struct mlx5_wqe_ctrl_seg *ctrl)
{
    unsigned opcode = be32toh(ctrl->opmod_idx_opcode) & 0xff;

    return (opcode == MLX5_OPCODE_RDMA_WRITE) ||
           (opcode == MLX5_OPCODE_RDMA_READ) || (opcode == MLX5_OPCODE_NOP);
}


/* --- visiting WQEs -------------------------------------------------------- */

/* Visits all outstanding WQEs, in order. */
typedef struct uct_dcx_resend {
    uct_dcx_lost_t *lost;
    uct_dcx_dci_t *dci;
    uint16_t index; /* of the current WQE */
    uint16_t end;
    const struct mlx5_wqe_ctrl_seg *ctrl;
    uct_dcx_ep_t *ep;                 /* NULL: destroyed */
    const uct_dcx_failure_t *failure; /* NULL: the WQE was
                                       * acknowledged */
} uct_dcx_resend_t;


/* Visits the WQE at @index. Returns 0 if there is none. */
static int uct_dcx_resend_load(uct_dcx_resend_t *walk, uint16_t index)
{
    if (index == walk->end) {
        return 0;
    }

    walk->index   = index;
    walk->ctrl    = uct_dcx_resend_ctrl(walk->lost, walk->dci, index);
    walk->ep      = walk->lost->owners[index & walk->dci->txq.sq.mask];
    walk->failure = uct_dcx_failure_of(walk->dci, walk->ctrl);
    if ((walk->failure->status == UCS_OK) ||
        UCS_CIRCULAR_COMPARE16(index, <, walk->failure->index)) {
        walk->failure = NULL;
    }
    return 1;
}


static int uct_dcx_resend_next(uct_dcx_resend_t *walk)
{
    return uct_dcx_resend_load(walk,
                               walk->index + uct_dcx_resend_num_bb(walk->ctrl));
}


/* --- lost WQEs ------------------------------------------------------------ */

/* Returns non-zero if the WQE is to the target of its stream's failure. It is
 * that failed WQE, or behind it. */
static int uct_dcx_resend_is_to_failed(const uct_dcx_resend_t *walk)
{
    const struct mlx5_wqe_ctrl_seg *failed =
        uct_dcx_resend_ctrl(walk->lost, walk->dci, walk->failure->index);
    const uct_dcx_av_t *a = (const uct_dcx_av_t *)(walk->ctrl + 1);
    const uct_dcx_av_t *b = (const uct_dcx_av_t *)(failed + 1);

    return (a->key == b->key) && (uct_dcx_av_dctn(a) == uct_dcx_av_dctn(b));
}


/* Returns non-zero if the WQE's endpoint is lost by the failure. */
static int uct_dcx_resend_is_fatal(const uct_dcx_resend_t *walk)
{
    if ((walk->index == walk->failure->index) &&
        !uct_dcx_failure_is_flush(walk->failure)) {
        return 1;
    }

    return !uct_dcx_failure_is_refusal(walk->failure) &&
           !uct_dcx_resend_is_repeatable(walk->ctrl) &&
           uct_dcx_resend_is_to_failed(walk);
}


static int uct_dcx_resend_is_lost(const uct_dcx_resend_t *walk)
{
    return (walk->ep != NULL) ? (walk->ep->state == UCT_DCX_EP_FAILED) :
                                uct_dcx_resend_is_to_failed(walk);
}


/* --- lost operations ------------------------------------------------------ */

void uct_dcx_lost_add_ep(uct_dcx_lost_t *lost, const uct_dcx_dci_t *dci,
                         uct_dcx_ep_t *ep)
{
    if ((ep != NULL) && uct_dcx_ep_fail(ep, dci->failures[ep->stream].status)) {
        lost->eps[lost->num_eps++] = ep;
    }
}


static ucs_status_t uct_dcx_lost_status(const uct_dcx_dci_t *dci,
                                        uint16_t index)
{
    return uct_dcx_failure_of(dci, uct_dcx_sq_block(&dci->txq.sq, index))
        ->status;
}


static void uct_dcx_lost_add_slot(uct_dcx_lost_t *lost, uct_dcx_slot_t *slot,
                                  ucs_status_t status)
{
    uct_dcx_slot_t *lost_slot = &lost->slots[lost->num_slots++];

    *lost_slot   = *slot;
    slot->status = UCS_OK; /* reset for the next operation */
    if (lost_slot->status == UCS_OK) {
        lost_slot->status = status;
    }
}


static void uct_dcx_lost_add_op(uct_dcx_lost_t *lost, uct_dcx_op_t *op,
                                ucs_status_t status)
{
    ucs_list_del(&op->wqe);
    ucs_list_add_tail(&lost->ops, &op->wqe);
    op->index = 0; /* no longer of a WQE; later flushes are queued behind it */
    if (op->status == UCS_OK) {
        op->status = status;
    }
}


void uct_dcx_lost_add_all(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_t *sq = &dci->txq.sq;
    uct_dcx_op_t *op;
    uct_dcx_slot_t *slot;

    for (; dci->txq.head != dci->txq.tail; dci->txq.head++) {
        slot = uct_dcx_txq_slot(&dci->txq, dci->txq.head);
        if (slot->done != NULL) {
            uct_dcx_lost_add_slot(lost, slot,
                                  uct_dcx_lost_status(dci, slot->index));
        }
    }

    while (!ucs_list_is_empty(&dci->txq.ops)) {
        op = ucs_list_head(&dci->txq.ops, uct_dcx_op_t, wqe);
        uct_dcx_lost_add_op(lost, op, uct_dcx_lost_status(dci, op->index));
    }

    if (uct_dcx_dci_is_shared(dci)) {
        for (; sq->ci != sq->pi; sq->ci++) {
            uct_dcx_lost_add_ep(lost, dci, dci->eps[sq->ci & sq->mask]);
            dci->eps[sq->ci & sq->mask] = NULL;
        }
    }
    uct_dcx_sq_reset(sq);
}


/* --- posting again -------------------------------------------------------- */

/* Moves a slot to the end of those that are kept. It is swapped with a slot
 * that is not, so that each place of results belongs to one operation. */
static void uct_dcx_resend_keep_slot(uct_dcx_dci_t *dci, uct_dcx_slot_t *slot)
{
    uct_dcx_slot_t *to  = uct_dcx_txq_slot(&dci->txq, dci->txq.tail++);
    uct_dcx_slot_t kept = *slot;

    kept.index = dci->txq.sq.pi;
    *slot      = *to;
    *to        = kept;
}


/* Copies the WQE to the end of those that are posted again. */
static void uct_dcx_resend_keep(const uct_dcx_resend_t *walk)
{
    uct_dcx_dci_t *dci = walk->dci;
    uct_dcx_sq_t *sq   = &dci->txq.sq;
    unsigned num_bb    = uct_dcx_resend_num_bb(walk->ctrl);
    uint32_t what      = be32toh(walk->ctrl->opmod_idx_opcode);
    struct mlx5_wqe_ctrl_seg *ctrl;
    unsigned i;

    for (i = 0; i < num_bb; ++i) {
        memcpy(uct_dcx_sq_block(sq, sq->pi + i),
               uct_dcx_resend_ctrl(walk->lost, dci, walk->index + i),
               MLX5_SEND_WQE_BB);
    }

    ctrl                   = uct_dcx_sq_block(sq, sq->pi);
    ctrl->opmod_idx_opcode = htobe32((what & ~0xffff00u) |
                                     ((uint32_t)sq->pi << 8));
    ctrl->fm_ce_se         = (ctrl->fm_ce_se & ~PRM_CTRL_FM) | dci->fence;

    dci->eps[sq->pi & sq->mask] = walk->ep;
    if (walk->ep != NULL) {
        walk->ep->last = sq->pi;
    }
    sq->last     = sq->pi;
    sq->signaled = sq->pi;
    sq->pi += num_bb;
}


/* Ends operations that wait for this WQE, or lets them wait for its copy. */
static void uct_dcx_resend_ops(const uct_dcx_resend_t *walk,
                               ucs_list_link_t *ops, int is_kept)
{
    ucs_status_t status = (walk->failure == NULL) ? UCS_OK :
                                                    walk->failure->status;
    uct_dcx_op_t *op;

    while (!ucs_list_is_empty(ops)) {
        op = ucs_list_head(ops, uct_dcx_op_t, wqe);
        if (op->index != walk->index) {
            break;
        }

        if (!is_kept) {
            uct_dcx_lost_add_op(walk->lost, op, status);
        } else {
            op->index = walk->dci->txq.sq.pi;
            ucs_list_del(&op->wqe);
            ucs_list_add_tail(&walk->dci->txq.ops, &op->wqe);
        }
    }
}


/* Handles one WQE; @slot is its operation, or NULL. */
static void uct_dcx_resend_wqe(const uct_dcx_resend_t *walk,
                               uct_dcx_slot_t *slot, ucs_list_link_t *ops)
{
    int is_kept = (walk->failure != NULL) && !uct_dcx_resend_is_lost(walk);

    uct_dcx_resend_ops(walk, ops, is_kept);
    if (is_kept) {
        if (slot != NULL) {
            uct_dcx_resend_keep_slot(walk->dci, slot);
        }
        uct_dcx_resend_keep(walk);
    } else if ((slot != NULL) && (slot->done != NULL)) {
        uct_dcx_lost_add_slot(walk->lost, slot, walk->failure->status);
    }
}


static void uct_dcx_resend_all(uct_dcx_resend_t *walk, uint16_t begin)
{
    uct_dcx_dci_t *dci = walk->dci;
    uint16_t place     = dci->txq.head;
    uint16_t tail      = dci->txq.tail;
    UCS_LIST_HEAD(ops);
    uct_dcx_slot_t *slot;
    int more;

    ucs_list_splice_tail(&ops, &dci->txq.ops);
    ucs_list_head_init(&dci->txq.ops);
    dci->txq.tail = dci->txq.head;
    for (more = uct_dcx_resend_load(walk, begin); more;
         more = uct_dcx_resend_next(walk)) {
        slot = NULL;
        if ((place != tail) &&
            (uct_dcx_txq_slot(&dci->txq, place)->index == walk->index)) {
            slot = uct_dcx_txq_slot(&dci->txq, place++);
        }

        uct_dcx_resend_wqe(walk, slot, &ops);
    }
    ucs_assert(ucs_list_is_empty(&ops));
}


void uct_dcx_resend(uct_dcx_lost_t *lost, uct_dcx_dci_t *dci)
{
    unsigned num_bb       = dci->txq.sq.mask + 1;
    uint16_t begin        = dci->txq.sq.ci;
    uct_dcx_resend_t walk = {.lost = lost, .dci = dci, .end = dci->txq.sq.pi};
    int more;

    memcpy(lost->ring, dci->txq.sq.start, num_bb * MLX5_SEND_WQE_BB);
    memcpy(lost->owners, dci->eps, num_bb * sizeof(*dci->eps));

    for (more = uct_dcx_resend_load(&walk, begin); more;
         more = uct_dcx_resend_next(&walk)) {
        if ((walk.failure != NULL) && uct_dcx_resend_is_fatal(&walk)) {
            uct_dcx_lost_add_ep(lost, dci, walk.ep);
        }
    }

    uct_dcx_sq_reset(&dci->txq.sq);
    memset(dci->eps, 0, num_bb * sizeof(*dci->eps));
    uct_dcx_resend_all(&walk, begin);
}
