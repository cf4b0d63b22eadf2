/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A send queue of any QP of ours: the ring (dev/dcx_sq.h), a slot for what ends
 * with each WQE, and the operations that wait for one (dcx_op.h). A DC
 * initiator is one, and so is an RC QP that is connected to itself. It knows
 * neither endpoints nor who may post. Owned by the interface's thread.
 */
#ifndef UCT_DCX_TXQ_H
#define UCT_DCX_TXQ_H

#include "dcx_op.h"
#include "uct/dcx/dev/dcx_cq.h"
#include "uct/dcx/dev/dcx_sq.h"

#include <ucs/sys/math.h>

typedef struct uct_dcx_txq  uct_dcx_txq_t;
typedef struct uct_dcx_slot uct_dcx_slot_t;


/* Ends what a WQE was posted for: frees what it held, tells the user. With an
 * error 'txq' may be NULL. */
typedef void (*uct_dcx_slot_done_t)(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                    ucs_status_t status);

/* An operation that ends with a WQE. The slots of a queue stand in a ring, in
 * the order in which they were posted. */
struct uct_dcx_slot {
    uct_dcx_slot_done_t done;     /* NULL: it has ended, others before it have
                                     not */
    uct_completion_t    *comp;
    void                *buffer;
    uint16_t            index;    /* first WQEBB of its WQE */
    int16_t             status;   /* what it ends with, whatever comes, if it
                                     is not UCS_OK */
    uint16_t            result;   /* where in 'results' of a DCI that of an
                                     atomic lands; it moves in the ring with
                                     the slot */
};

struct uct_dcx_txq {
    uct_dcx_sq_t    sq;
    uct_dcx_bf_t    own_bf; /* unless it shares one: for doorbells */
    uct_dcx_slot_t  *slots; /* as many as there are WQEBBs */
    uint16_t        head;   /* the oldest slot in use; these run freely */
    uint16_t        tail;   /* the next one */
    unsigned        turn;   /* counts resets, and returns to a pool */
    ucs_list_link_t ops;    /* that wait for a WQE, in order of their indexes */
    uct_dcx_cq_t    *cq;
    struct ibv_qp   *qp;    /* NULL: not created yet */
};

static_assert(sizeof(uct_dcx_slot_t) == 32, "is indexed: a power of two");


/* A WQE to be posted, less its segments */
typedef struct uct_dcx_post {
    uint8_t             opcode;
    uint8_t             opmod;
    uint8_t             flags;   /* of the ctrl segment: MLX5_WQE_CTRL_* */
    uint32_t            imm;     /* of SEND_IMM */
    uct_dcx_slot_done_t done;    /* NULL: nothing ends with it */
    uct_completion_t    *comp;
    void                *buffer;
} uct_dcx_post_t;


static UCS_F_ALWAYS_INLINE int uct_dcx_txq_is_idle(const uct_dcx_txq_t *txq)
{
    return txq->sq.pi == txq->sq.ci;
}


/* Returns non-zero if all that was posted has completed, and all that waited
 * for it has ended. In callbacks there may be more that is about to. */
static inline int uct_dcx_txq_has_ended(uct_dcx_txq_t *txq)
{
    return uct_dcx_txq_is_idle(txq) && (txq->head == txq->tail) &&
           ucs_list_is_empty(&txq->ops);
}


/* Returns non-zero if the WQEBB at @index was posted and has not completed. */
static inline int
uct_dcx_txq_is_outstanding(const uct_dcx_txq_t *txq, uint16_t index)
{
    return (uint16_t)(index - txq->sq.ci) < uct_dcx_sq_used(&txq->sq);
}


static UCS_F_ALWAYS_INLINE uct_dcx_slot_t *
uct_dcx_txq_slot(const uct_dcx_txq_t *txq, uint16_t number)
{
    return &txq->slots[number & txq->sq.mask];
}


