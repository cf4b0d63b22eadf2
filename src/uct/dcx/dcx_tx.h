/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What every operation does: get an initiator, begin a WQE with the address of
 * the peer, and post it. Inlined into the operations (dcx_am.c, dcx_rma.c,
 * dcx_atomic.c). Used by the interface's thread.
 *
 * Between an operation's entry and the doorbell, and in progress, libibverbs
 * and libmlx5 are called only when there is something new, all of it once or
 * rarely: an initiator that was not needed before is created, one that fails or
 * is taken from an endpoint is brought back to work, a pool of buffers grows
 * and registers more memory, and on RoCE the first request for credits from a
 * port of the network asks for its MAC, which may take a second if nobody
 * answers there (dcx_neigh.c).
 */
#ifndef UCT_DCX_TX_H
#define UCT_DCX_TX_H

#include "dcx_ep.h"
#include "dcx_mem.h"
#include "dcx_pending.h"

#include <uct/base/uct_iov.inl>


/* A buffer of registered memory for copied operations. The payload follows at
 * UCT_DCX_TX_PAYLOAD, the header of an active message right before it. */
typedef struct uct_dcx_tx_desc {
    uint32_t              lkey;
    uint32_t              length;    /* of a get */
    uct_unpack_callback_t unpack_cb; /* of a get */
    void                  *arg;
} uct_dcx_tx_desc_t;

enum {
    UCT_DCX_TX_PAYLOAD = 64
};


/* An operation to be posted, less its segments. */
typedef struct uct_dcx_tx {
    uint8_t           opcode;
    uint8_t           opmod;
    uint8_t           flags;   /* of the ctrl segment: MLX5_WQE_CTRL_* */
    uct_dcx_op_done_t done;    /* NULL: there is nothing to end */
    uct_completion_t  *comp;
    void              *buffer;
} uct_dcx_tx_t;


/* Each operation has one body, which is compiled twice. The plain way is for an
 * endpoint without route header that has or takes an exclusive initiator, with
 * nothing that it has to look at: what it needs to know of that is tested at
 * once. Where it is not open, the operation starts again on its slow way, which
 * is open to all. The body is given the function of that, or NULL on the slow
 * way itself; so 'is_plain' below is a constant everywhere. */


static UCS_F_ALWAYS_INLINE void *uct_dcx_tx_payload(uct_dcx_tx_desc_t *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc, UCT_DCX_TX_PAYLOAD);
}


/* --- initiators ----------------------------------------------------------- */

/* Whether an endpoint without initiator may take one now: whoever waits in
 * line goes first. */
static inline int uct_dcx_tx_may_take(uct_dcx_iface_t *iface)
{
    return uct_dcx_pool_has_idle(&iface->dci.pool) &&
           ucs_arbiter_is_empty(&iface->dci.wait_dci);
}


static inline int
uct_dcx_tx_can_send(uct_dcx_iface_t *iface, const uct_dcx_ep_t *ep)
{
    if (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) {
        return 0;
    }

    if (ep->dci == UCT_DCX_NO_DCI) {
        return uct_dcx_tx_may_take(iface);
    }
    return uct_dcx_sq_has_room(&iface->dci.dci[ep->dci].sq);
}


/* Without an idle initiator: binds the endpoint to a shared one if the
 * policy has one for that. Returns it if it has room, else NULL. */
uct_dcx_dci_t *uct_dcx_spill(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* All before the consumer index have completed on a shared initiator, from
 * block 'begin' on just now: those who are there for the time being leave. */
void uct_dcx_spill_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                             uint16_t begin);


/* Lends an initiator to an endpoint that has none; NULL if there is none, or
 * the endpoint has failed. */
uct_dcx_dci_t *uct_dcx_tx_attach(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* The initiator on which 'ep' may post one WQE of any size, or NULL: the
 * operation then returns uct_dcx_tx_no_resource(). Whoever does not post after
 * all calls uct_dcx_tx_settle(). */
uct_dcx_dci_t *uct_dcx_tx_get_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* The same for an active message, which takes a credit when it is posted. */
uct_dcx_dci_t *uct_dcx_tx_get_dci_am(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* The endpoint has no credit at hand for an active message. Takes what was kept
 * back and asks for more. 'dci' was got for the message: returned if it may be
 * sent, else NULL is. */
uct_dcx_dci_t *uct_dcx_fc_used_up(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                                  uct_dcx_dci_t *dci);

/* The same on the plain way, initiator and all. NULL: not on that. */
uct_dcx_dci_t *
uct_dcx_fc_used_up_plain(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);


/* An idle initiator for an endpoint that has none, and about which there is
 * nothing odd. NULL: not on the plain way. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_take_plain(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_dci_t *dci;
    uint16_t index;

    /* nobody is in line if no shares are in force */
    if (ucs_unlikely(iface->dci.throttled || !uct_dcx_pool_has_idle(pool))) {
        return NULL;
    }

    index = uct_dcx_pool_next(pool);
    dci   = &iface->dci.dci[index];
    if (ucs_unlikely(dci->qp == NULL)) {
        return NULL;
    }

    uct_dcx_pool_take(pool);
    dci->ep = ep;
    ep->dci = index;
    return dci;
}


static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get_plain(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uint32_t state = uct_dcx_ep_state(ep);
    uct_dcx_dci_t *dci;

    if (!(state & (UCT_DCX_EP_STATE_ODD | UCT_DCX_EP_STATE_NO_DCI))) {
        dci = &iface->dci.dci[(uint16_t)state];
        return ucs_likely(uct_dcx_sq_is_clear(&dci->sq)) ? dci : NULL;
    }

    if (ucs_unlikely(state & UCT_DCX_EP_STATE_ODD)) {
        return NULL;
    }
    return uct_dcx_tx_take_plain(iface, ep);
}


static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep, int is_plain)
{
    return is_plain ? uct_dcx_tx_get_plain(iface, ep) :
                      uct_dcx_tx_get_dci(iface, ep);
}


