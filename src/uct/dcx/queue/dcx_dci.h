/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator: its queue, its outstanding operations, and their endpoints.
 * Everything belongs to the thread that progresses the interface. An exclusive
 * initiator is in the pool (no endpoint, nothing outstanding), held by one
 * endpoint, or detached: the endpoint has failed or is destroyed, and its last
 * operations are outstanding. A shared one serves any number of endpoints and
 * is in no pool; after an error it drains (recover/). docs/dcx.md has a diagram
 * of the states.
 */
#ifndef UCT_DCX_DCI_H
#define UCT_DCX_DCI_H

#include "dcx_dci_set.h"
#include "dcx_txq.h"
#include <uct/api/uct.h>

/* Bytes of an initiator, a power of two, as arrays of them are indexed by a
 * shift */
enum { UCT_DCX_DCI_SIZE = 256 };


/* The first error completion of a stream (recover/) */
typedef struct uct_dcx_failure {
    ucs_status_t status; /* with which its operations end; UCS_OK: no failure */
    const uct_dcx_syndrome_t *meaning; /* description of the syndrome */
    uint64_t remote_addr;              /* of a put or a get */
    uint32_t rkey;                     /* 0: it is neither */
    uint16_t index;                    /* first WQEBB of the WQE */
    uint8_t syndrome;
    uint8_t vendor_syndrome;
} uct_dcx_failure_t;


/* The states of an initiator. sched/dcx_tx.c has their transitions, docs/dcx.md
 * a diagram. */
typedef enum uct_dcx_dci_state {
    UCT_DCX_DCI_NONE, /* does not exist yet */

    /* exclusive */
    UCT_DCX_DCI_IDLE,    /* in the pool */
    UCT_DCX_DCI_HELD,    /* an endpoint holds it */
    UCT_DCX_DCI_WATCHED, /* held, and completions have more to do: a flush
                          * waits for a completion, endpoints wait for an
                          * initiator, its wait queue was in use, or changes of
                          * states are traced */
    UCT_DCX_DCI_LEFT,    /* its endpoint has failed or was destroyed, with
                          * operations outstanding */
    UCT_DCX_DCI_ERROR,   /* moved to the error state to cancel its endpoint: an
                          * error completion follows */

    /* shared */
    UCT_DCX_DCI_OPEN,     /* all of its endpoints may post */
    UCT_DCX_DCI_DRAINING, /* after an error, until all posted WQEs have
                           * completed */

    /* both */
    UCT_DCX_DCI_WAITQ, /* endpoints are in its wait queue; others cannot
                        * post */
    UCT_DCX_DCI_LOST,  /* unusable: recovery, or the interface, failed */
    UCT_DCX_DCI_LAST
} uct_dcx_dci_state_t;


struct uct_dcx_dci {
    uct_dcx_txq_t txq; /* its QP is NULL if it does not exist yet */
    uint8_t state;     /* uct_dcx_dci_state_t */
    uint8_t fence;     /* ctrl segment bits of a fence, or strong
                                  * order */
    uint16_t index;    /* in @dci of the set */
    uint32_t results_lkey;
    uct_dcx_ep_t *ep;    /* exclusive: the endpoint that holds it, or
                                  * NULL */
    uct_dcx_dci_t *next; /* exclusive: the next one in the ring */
    uct_dcx_ep_t **eps;  /* shared, for each WQEBB: the endpoint of the
                                  * outstanding WQE that begins there; NULL if
                                  * there is none, or it is destroyed.
                                  * exclusive: NULL */
    union {
        uint32_t *streams; /* shared: ctrl segment bits of the next WQE of each
                            * stream; one entry without streams */
        const uct_dcx_ep_t *last; /* exclusive: the endpoint that took it last,
                                   * not for a grant; it may be destroyed: only
                                   * compared */
    };
    uct_dcx_failure_t *failures; /* of each stream, during recovery */
    ucs_arbiter_t waitq;         /* endpoints whose pending requests wait for a
                                  * WQE */
    uct_dcx_ep_t *served;        /* endpoint whose request is being called: it
                                  * may post although others are in the wait
                                  * queue */
    ucs_list_link_t ready;       /* in the set's list while the wait queue can
                                  * be served, else linked to itself */
    ucs_list_link_t unsignaled;  /* in @unsignaled or @unsignaled_due of the
                                  * set, or linked to itself */
    uint64_t *results;           /* results of atomics: one for each slot, and
                        * one for all that are not fetched */
} UCS_V_ALIGNED(UCT_DCX_DCI_SIZE);

