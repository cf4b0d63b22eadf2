/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator: its queue, what is outstanding on it, and whose that is.
 * Everything belongs to the thread that progresses the interface. An exclusive
 * initiator is in the pool (no endpoint, nothing outstanding), held by one
 * endpoint, or left: its endpoint is gone and the last operations are on the
 * way. A shared one serves any number of endpoints and is in no pool; after an
 * error it drains (dcx_dci_drain.c). The states are drawn in docs/dcx.md.
 */
#ifndef UCT_DCX_DCI_H
#define UCT_DCX_DCI_H

#include "dcx_dci_set.h"

#include <ucs/sys/math.h>

enum {
    UCT_DCX_DCI_SIZE = 256
};

typedef struct uct_dcx_op    uct_dcx_op_t;
typedef struct uct_dcx_drain uct_dcx_drain_t;


/* Ends an operation: frees what it held, tells the user. 'dci' may be NULL if
 * it has failed. */
typedef void (*uct_dcx_op_done_t)(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                  ucs_status_t status);

/* An operation that has something to end. Those of an initiator stand in a
 * ring, in the order in which they were posted. */
struct uct_dcx_op {
    uct_dcx_op_done_t done;     /* NULL: it has ended, others before have not */
    uct_completion_t  *comp;
    void              *buffer;
    uint16_t          index;    /* first block of its WQE */
    uint16_t          canceled; /* ends with UCS_ERR_CANCELED, whatever comes */
    uint16_t          place;    /* where in 'results' that of an atomic lands;
                                   it moves in the ring with the operation */
};


/* A flush that waits until what its endpoint posted before has completed. */
typedef struct uct_dcx_flush {
    ucs_list_link_t  list;
    uct_dcx_ep_t     *ep;
    uct_completion_t *comp;
    uint16_t         index;  /* first block of the last WQE that it waits for */
    int16_t          status; /* that of a failure, once it is lost by that */
} uct_dcx_flush_t;


struct uct_dcx_dci {
    uct_dcx_sq_t    sq;
    uct_dcx_op_t    *ops;         /* as many as there are blocks */
    uint16_t        op_head;      /* the oldest; these run freely */
    uint16_t        op_tail;      /* where the next one goes */
    uint16_t        index;
    uint8_t         in_error;     /* was moved to the error state by us */
    uct_dcx_ep_t    **eps;        /* shared: whose WQE that is outstanding
                                     begins at each block, NULL: none does, or
                                     he is gone; exclusive: NULL */
    uint32_t        *streams;     /* shared: what the next WQE of each carries,
                                     one if it has no streams */
    uct_dcx_drain_t *drain;       /* shared: NULL, unless it drains */
    uct_dcx_ep_t    *ep;          /* exclusive: NULL in the pool, or left */
    ucs_list_link_t flushes;      /* in the order of their indexes */
    ucs_arbiter_t   waiters;      /* endpoints with requests in line for room */
    uct_dcx_ep_t    *served;      /* shared: whose request is being called: he
                                     may post although others are in line */
    ucs_list_link_t ready;        /* in the list of the set */
    ucs_list_link_t tail;         /* in the list of the set, or empty */
    uint8_t         is_ready;     /* waiters are to be served */
    uint32_t        results_lkey;
    uint64_t        *results;     /* where atomics land: for each operation, and
                                     one more for what nobody wants */
    unsigned        turn;         /* counts resets and returns to the pool */
    uct_dcx_cq_t    *cq;          /* of its group */
    struct ibv_qp   *qp;          /* NULL: not created yet */
} UCS_V_ALIGNED(UCT_DCX_DCI_SIZE);

/* both are indexed in operations: powers of two */
static_assert(sizeof(uct_dcx_dci_t) == UCT_DCX_DCI_SIZE, "an initiator");
static_assert(sizeof(uct_dcx_op_t) == 32, "an operation");


/* The initiator that a QP number is of if it is of any, and no two have come
 * to the same place in the table. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_dci_of(const uct_dcx_dci_set_t *set, uint32_t qpn)
{
    return set->by_qpn[qpn & set->qpn_mask];
}


/* The initiator that a send completion belongs to, NULL if it drains.
 * The user index in the completion is libmlx5's, not ours. */
static inline uct_dcx_dci_t *
uct_dcx_dci_find(uct_dcx_iface_t *iface, const uct_dcx_dci_set_t *set,
                 uint32_t qpn)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(set, qpn);

    return ucs_likely(dci->sq.qpn == qpn) ? dci :
                                            uct_dcx_dci_set_search(iface, qpn);
}


static UCS_F_ALWAYS_INLINE int uct_dcx_dci_is_idle(const uct_dcx_dci_t *dci)
{
    return dci->sq.pi == dci->sq.ci;
}


static UCS_F_ALWAYS_INLINE int uct_dcx_dci_is_shared(const uct_dcx_dci_t *dci)
{
    return dci->eps != NULL;
}


/* Whether 'ep', which has the initiator, may post a WQE of any size. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_dci_has_room(const uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    return uct_dcx_sq_has_room(&dci->sq) ||
           ((dci->served == ep) && uct_dcx_sq_fits(&dci->sq));
}


/* Whose WQE begins at 'index'. NULL if he is gone. */
static inline uct_dcx_ep_t *
uct_dcx_dci_wqe_ep(const uct_dcx_dci_t *dci, uint16_t index)
{
    return uct_dcx_dci_is_shared(dci) ? dci->eps[index & dci->sq.mask] :
                                        dci->ep;
}


/* Those that begin before the consumer index, from block 'begin' on, have
 * completed on a shared initiator. */