static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get_am(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep, int is_plain)
{
    if (!is_plain) {
        return uct_dcx_tx_get_dci_am(iface, ep);
    }

    return ucs_likely(ep->credits > 0) ? uct_dcx_tx_get_plain(iface, ep) :
                                         uct_dcx_fc_used_up_plain(iface, ep);
}


/* Gives an exclusive initiator back to the pool if nothing is outstanding.
 * Returns the endpoint that parted with it, NULL if none did. */
uct_dcx_ep_t *uct_dcx_tx_detach(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* The same, and if the endpoint has requests in line, they wait for another
 * initiator from now on. */
void uct_dcx_tx_settle(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);

/* What an operation returns that cannot be posted now, or never will be. */
ucs_status_t uct_dcx_tx_no_resource(uct_dcx_ep_t *ep);


/* What a copied operation returns that got 'dci', but no buffer. */
ucs_status_t uct_dcx_tx_no_memory(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci);


/* A buffer for a copied operation; NULL if memory is short. */
static UCS_F_ALWAYS_INLINE uct_dcx_tx_desc_t *
uct_dcx_tx_get_desc(uct_dcx_iface_t *iface)
{
    return ucs_mpool_get_inline(&iface->tx_mp);
}


/* --- WQEs ----------------------------------------------------------------- */

/* Starts a WQE with the ctrl segment left open and the peer's address. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_start(uct_dcx_wqe_t *wqe, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                 int is_plain)
{
    uct_dcx_sq_t *sq = &dci->sq;

    uct_dcx_wqe_begin(wqe, sq->start, sq->mask, sq->pi);
    uct_dcx_wqe_av(wqe, &ep->av);
    if (is_plain) {
        return;
    }

    if (ep->flags & UCT_DCX_EP_FLAG_GRH) {
        uct_dcx_wqe_grh(wqe, &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh);
    }

    if (uct_dcx_dci_is_shared(dci)) {
        dci->eps[sq->pi & sq->mask] = ep;
        ep->last                    = sq->pi;
        sq->carry                   = dci->streams[ep->stream] |
                                      MLX5_WQE_CTRL_CQ_UPDATE;
        dci->streams[ep->stream]    = UCT_DCX_WQE_STREAM(ep->stream);
    }
}


static inline void
uct_dcx_tx_begin(uct_dcx_wqe_t *wqe, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    uct_dcx_tx_start(wqe, dci, ep, 0);
}


/* Completes the WQE and rings the doorbell. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_post(uct_dcx_dci_t *dci, const uct_dcx_wqe_t *wqe,
                const uct_dcx_tx_t *tx)
{
    uct_dcx_sq_t *sq        = &dci->sq;
    uct_dcx_wqe_ctrl_t ctrl = {
        .opcode = tx->opcode,
        .opmod  = tx->opmod,
        .index  = wqe->index,
        .flags  = tx->flags | sq->carry,
        .sender = sq->sender
    };
    uct_dcx_op_t *op;
    uint64_t doorbell;

    if (tx->done != NULL) {
        op       = uct_dcx_dci_push_op(dci, wqe->index);
        op->done = tx->done;
        op->comp = tx->comp;
        if (!__builtin_constant_p(tx->buffer == NULL) || (tx->buffer != NULL)) {
            op->buffer = tx->buffer; /* nobody looks at it if it is never set */
        }
    }

    if (tx->flags & MLX5_WQE_CTRL_CQ_UPDATE) {
        sq->signaled = wqe->index;
    }

    sq->carry = sq->again;
    doorbell  = uct_dcx_wqe_finish(wqe, wqe->first, &ctrl);
    uct_dcx_sq_ring(sq, wqe->index, uct_dcx_wqe_num_bb(wqe), doorbell);
}


/* One data segment for each piece of memory that is not empty. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_iov(uct_dcx_wqe_t *wqe, const uct_iov_t *iov, size_t iovcnt)
{
    size_t i, length;

    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length > 0) {
            uct_dcx_wqe_data(wqe, iov[i].buffer, length,
                             uct_dcx_mem_lkey(iov[i].memh));
        }
    }
}


/* Ends of operations; see uct_dcx_op_done_t. */
void uct_dcx_tx_done_comp(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                          ucs_status_t status);
void uct_dcx_tx_done_desc(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                          ucs_status_t status);

/* Creates iface->tx_mp. */
ucs_status_t uct_dcx_tx_init_mpool(uct_dcx_iface_t *iface);

/* dcx_tx_poll.c: sees to it that a completion comes for all that was posted. */
void uct_dcx_tx_ask(uct_dcx_dci_t *dci);

/* ... on all initiators on which none will come otherwise */
void uct_dcx_tx_ask_tails(uct_dcx_iface_t *iface);

/* The same for those of which a call of progress has found that before. */
void uct_dcx_tx_do_tails(uct_dcx_iface_t *iface);

/* Takes send completions of all queues but the first. Returns how many. */
unsigned uct_dcx_tx_poll_others(uct_dcx_iface_t *iface);

#endif