static_assert(sizeof(uct_dcx_dci_t) == UCT_DCX_DCI_SIZE, "a power of two");


/* Returns the entry of the hash table for @qpn, whose QP number may be another:
 * the caller compares. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_dci_of(const uct_dcx_dci_set_t *set, uint32_t qpn)
{
    return set->by_qpn[qpn & set->qpn_mask];
}


/* Returns the initiator with QP number @qpn, NULL if there is none. The user
 * index of a completion is libmlx5's, not ours. */
static inline uct_dcx_dci_t *uct_dcx_dci_find(const uct_dcx_dci_set_t *set,
                                              uint32_t qpn)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(set, qpn);

    return ucs_likely(dci->txq.sq.qpn == qpn) ?
               dci :
               uct_dcx_dci_set_search(set, qpn);
}


/* Returns 0 also for a shared initiator that does not exist yet. */
static UCS_F_ALWAYS_INLINE int uct_dcx_dci_is_shared(const uct_dcx_dci_t *dci)
{
    return dci->eps != NULL;
}


/* Returns non-zero if endpoints in its wait queue may post a WQE of any
 * size. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_dci_is_available(const uct_dcx_dci_t *dci)
{
    const unsigned closed = UCS_BIT(UCT_DCX_DCI_DRAINING) |
                            UCS_BIT(UCT_DCX_DCI_LOST);

    return uct_dcx_sq_is_available(&dci->txq.sq) &&
           !(UCS_BIT(dci->state) & closed);
}


/* Returns non-zero if @ep, to which the initiator is assigned, may post a WQE
 * of any size. */
static UCS_F_ALWAYS_INLINE int uct_dcx_dci_may_post(const uct_dcx_dci_t *dci,
                                                    const uct_dcx_ep_t *ep)
{
    return uct_dcx_dci_is_available(dci) &&
           ((dci->state != UCT_DCX_DCI_WAITQ) || (dci->served == ep));
}


/* Shared: returns the endpoint of the WQE at @index; NULL if no WQE begins
 * there, or its endpoint was destroyed. Exclusive: returns @ep. */
static inline uct_dcx_ep_t *uct_dcx_dci_wqe_ep(const uct_dcx_dci_t *dci,
                                               uint16_t index)
{
    return uct_dcx_dci_is_shared(dci) ? dci->eps[index & dci->txq.sq.mask] :
                                        dci->ep;
}


/* Forgets the endpoints of a shared initiator's WQEs from @begin to the
 * consumer index: they have completed. */
static inline void uct_dcx_dci_forget_eps(uct_dcx_dci_t *dci, uint16_t begin)
{
    for (; begin != dci->txq.sq.ci; ++begin) {
        dci->eps[begin & dci->txq.sq.mask] = NULL;
    }
}


/* Makes the next WQE wait for previous gets and atomics, or for all operations
 * if the port may reorder puts. Shared: the next WQE of @stream. Exclusive:
 * @stream is ignored. */
static inline void uct_dcx_dci_fence(uct_dcx_dci_t *dci, uint16_t stream)
{
    if (uct_dcx_dci_is_shared(dci)) {
        dci->streams[stream] |= dci->fence;
    } else {
        dci->txq.sq.carry |= uct_dcx_wqe_flags(dci->fence);
    }
}


/* Calls uct_dcx_dci_fence() for all streams. */
static inline void uct_dcx_dci_fence_all(uct_dcx_dci_t *dci,
                                         unsigned num_streams)
{
    unsigned i;

    for (i = 0; i < (uct_dcx_dci_is_shared(dci) ? num_streams : 1); ++i) {
        uct_dcx_dci_fence(dci, i);
    }
}


/* Creates an initiator, ready to send. @dci has its index, results and
 * results_lkey; @cq belongs to its group. Logs at @level that no QP can be
 * created, and other errors, except UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_dci_init(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                              uct_dcx_cq_t *cq, ucs_log_level_t level);

void uct_dcx_dci_cleanup(uct_dcx_dci_t *dci);

/* Calls ibv_modify_qp() with the state and the attributes in @mask. */
int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask);

/* Moves the QP from RESET to RTS. Logs errors. */
ucs_status_t uct_dcx_dci_connect(const uct_dcx_dci_set_t *set,
                                 uct_dcx_dci_t *dci);

/* Marks the outstanding operations of @ep, except flushes: when their WQEs have
 * completed, they end with UCS_ERR_CANCELED. */
void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

#endif
