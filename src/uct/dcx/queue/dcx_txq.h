/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queue of a DC initiator: the ring (dev/dcx_sq.h), a slot for the
 * operation that ends with each WQE, and the operations that wait for a WQE
 * (dcx_op.h). It works with any QP of verbs, and knows neither endpoints nor
 * the rules of posting. Owned by the interface's thread.
 */
#ifndef UCT_DCX_TXQ_H
#define UCT_DCX_TXQ_H

#include "dcx_op.h"
#include "uct/dcx/dev/dcx_cq.h"
#include "uct/dcx/dev/dcx_sq.h"

#include <ucs/sys/math.h>

typedef struct uct_dcx_txq uct_dcx_txq_t;
typedef struct uct_dcx_slot uct_dcx_slot_t;


/* Ends the operation of a WQE: frees its resources, calls the user's
 * completion. @txq may be NULL if @status is an error. */
typedef void (*uct_dcx_slot_done_t)(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                    ucs_status_t status);

/* An operation that ends with a WQE. The slots of a queue are a ring, in the
 * order of posting. */
struct uct_dcx_slot {
    uct_dcx_slot_done_t done; /* NULL: it has ended, but others before it
                               * have not */
    uct_completion_t *comp;
    void *buffer;
    uint16_t index;     /* first WQEBB of its WQE */
    int16_t status;     /* overrides the completion status unless
                         * UCS_OK */
    uint16_t result;    /* place of an atomic's result in @results of
                         * a DCI; it moves in the ring with the
                         * slot */
    uint8_t is_strided; /* @comp is of ep/dcx_strided.c; undefined
                         * before the endpoint is destroyed */
};

struct uct_dcx_txq {
    uct_dcx_sq_t sq;
    uct_dcx_bf_t own_bf;   /* doorbells only; unused if it shares a register */
    uct_dcx_slot_t *slots; /* one for each WQEBB */
    uint16_t head;         /* the oldest slot in use; runs freely */
    uint16_t tail;         /* the next slot; runs freely */
    unsigned turn;         /* incremented by resets, and by returns to a
                            * pool */
    ucs_list_link_t ops;   /* operations that wait for a WQE, which are
                            * flushes, ordered by index */
    uct_dcx_cq_t *cq;
    struct ibv_qp *qp; /* NULL: not created yet */
};

static_assert(sizeof(uct_dcx_slot_t) == 32, "is indexed: a power of two");


/* A WQE to be posted, except its segments */
typedef struct uct_dcx_post {
    uint8_t opcode;
    uint8_t opmod;
    uint8_t flags;            /* of the ctrl segment: MLX5_WQE_CTRL_* */
    uint32_t imm;             /* of SEND_IMM */
    uct_dcx_slot_done_t done; /* NULL: no operation ends with it */
    uct_completion_t *comp;
    void *buffer;
} uct_dcx_post_t;


static UCS_F_ALWAYS_INLINE int uct_dcx_txq_is_idle(const uct_dcx_txq_t *txq)
{
    return txq->sq.pi == txq->sq.ci;
}


/* Returns non-zero if all posted WQEs have completed, and all operations that
 * waited for them have ended. In callbacks, some may be about to end. */
static inline int uct_dcx_txq_has_ended(uct_dcx_txq_t *txq)
{
    return uct_dcx_txq_is_idle(txq) && (txq->head == txq->tail) &&
           ucs_list_is_empty(&txq->ops);
}


/* Returns non-zero if the WQEBB at @index was posted and has not completed. */
static inline int uct_dcx_txq_is_outstanding(const uct_dcx_txq_t *txq,
                                             uint16_t index)
{
    return (uint16_t)(index - txq->sq.ci) < uct_dcx_sq_used(&txq->sq);
}


static UCS_F_ALWAYS_INLINE uct_dcx_slot_t *
uct_dcx_txq_slot(const uct_dcx_txq_t *txq, uint16_t number)
{
    return &txq->slots[number & txq->sq.mask];
}


/* Adds the operation that ends with the WQE at @index, if there is one. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_txq_add(uct_dcx_txq_t *txq, uint16_t index, const uct_dcx_post_t *post)
{
    uct_dcx_slot_t *slot;

    if (post->done != NULL) {
        /* One is free, as there is one for each WQEBB of the ring. */
        slot        = uct_dcx_txq_slot(txq, txq->tail++);
        slot->index = index;
        slot->done  = post->done;
        slot->comp  = post->comp;
        if (!__builtin_constant_p(post->buffer == NULL) ||
            (post->buffer != NULL)) {
            slot->buffer = post->buffer; /* otherwise unused */
        }
    }
}


/* Finishes the WQE, whose segments are written, and hands it to the device. */
static UCS_F_ALWAYS_INLINE void uct_dcx_txq_post(uct_dcx_txq_t *txq,
                                                 const uct_dcx_wqe_t *wqe,
                                                 const uct_dcx_post_t *post)
{
    uct_dcx_sq_t *sq        = &txq->sq;
    uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = post->opcode,
        .opmod  = post->opmod,
        .flags  = post->flags,
        .imm    = post->imm,
        .carry  = sq->carry,
        .sender = sq->sender,
    };
    uint64_t doorbell;

    uct_dcx_txq_add(txq, wqe->index, post);
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
        slot->status = UCS_OK; /* reset for the next operation */
    }
    slot->done(txq, slot, status);
}


/* Ends the operations that wait for a WQE before WQEBB @until. Returns as
 * uct_dcx_txq_retire(). */
int uct_dcx_txq_end_ops(uct_dcx_txq_t *txq, uint16_t until);

/* Ends all WQEs that begin before WQEBB @until, in order; they have completed.
 * Returns 0 if a callback of the user has reset the queue or returned it to the
 * pool, for example by destroying the endpoint. In that case everything before
 * @until has ended, and outstanding WQEs were posted since. Otherwise returns
 * 1. */
static UCS_F_ALWAYS_INLINE int uct_dcx_txq_retire(uct_dcx_txq_t *txq,
                                                  uint16_t until)
{
    unsigned turn = txq->turn;
    uct_dcx_slot_t *slot;

    while (txq->head != txq->tail) {
        slot = uct_dcx_txq_slot(txq, txq->head);
        if (!UCS_CIRCULAR_COMPARE16(slot->index, <, until)) {
            break;
        }

        /* The user's callback finds it ended, but its WQEBBs still in use. */
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
    uct_dcx_cq_t *cq;    /* receives its send completions */
    uct_dcx_bf_t *bf;    /* register that the QP shares with others of this
                          * owner; NULL: doorbells only, as other owners may
                          * use its register */
    unsigned max_bb;     /* WQEBBs of the longest WQE */
    unsigned num_bb;     /* limit of the send queue: entries of @cq */
    uint16_t moderation; /* WQEBBs after which a completion is requested.
                          * 0: each WQE requests one, and is preceded by all
                          * checks, as a shared initiator requires */
} uct_dcx_txq_params_t;

/* Takes over the send queue of a QP, in any state. The caller destroys the QP.
 * Logs errors, except UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_txq_init(uct_dcx_txq_t *txq,
                              const uct_dcx_txq_params_t *params);

/* Ends all remaining operations with UCS_ERR_CANCELED. The device does not use
 * the buffers any longer. Nothing may be posted meanwhile. */
void uct_dcx_txq_cancel(uct_dcx_txq_t *txq);

/* Calls uct_dcx_txq_cancel() and frees the slots; the QP is destroyed. */
void uct_dcx_txq_cleanup(uct_dcx_txq_t *txq);

#endif
