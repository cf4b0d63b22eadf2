/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What every operation does: get an initiator, begin a WQE with the address
 * of the peer, and post it. Inlined into the operations (dcx_am.c, dcx_rma.c,
 * dcx_atomic.c); nothing here or there calls libibverbs or libmlx5. Used by
 * the interface's thread.
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
    uint8_t           flags;   /* of the ctrl segment, beside CQ_UPDATE */
    uct_dcx_op_done_t done;    /* NULL: there is nothing to end */
    uct_completion_t  *comp;
    void              *buffer;
} uct_dcx_tx_t;


static UCS_F_ALWAYS_INLINE void *uct_dcx_tx_payload(uct_dcx_tx_desc_t *desc)
{
    return UCS_PTR_BYTE_OFFSET(desc, UCT_DCX_TX_PAYLOAD);
}


/* Whether an endpoint without initiator may take one now: whoever waits in
 * line goes first. */
static UCS_F_ALWAYS_INLINE int uct_dcx_tx_may_take(uct_dcx_iface_t *iface)
{
    return uct_dcx_pool_has_idle(&iface->dci.pool) &&
           ucs_arbiter_is_empty(&iface->dci.wait_dci);
}


static UCS_F_ALWAYS_INLINE int
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


/* Without an idle initiator: binds the endpoint to a shared one if the policy has
 * one for that. Returns it if it has room, else NULL. */
uct_dcx_dci_t *uct_dcx_spill(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep);

/* All before the consumer index have completed on a shared initiator, from
 * block 'begin' on just now: those who are there for the time being leave. */
void uct_dcx_spill_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                             uint16_t begin);


/* Lends an initiator to an endpoint that has none; NULL if there is none, or
 * the endpoint has failed. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_attach(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_dci_t *dci;
    uint16_t index;

    if (ucs_unlikely(!uct_dcx_pool_has_idle(pool))) {
        return uct_dcx_spill(iface, ep);
    }

    index = uct_dcx_pool_take(pool);
    dci   = &iface->dci.dci[index];
    if (ucs_unlikely(dci->qp == NULL) &&
        (uct_dcx_dci_set_create(iface, index) == NULL)) {
        uct_dcx_pool_truncate(pool, index);
        return uct_dcx_spill(iface, ep);
    }

    dci->ep = ep;
    ep->dci = index;
    if (ucs_unlikely(ep->flags & (UCT_DCX_EP_FLAG_INVALIDATED |
                                  UCT_DCX_EP_FLAG_FAILED))) {
        return uct_dcx_ep_attach_odd(iface, ep, dci);
    }
    return dci;
}


/* The initiator on which 'ep' may post one WQE of any size, or NULL: the
 * operation then returns uct_dcx_tx_no_resource(). Whoever does not post after all
 * calls uct_dcx_tx_settle(). */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &iface->dci.dci[ep->dci];
        return ucs_likely(uct_dcx_sq_has_room(&dci->sq)) ? dci : NULL;
    }

    if (ucs_unlikely(!ucs_arbiter_is_empty(&iface->dci.wait_dci))) {
        return NULL; /* they go first */
    }
    return uct_dcx_tx_attach(iface, ep);
}


/* The endpoint has no credit at hand for an active message. Takes what was kept
 * back and asks for more. 'dci' was got for the message: returned if it may be
 * sent, else settled, and NULL returned. */
uct_dcx_dci_t *uct_dcx_fc_used_up(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                                  uct_dcx_dci_t *dci);


/* The same for an active message, which takes a credit when it is posted. */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tx_get_dci_am(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci = uct_dcx_tx_get_dci(iface, ep);

    if (ucs_unlikely(ep->credits == 0) && (dci != NULL)) {
        return uct_dcx_fc_used_up(iface, ep, dci);
    }
    return dci;
}


/* The room in an exclusive queue of which nothing was used. */
int16_t
uct_dcx_tx_share(const uct_dcx_iface_t *iface, const uct_dcx_dci_t *dci);


/* Gives an exclusive initiator back to the pool if nothing is outstanding.
 * Returns the endpoint that parted with it, NULL if none did. */
