/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator: its queue, its outstanding operations, and their endpoints.
 * Everything belongs to the thread that progresses the interface. An exclusive
 * initiator is in the pool (no endpoint, nothing outstanding), held by one
 * endpoint, or detached: the endpoint is destroyed and the last operations are
 * outstanding. A shared one serves any number of endpoints and is in no pool;
 * after an error it drains (recover/). docs/dcx.md has a diagram of the states.
 */
#ifndef UCT_DCX_DCI_H
#define UCT_DCX_DCI_H

#include "dcx_dci_set.h"
#include "dcx_txq.h"
#include <uct/api/uct.h>

enum { UCT_DCX_DCI_SIZE = 256 };


/* The first error completion of a stream (recover/) */
typedef struct uct_dcx_failure {
    ucs_status_t status; /* of its operations; UCS_OK: no failure */
    const uct_dcx_syndrome_t *meaning;
    uint16_t index; /* first WQEBB of the WQE */
    uint8_t syndrome;
    uint8_t vendor_syndrome;
} uct_dcx_failure_t;


/* The states of an initiator. sched/dcx_tx.h has their transitions, docs/dcx.md
 * a diagram. */
typedef enum uct_dcx_dci_state {
    UCT_DCX_DCI_NONE, /* does not exist yet */

    /* exclusive */
    UCT_DCX_DCI_IDLE,    /* in the pool */
    UCT_DCX_DCI_HELD,    /* an endpoint holds it */
    UCT_DCX_DCI_WATCHED, /* held, and completions have more to do: a flush
                          * waits for one, or others wait for initiators */
    UCT_DCX_DCI_LEFT,    /* its endpoint was destroyed, with operations
                          * outstanding */
    UCT_DCX_DCI_ERROR,   /* it was moved to the error state: an error
                          * completion follows */

    /* shared */
    UCT_DCX_DCI_OPEN,     /* all of its endpoints may post */
    UCT_DCX_DCI_DRAINING, /* after an error, until all posted WQEs have
                           * completed */

    /* both */
    UCT_DCX_DCI_WAITQ, /* endpoints are in its wait queue; others cannot
                        * post */
    UCT_DCX_DCI_LOST,  /* unusable: recovery failed */
    UCT_DCX_DCI_LAST
} uct_dcx_dci_state_t;


struct uct_dcx_dci {
    uct_dcx_txq_t txq; /* its QP is NULL if it does not exist yet */
    uint8_t state;     /* uct_dcx_dci_state_t */
    uint8_t fence;     /* ctrl segment bits of a fence, or strong
                        * order */
    uint16_t index;
    uct_dcx_ep_t *ep;            /* exclusive: the endpoint that holds it, or
                                  * NULL */
    uct_dcx_ep_t **eps;          /* shared, for each WQEBB: the endpoint of the
                                  * outstanding WQE that begins there; NULL if
                                  * there is none, or it is destroyed.
                                  * exclusive: NULL */
    uint32_t *streams;           /* shared: ctrl segment bits of the next WQE
                                  * of each stream; one entry without
                                  * streams */
    uct_dcx_failure_t *failures; /* of each stream, during recovery */
    ucs_arbiter_t waitq;         /* endpoints whose pending requests wait for a
                                  * WQE */
    uct_dcx_ep_t *served;        /* endpoint whose request is being called: it
                                  * may post although others are in the wait
                                  * queue */
    ucs_list_link_t ready;       /* entry of the set's list, or linked to
                                  * itself: the wait queue can be served */
    ucs_list_link_t unsignaled;  /* entry of the set's list, or linked to
                                  * itself */
    uint32_t results_lkey;
    uint64_t *results; /* results of atomics: one for each slot, and
                        * one for all that are not fetched */
} UCS_V_ALIGNED(UCT_DCX_DCI_SIZE);

static_assert(sizeof(uct_dcx_dci_t) == UCT_DCX_DCI_SIZE,
              "is indexed: a power of two");


/* Returns the initiator at the hashed place of @qpn, which may have another QP
 * number: the caller compares. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_dci_of(const uct_dcx_dci_set_t *set, uint32_t qpn)
{
    return set->by_qpn[qpn & set->qpn_mask];
}


/* Returns the initiator of a send completion. The user index in the completion
 * is libmlx5's, not ours. */
static inline uct_dcx_dci_t *uct_dcx_dci_find(const uct_dcx_dci_set_t *set,
                                              uint32_t qpn)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(set, qpn);

    return ucs_likely(dci->txq.sq.qpn == qpn) ?
               dci :
               uct_dcx_dci_set_search(set, qpn);
}


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


/* Returns non-zero if @ep, which holds the initiator, may post a WQE of any
 * size. */
static UCS_F_ALWAYS_INLINE int uct_dcx_dci_may_post(const uct_dcx_dci_t *dci,
                                                    const uct_dcx_ep_t *ep)
{
    return uct_dcx_dci_is_available(dci) &&
           ((dci->state != UCT_DCX_DCI_WAITQ) || (dci->served == ep));
}


/* Returns the endpoint of the WQE that begins at @index; NULL if it was
 * destroyed. */
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


/* Makes the next WQE on the stream wait for previous gets and atomics, and for
 * puts if these may be reordered. */
static inline void uct_dcx_dci_fence(uct_dcx_dci_t *dci, uint16_t stream)
{
    if (uct_dcx_dci_is_shared(dci)) {
        dci->streams[stream] |= dci->fence;
    } else {
        dci->txq.sq.carry |= uct_dcx_wqe_flags(dci->fence);
    }
}


static inline void uct_dcx_dci_fence_all(uct_dcx_dci_t *dci, unsigned streams)
{
    unsigned i;

    for (i = 0; i < (uct_dcx_dci_is_shared(dci) ? streams : 1); ++i) {
        uct_dcx_dci_fence(dci, i);
    }
}


/* Creates an initiator, ready to send. @dci has its number and its part of the
 * group; @cq belongs to that group. Logs errors at @level. */
ucs_status_t uct_dcx_dci_init(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                              uct_dcx_cq_t *cq, ucs_log_level_t level);

void uct_dcx_dci_cleanup(uct_dcx_dci_t *dci);

/* Calls ibv_modify_qp() with the state and the attributes in @mask. */
int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask);

/* Moves the QP from RESET to RTS. Logs errors. */
ucs_status_t uct_dcx_dci_connect(const uct_dcx_dci_set_t *set,
                                 uct_dcx_dci_t *dci);

/* Makes the outstanding operations of @ep end with UCS_ERR_CANCELED. */
void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

#endif
