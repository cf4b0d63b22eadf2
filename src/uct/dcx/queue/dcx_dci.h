/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A DC initiator: its queue, what is outstanding on it, and for which endpoint.
 * Everything belongs to the thread that progresses the interface. An exclusive
 * initiator is in the pool (no endpoint, nothing outstanding), held by one
 * endpoint, or left: the endpoint has gone and the last operations are on the
 * way. A shared one serves any number of endpoints and is in no pool; after an
 * error it drains (recover/). The states are drawn in docs/dcx.md.
 */
#ifndef UCT_DCX_DCI_H
#define UCT_DCX_DCI_H

#include "dcx_dci_set.h"
#include "dcx_txq.h"
#include <uct/api/uct.h>

enum {
    UCT_DCX_DCI_SIZE = 256
};


/* The first completion with error on a stream (recover/) */
typedef struct uct_dcx_failure {
    ucs_status_t status;     /* of its operations; UCS_OK: there was none */
    const uct_dcx_syndrome_t *meaning;
    uint16_t     index;      /* WQEBB at which the WQE begins */
    uint8_t      syndrome;
    uint8_t      vendor_syndrome;
} uct_dcx_failure_t;


/* The states of an initiator. sched/dcx_tx.h has the changes between them,
 * docs/dcx.md a drawing. */
typedef enum uct_dcx_dci_state {
    UCT_DCX_DCI_NONE,     /* does not exist yet */

    /* exclusive */
    UCT_DCX_DCI_IDLE,     /* in the pool */
    UCT_DCX_DCI_HELD,     /* an endpoint has it */
    UCT_DCX_DCI_WATCHED,  /* ... and completions have more to do: a flush waits
                           * for one, or others wait for initiators */
    UCT_DCX_DCI_LEFT,     /* ... was destroyed, with operations outstanding */
    UCT_DCX_DCI_ERROR,    /* was moved to the error state: a completion with
                           * error comes */

    /* shared */
    UCT_DCX_DCI_OPEN,     /* all of its endpoints may post */
    UCT_DCX_DCI_DRAINING, /* after an error, until all that was posted has
                           * completed */

    /* both */
    UCT_DCX_DCI_WAITQ,    /* endpoints are in its wait queue; no others post */
    UCT_DCX_DCI_LOST,     /* cannot be brought back to work */
    UCT_DCX_DCI_LAST
} uct_dcx_dci_state_t;


struct uct_dcx_dci {
    uct_dcx_txq_t   txq;          /* its QP is NULL if there is none yet */
    uint8_t         state;        /* uct_dcx_dci_state_t */
    uint8_t         fence;        /* of ctrl segments: fence, or strong order */
    uint16_t        index;
    uct_dcx_ep_t    *ep;          /* exclusive: that has it, or NULL */
    uct_dcx_ep_t    **eps;        /* shared, for each WQEBB: the endpoint of the
                                     outstanding WQE that begins there; NULL:
                                     none does, or it is destroyed.
                                     exclusive: NULL */
    uint32_t        *streams;     /* shared: what the next WQE of each carries,
                                     one if it has no streams */
    uct_dcx_failure_t *failures;  /* of each stream, while it recovers */
    ucs_arbiter_t   waitq;        /* endpoints whose pending requests wait
                                     until a WQE is available */
    uct_dcx_ep_t    *served;      /* its request is being called: it may post
                                     although others are in the wait queue */
    ucs_list_link_t ready;        /* in the list of the set, or linked to
                                     itself: the wait queue can be served */
    ucs_list_link_t unsignaled;   /* in the list of the set, or linked to
                                     itself */
    uint32_t        results_lkey;
    uint64_t        *results;     /* where atomics land: for each slot, and one
                                     more for all that are not fetched */
} UCS_V_ALIGNED(UCT_DCX_DCI_SIZE);

static_assert(sizeof(uct_dcx_dci_t) == UCT_DCX_DCI_SIZE,
              "is indexed: a power of two");


/* The initiator with a QP number, if there is one and no other has its place in
 * the table: the caller compares. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_dci_of(const uct_dcx_dci_set_t *set, uint32_t qpn)
{
    return set->by_qpn[qpn & set->qpn_mask];
}


/* The initiator that a send completion belongs to. The user index in the
 * completion is libmlx5's, not ours. */
static inline uct_dcx_dci_t *
uct_dcx_dci_find(const uct_dcx_dci_set_t *set, uint32_t qpn)
{
    uct_dcx_dci_t *dci = uct_dcx_dci_of(set, qpn);

    return ucs_likely(dci->txq.sq.qpn == qpn) ? dci :
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


/* Returns non-zero if @ep, which has the initiator, may post a WQE of any
 * size. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_dci_may_post(const uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep)
{
    return uct_dcx_dci_is_available(dci) &&
           ((dci->state != UCT_DCX_DCI_WAITQ) || (dci->served == ep));
}


/* The endpoint of the WQE that begins at 'index'. NULL if it was destroyed. */
static inline uct_dcx_ep_t *
uct_dcx_dci_wqe_ep(const uct_dcx_dci_t *dci, uint16_t index)
{
    return uct_dcx_dci_is_shared(dci) ? dci->eps[index & dci->txq.sq.mask] :
                                        dci->ep;
}


/* On a shared initiator the WQEs from 'begin' to the consumer index have
 * completed. */
static inline void uct_dcx_dci_forget_eps(uct_dcx_dci_t *dci, uint16_t begin)
{
    for (; begin != dci->txq.sq.ci; ++begin) {
        dci->eps[begin & dci->txq.sq.mask] = NULL;
    }
}


/* The next WQE on the stream waits for gets and atomics before it, and for puts
 * if these may be reordered. */
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


/* Creates one initiator, ready to send. 'dci' has its number and the part of
 * its group, to which 'cq' belongs. Errors are logged at 'level'. */
ucs_status_t uct_dcx_dci_init(uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci,
                              uct_dcx_cq_t *cq, ucs_log_level_t level);

void uct_dcx_dci_cleanup(uct_dcx_dci_t *dci);

/* ibv_modify_qp() that sets the state and what 'mask' adds. */
int uct_dcx_dci_modify(uct_dcx_dci_t *dci, struct ibv_qp_attr *attr, int mask);

/* From RESET to RTS. Errors are logged. */
ucs_status_t
uct_dcx_dci_connect(const uct_dcx_dci_set_t *set, uct_dcx_dci_t *dci);

/* Has the outstanding operations of @ep end with UCS_ERR_CANCELED. */
void uct_dcx_dci_mark_canceled(uct_dcx_dci_t *dci, const uct_dcx_ep_t *ep);

#endif