static UCS_F_ALWAYS_INLINE uct_dcx_ep_t *
uct_dcx_tx_detach(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_ep_t *ep     = dci->ep;

    if (uct_dcx_dci_is_shared(dci) ||
        !uct_dcx_pool_settle(pool, dci->index, uct_dcx_sq_used(&dci->sq))) {
        return NULL;
    }

    dci->turn++;
    dci->ep       = NULL;
    dci->sq.carry = 0; /* nothing is left that a fence would wait for */
    if (ucs_unlikely(dci->sq.limit < dci->sq.ring)) {
        dci->sq.room  = uct_dcx_tx_share(iface, dci);
        dci->sq.limit = dci->sq.room;
    }
    if (ucs_likely(ep != NULL)) {
        ep->dci = UCT_DCX_NO_DCI;
    }
    return ep;
}


/* The same, and if the endpoint has requests in line, they wait for another
 * initiator from now on. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_settle(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_ep_t *ep = uct_dcx_tx_detach(iface, dci);

    if ((ep != NULL) &&
        ucs_unlikely(!ucs_arbiter_group_is_empty(&ep->pending))) {
        uct_dcx_pending_lost_dci(iface, ep, dci);
    }
}


/* What an operation returns that cannot be posted now, or never will be. */
ucs_status_t uct_dcx_tx_no_resource(uct_dcx_ep_t *ep);


/* A buffer for a copied operation; NULL if memory is short. */
static UCS_F_ALWAYS_INLINE uct_dcx_tx_desc_t *
uct_dcx_tx_get_desc(uct_dcx_iface_t *iface)
{
    return ucs_mpool_get_inline(&iface->tx_mp);
}


/* Starts a WQE with the ctrl segment left open and the peer's address. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_begin(uct_dcx_wqe_t *wqe, uct_dcx_dci_t *dci, uct_dcx_ep_t *ep)
{
    uct_dcx_sq_t *sq = &dci->sq;

    uct_dcx_wqe_begin(wqe, sq->start, sq->mask, sq->pi);
    uct_dcx_wqe_av(wqe, &ep->av);
    if (ep->flags & UCT_DCX_EP_FLAG_GRH) {
        uct_dcx_wqe_grh(wqe, &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh);
    }

    if (uct_dcx_dci_is_shared(dci)) {
        dci->eps[sq->pi & sq->mask] = ep;
        ep->last                    = sq->pi;
        sq->carry                   = dci->streams[ep->stream];
        dci->streams[ep->stream]    = UCT_DCX_WQE_STREAM(ep->stream);
    }
}


/* Completes the WQE and rings the doorbell. Each WQE asks for a completion;
 * uct_dcx_dci_retire() does not depend on it, an operation that nobody waits
 * for may leave MLX5_WQE_CTRL_CQ_UPDATE out if a later one has it. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_post(uct_dcx_dci_t *dci, const uct_dcx_wqe_t *wqe,
                const uct_dcx_tx_t *tx)
{
    uct_dcx_sq_t *sq        = &dci->sq;
    uct_dcx_wqe_ctrl_t ctrl = {
        .opcode   = tx->opcode,
        .opmod    = tx->opmod,
        .index    = sq->pi,
        .qpn      = sq->qpn,
        .flags    = tx->flags | sq->carry | MLX5_WQE_CTRL_CQ_UPDATE
    };
    uct_dcx_op_t *op;
    uint64_t doorbell;

    if (tx->done != NULL) {
        op         = uct_dcx_dci_push_op(dci, sq->pi);
        op->done   = tx->done;
        op->comp   = tx->comp;
        op->buffer = tx->buffer;
    }

    sq->carry = 0;
    doorbell  = uct_dcx_wqe_finish(wqe, wqe->first, &ctrl);
    uct_dcx_sq_ring(sq, uct_dcx_wqe_num_bb(wqe), doorbell);
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

/* Takes send completions of all queues but the first. Returns how many. */
unsigned uct_dcx_tx_poll_others(uct_dcx_iface_t *iface);

#endif