/* Completes the WQE, whose segments are written, and rings the doorbell. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_txq_post(uct_dcx_txq_t *txq, const uct_dcx_wqe_t *wqe,
                 const uct_dcx_post_t *post)
{
    uct_dcx_sq_t *sq        = &txq->sq;
    uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = post->opcode,
        .opmod  = post->opmod,
        .flags  = post->flags,
        .imm    = post->imm,
        .carry  = sq->carry,
        .sender = sq->sender
    };
    uct_dcx_slot_t *slot;
    uint64_t doorbell;

    if (post->done != NULL) {
        /* there is one for each WQEBB of the ring, so one is free */
        slot        = uct_dcx_txq_slot(txq, txq->tail++);
        slot->index = wqe->index;
        slot->done  = post->done;
        slot->comp  = post->comp;
        if (!__builtin_constant_p(post->buffer == NULL) ||
            (post->buffer != NULL)) {
            slot->buffer = post->buffer; /* else it is not looked at */
        }
    }

    if (post->flags & MLX5_WQE_CTRL_CQ_UPDATE) {
        sq->signaled = wqe->index;
    }

    sq->carry = 0;
    doorbell  = uct_dcx_wqe_finish(wqe, &ctrl);
    uct_dcx_sq_push(sq, wqe->index, uct_dcx_wqe_ds_to_bb(wqe->ds), doorbell);
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_slot_end(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot, ucs_status_t status)
{
    if (ucs_unlikely(slot->status != UCS_OK)) {
        status       = (ucs_status_t)slot->status;
        slot->status = UCS_OK; /* of the next one */
    }
    slot->done(txq, slot, status);
}


/* Ends the operations that wait for no WQE from WQEBB 'until' on. Returns as
 * uct_dcx_txq_retire(). */
int uct_dcx_txq_end_ops(uct_dcx_txq_t *txq, uint16_t until);

/* All WQEs that begin before WQEBB 'until' have completed: ends them in order.
 * Returns 0 if the queue was reset or given back in a callback of the user,
 * such as by destroying the endpoint. Then everything before 'until' has ended,
 * and what is outstanding now was posted since. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_txq_retire(uct_dcx_txq_t *txq, uint16_t until)
{
    unsigned turn = txq->turn;
    uct_dcx_slot_t *slot;

    while (txq->head != txq->tail) {
        slot = uct_dcx_txq_slot(txq, txq->head);
        if (!UCS_CIRCULAR_COMPARE16(slot->index, <, until)) {
            break;
        }

        /* in the callback the user finds it ended, but its WQEBBs still in
         * use */
        txq->head++;
        uct_dcx_slot_end(txq, slot, UCS_OK);
        if (ucs_unlikely(txq->turn != turn)) {
            return 0;
        }
    }

    txq->sq.ci = until;
    return ucs_likely(ucs_list_is_empty(&txq->ops)) ||
           uct_dcx_txq_end_ops(txq, until);
}


/* Parameters of a queue */
typedef struct uct_dcx_txq_params {
    struct ibv_qp *qp;
    uct_dcx_cq_t  *cq;        /* that its send completions come to */
    uct_dcx_bf_t  *bf;        /* register that the QP has with others; NULL:
                               * has one that anybody may have */
    unsigned      max_bb;     /* WQEBBs of the longest WQE */
    unsigned      num_bb;     /* WQEBBs that 'cq' has entries for */
    uint16_t      moderation; /* WQEBBs after which a completion is requested.
                               * 0: for each WQE, and everything is checked
                               * before each, as a shared initiator needs it */
} uct_dcx_txq_params_t;

/* Takes over the send queue of a QP, in whatever state that is. Errors are
 * logged. The QP stays the caller's. */
ucs_status_t
uct_dcx_txq_init(uct_dcx_txq_t *txq, const uct_dcx_txq_params_t *params);

/* The device is off the buffers: ends all that is left with UCS_ERR_CANCELED.
 * Nobody posts meanwhile. */
void uct_dcx_txq_cancel(uct_dcx_txq_t *txq);

/* The QP is destroyed, and so is what is left. */
void uct_dcx_txq_cleanup(uct_dcx_txq_t *txq);

#endif