static inline void uct_dcx_dci_forget_eps(uct_dcx_dci_t *dci, uint16_t begin)
{
    for (; begin != dci->sq.ci; ++begin) {
        dci->eps[begin & dci->sq.mask] = NULL;
    }
}


/* Whether the block at 'index' was posted and has not completed. */
static inline int
uct_dcx_dci_is_outstanding(const uct_dcx_dci_t *dci, uint16_t index)
{
    return (uint16_t)(index - dci->sq.ci) < uct_dcx_sq_used(&dci->sq);
}


static UCS_F_ALWAYS_INLINE uct_dcx_op_t *
uct_dcx_dci_op(const uct_dcx_dci_t *dci, uint16_t place)
{
    return &dci->ops[place & dci->sq.mask];
}


/* What is posted on the stream next waits for gets and atomics before it. */
static inline void uct_dcx_dci_fence(uct_dcx_dci_t *dci, uint16_t stream)
{
    if (uct_dcx_dci_is_shared(dci)) {
        dci->streams[stream] |= MLX5_WQE_CTRL_FENCE;
    } else {
        dci->sq.carry |= MLX5_WQE_CTRL_FENCE;
    }
}


static inline void uct_dcx_dci_fence_all(uct_dcx_dci_t *dci, unsigned streams)
{
    unsigned i;

    for (i = 0; i < (uct_dcx_dci_is_shared(dci) ? streams : 1); ++i) {
        uct_dcx_dci_fence(dci, i);
    }
}


/* Takes a new operation down that begins at 'index'. There is a place for each
 * block of the ring, so one is free. */
static UCS_F_ALWAYS_INLINE uct_dcx_op_t *
uct_dcx_dci_push_op(uct_dcx_dci_t *dci, uint16_t index)
{
    uct_dcx_op_t *op = uct_dcx_dci_op(dci, dci->op_tail++);

    op->index = index;
    return op;
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_dci_end_op(uct_dcx_dci_t *dci, uct_dcx_op_t *op, ucs_status_t status)
{
    if (ucs_unlikely(op->canceled)) {
        op->canceled = 0;
        status       = UCS_ERR_CANCELED;
    }
    op->done(dci, op, status);
}


void uct_dcx_flush_end_one(uct_dcx_flush_t *flush, ucs_status_t status);

/* Ends the flushes of 'ep', those of everybody if it is NULL. */
void uct_dcx_flush_end(ucs_list_link_t *flushes, const uct_dcx_ep_t *ep,
                       ucs_status_t status);

/* Ends the flushes that wait for nothing from block 'until' on. */
void uct_dcx_dci_end_flushes(uct_dcx_dci_t *dci, uint16_t until,
                             ucs_status_t status);

/* All WQEs that begin before block 'until' have completed: ends them in order.
 * Returns 0 if a callback of the user, who may destroy the endpoint in it, had
 * the initiator reset or given back: everything before 'until' has ended then,
 * and what is outstanding now is of whoever took the initiator since. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_dci_retire(uct_dcx_dci_t *dci, uint16_t until)
{
    unsigned turn = dci->turn;
    uct_dcx_op_t *op;

    while (dci->op_head != dci->op_tail) {
        op = uct_dcx_dci_op(dci, dci->op_head);
        if (!UCS_CIRCULAR_COMPARE16(op->index, <, until)) {
            break;
        }

        /* what the user does in his callback finds it ended, and its place in
         * the ring still taken */
        dci->op_head++;
        uct_dcx_dci_end_op(dci, op, UCS_OK);
        if (ucs_unlikely(dci->turn != turn)) {
            return 0;
        }
    }

    dci->sq.ci = until;
    if (ucs_unlikely(!ucs_list_is_empty(&dci->flushes))) {
        uct_dcx_dci_end_flushes(dci, until, UCS_OK);
        return dci->turn == turn;
    }
    return 1;
}


/* Creates one initiator, ready to send. 'dci' has its number and the part of
 * its group. Errors are logged at 'level'. */
ucs_status_t uct_dcx_dci_init(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                              ucs_log_level_t level);

void uct_dcx_dci_cleanup(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* ibv_modify_qp() that sets the state and what 'mask' adds. */
int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask);

/* From RESET to RTS. Errors are logged. */
ucs_status_t
uct_dcx_dci_connect(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* A flush of 'ep' that waits for the WQE at 'index', on the list of its
 * initiator. */
ucs_status_t uct_dcx_flush_add(ucs_list_link_t *flushes, uct_dcx_ep_t *ep,
                               uint16_t index, uct_completion_t *comp);

/* What 'ep' has outstanding will end with UCS_ERR_CANCELED. */
void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

/* The endpoint is gone, and nobody may be told of what is outstanding later:
 * all completions come now, as cancelled. Copied operations stay with the
 * device and are freed when they complete. If there are others, the device is
 * first taken off the user's memory: an exclusive queue is reset, with a shared
 * one it is waited for. */
void uct_dcx_dci_leave(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       uct_dcx_ep_t *ep);

/* Takes an exclusive queue to the error state and sees to it that a completion
 * with error comes, even if nothing was outstanding any more. */
ucs_status_t uct_dcx_dci_to_error(uct_dcx_dci_t *dci);

/* Takes the device off the queue for good: nothing is on the wire after that,
 * and no completion comes any more. */
void uct_dcx_dci_stop(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* The queue works again, and what stands in it goes out. */
void uct_dcx_dci_restart(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* Those who had to wait for that go on. */
void uct_dcx_dci_resume(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* A send completion with error: fails what is lost, calls the error handlers
 * and makes the initiator usable again; a shared one drains before that. */
void uct_dcx_dci_fail(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                      const struct mlx5_cqe64 *cqe);

/* A send completion of no initiator that works: of one that drains. */
void
uct_dcx_dci_drain_take(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe);

#endif
