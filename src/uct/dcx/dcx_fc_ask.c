/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control: the requests of the sender's side, and who waits for their
 * answers; see dcx_fc.h. A request has a place in a table that grows. An
 * endpoint for which there is none is blocked all the same, and asks with the
 * tick of the timer. Called by dcx_fc.c, in the interface's thread.
 */
#include "dcx_tx.h"

#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>

#define UCT_DCX_FC_MIN_ASKS  64
#define UCT_DCX_FC_MAX_ASKS  UINT16_MAX
#define UCT_DCX_FC_NO_ASK    UINT16_MAX


/* A request as it lies in its WQE: who wants what in the first segment, our
 * address in the others. */
typedef struct uct_dcx_fc_request_head {
    __be32             byte_count;
    uct_dcx_am_hdr_t   hdr;
    uct_dcx_fc_token_t token;
    __be16             want;
    __be16             who;
} UCS_S_PACKED uct_dcx_fc_request_head_t;

static_assert(sizeof(uct_dcx_fc_request_head_t) == UCT_DCX_WQE_SEG,
              "one segment");
static_assert(sizeof(uct_dcx_fc_request_t) ==
              sizeof(uct_dcx_fc_request_head_t) - sizeof(__be32) -
              sizeof(uct_dcx_am_hdr_t) + sizeof(uct_dcx_fc_origin_t),
              "with nothing in between");


/* --- the table ------------------------------------------------------------ */

/* Makes it longer, at its end. */
static int uct_dcx_fc_extend(uct_dcx_fc_t *fc)
{
    unsigned count = ucs_min(ucs_max(fc->num_asks * 2, UCT_DCX_FC_MIN_ASKS),
                             fc->max_asks);
    uct_dcx_fc_ask_t *asks;

    if (count <= fc->num_asks) {
        return 0;
    }

    asks = ucs_realloc(fc->asks, count * sizeof(*asks), "uct_dcx_fc_asks");
    if (asks == NULL) {
        return 0;
    }

    fc->asks = asks;
    while (fc->num_asks < count) {
        asks[fc->num_asks].ep   = NULL;
        asks[fc->num_asks].next = fc->free_ask;
        fc->free_ask            = fc->num_asks++;
    }
    return 1;
}


/* Whether one more can be on the way: not if there are too many, or memory is
 * short. */
static inline int uct_dcx_fc_has_place(uct_dcx_fc_t *fc)
{
    return (fc->free_ask != UCT_DCX_FC_NO_ASK) || uct_dcx_fc_extend(fc);
}


/* NULL if there is no place for it. */
static uct_dcx_fc_ask_t *uct_dcx_fc_take_ask(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_ask_t *ask;

    if (!uct_dcx_fc_has_place(fc)) {
        return NULL;
    }

    ep->reserve  = fc->free_ask;
    ep->flags   |= UCT_DCX_EP_FLAG_FC_ASKED;
    ask          = &fc->asks[ep->reserve];
    fc->free_ask = ask->next;
    ask->ep      = ep;
    ask->seq     = fc->seq++;
    ask->ticks   = 0;
    return ask;
}


/* Whether an endpoint is blocked, and no request of it is on the way. */
static inline int uct_dcx_fc_is_unasked(const uct_dcx_ep_t *ep)
{
    return (ep->flags & (UCT_DCX_EP_FLAG_FC_BLOCKED |
                         UCT_DCX_EP_FLAG_FC_ASKED)) ==
           UCT_DCX_EP_FLAG_FC_BLOCKED;
}


void uct_dcx_fc_block(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_t *fc = &iface->fc;

    uct_dcx_pending_block(iface, ep);
    ep->flags       |= UCT_DCX_EP_FLAG_FC_BLOCKED;
    fc->num_unasked += uct_dcx_fc_is_unasked(ep);
    if (fc->num_blocked++ == 0) {
        fc->next_tick = ucs_get_time() + fc->interval;
        iface->todo  |= UCT_DCX_TODO_FC;
    }
}


void uct_dcx_fc_unblock(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_ask_t *ask;

    if (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) {
        fc->num_unasked -= uct_dcx_fc_is_unasked(ep);
        fc->num_blocked--;
    }

    if (ep->flags & UCT_DCX_EP_FLAG_FC_ASKED) {
        ask          = &fc->asks[ep->reserve];
        ask->ep      = NULL;
        ask->next    = fc->free_ask;
        fc->free_ask = ep->reserve;
        ep->reserve  = 0;
    }
    ep->flags &= ~(UCT_DCX_EP_FLAG_FC_ASKED | UCT_DCX_EP_FLAG_FC_BLOCKED);
}


/* --- requests ------------------------------------------------------------- */

static UCS_F_ALWAYS_INLINE void
uct_dcx_fc_post_on_way(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                       const uct_dcx_fc_ask_t *ask, int is_plain)
{
    const uct_dcx_fc_t *fc         = &iface->fc;
    const uint8_t *origin          = fc->origin.segs;
    uct_dcx_ep_t *ep               = ask->ep;
    uct_dcx_fc_request_head_t head = {
        .byte_count = htobe32(MLX5_INLINE_SEG |
                              (sizeof(uct_dcx_am_hdr_t) +
                               sizeof(uct_dcx_fc_request_t))),
        .hdr.am_id  = UCT_DCX_FC_ID_REQUEST,
        .token      = {
            .seq   = htobe32(ask->seq),
            .index = htobe16(ask - fc->asks)
        },
        .want       = htobe16(fc->sizes.window -
                              ucs_min(ep->credits, fc->sizes.window - 1)),
        .who        = htobe16((uintptr_t)ep / 16)
    };
    uct_dcx_tx_t tx                = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED
    };
    uct_dcx_wqe_t wqe;
    unsigned i;

    uct_dcx_tx_start(&wqe, dci, ep, is_plain);
    memcpy(uct_dcx_wqe_seg(&wqe), &head, UCT_DCX_WQE_SEG);
    for (i = 0; i < sizeof(fc->origin); i += UCT_DCX_WQE_SEG) {
        memcpy(uct_dcx_wqe_seg(&wqe), origin + i, UCT_DCX_WQE_SEG);
    }
    uct_dcx_tx_post(dci, &wqe, &tx);
}


static UCS_F_NOINLINE void
uct_dcx_fc_post_request(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                        const uct_dcx_fc_ask_t *ask)
{
    uct_dcx_fc_post_on_way(iface, dci, ask, 0);
}


uct_dcx_dci_t *
uct_dcx_fc_used_up_plain(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_ask_t *ask;
    uct_dcx_dci_t *dci;

    if (!iface->fc.enabled || (ep->flags & UCT_DCX_EP_FLAG_FC_ASKED) ||
        (ep->reserve == 0)) {
        return NULL;
    }

    dci = uct_dcx_tx_get_plain(iface, ep);
    if (dci == NULL) {
        return NULL;
    }

    ep->credits = ep->reserve;
    ep->reserve = 0;
    ask         = uct_dcx_fc_take_ask(&iface->fc, ep);
    if (ask != NULL) {
        uct_dcx_fc_post_on_way(iface, dci, ask, 1);
    }

    if (!uct_dcx_sq_is_clear(&dci->sq)) {
        return NULL;
    }

    uct_dcx_sq_signal(&dci->sq); /* it may be the last one for now */
    return dci;
}


void uct_dcx_fc_ask(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                    uct_dcx_dci_t *dci)
{
    uct_dcx_fc_ask_t *ask = uct_dcx_fc_take_ask(&iface->fc, ep);

    if (ask != NULL) {
        uct_dcx_fc_post_request(iface, dci, ask);
    }
}


/* --- the timer ------------------------------------------------------------ */

/* An initiator for a reminder, which does not stand in line: without it those
 * who do may wait for ever. It takes one WQE, now and then. */
static uct_dcx_dci_t *
uct_dcx_fc_get_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    /* it may get a shared one in which others are in line, too */
    if ((ep->dci == UCT_DCX_NO_DCI) &&
        (uct_dcx_tx_attach(iface, ep) == NULL) &&
        ((ep->dci == UCT_DCX_NO_DCI) ||
         (ep->flags & (UCT_DCX_EP_FLAG_INVALIDATED |
                       UCT_DCX_EP_FLAG_FAILED)))) {
        return NULL;
    }

    dci = &iface->dci.dci[ep->dci];
    if (!uct_dcx_sq_fits(&dci->sq)) {
        return NULL;
    }

    uct_dcx_sq_signal(&dci->sq);
    uct_dcx_sq_look(&dci->sq); /* as others may be in line */
    return dci;
}


/* Whether that found none because none was idle: later there will be one. If the
 * endpoint has one that is full, what is in there tells whether the peer is
 * dead. */
static inline int uct_dcx_fc_has_no_dci(const uct_dcx_ep_t *ep)
{
    return (ep->dci == UCT_DCX_NO_DCI) &&
           !(ep->flags & UCT_DCX_EP_FLAG_FAILED);
}


/* The request of a blocked endpoint was not answered yet. The receiver may be
 * busy, or had no memory for the answer; or it is dead, and then the device
 * says so when it is sent something. A probe takes no receive buffer of it,
 * a request does: those come at ever longer intervals. Returns 0 if there is no
 * initiator for that now. */
static int uct_dcx_fc_remind(uct_dcx_iface_t *iface, uct_dcx_fc_ask_t *ask)
{
    uct_dcx_ep_t *ep = ask->ep;
    uct_dcx_dci_t *dci;

    if ((ep == NULL) || !(ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED)) {
        return 1;
    }

    dci = uct_dcx_fc_get_dci(iface, ep);
    if (dci == NULL) {
        return !uct_dcx_fc_has_no_dci(ep);
    }

    ask->ticks++;
    if ((ask->ticks > 1) && ucs_is_pow2(ask->ticks)) {
        uct_dcx_fc_post_request(iface, dci, ask);
    } else {
        uct_dcx_ep_post_probe(ep, dci);
    }
    return 1;
}


/* There was no place for its request before. */
static void uct_dcx_fc_ask_late(void *obj, void *arg)
{
    uct_dcx_iface_t *iface = arg;
    uct_dcx_fc_t *fc       = &iface->fc;
    uct_dcx_ep_t *ep       = obj;
    uct_dcx_dci_t *dci;

    if (!uct_dcx_fc_is_unasked(ep) || !uct_dcx_fc_has_place(fc)) {
        return;
    }

    dci = uct_dcx_fc_get_dci(iface, ep);
    if (dci == NULL) {
        fc->is_late_due |= uct_dcx_fc_has_no_dci(ep);
        return;
    }

    uct_dcx_fc_ask(iface, ep, dci);
    fc->num_unasked--;
}


void uct_dcx_fc_tick(uct_dcx_fc_t *fc)
{
    fc->num_due     = fc->num_asks;
    fc->is_late_due = (fc->num_unasked > 0);
}


void uct_dcx_fc_remind_due(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;

    if (fc->is_late_due && (uct_dcx_pool_has_idle(&iface->dci.pool) ||
                            (iface->dci.pool.size.num_exclusive == 0))) {
        fc->is_late_due = 0;
        uct_dcx_ep_for_each(iface, uct_dcx_fc_ask_late, iface);
    }

    for (; fc->num_due > 0; --fc->num_due) {
        if (!uct_dcx_fc_remind(iface, &fc->asks[fc->next_due])) {
            return;
        }
        fc->next_due = (fc->next_due + 1) % fc->num_asks;
    }
}


static void uct_dcx_fc_count_pending(void *obj, void *arg)
{
    uct_dcx_ep_t *ep = obj;

    *(unsigned*)arg += uct_dcx_fc_is_unasked(ep) &&
                       uct_dcx_pending_is_blocked(ep);
}


int uct_dcx_fc_has_pending(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    unsigned pending = 0;
    unsigned i;

    for (i = 0; (fc->num_blocked > 0) && (i < fc->num_asks); ++i) {
        if ((fc->asks[i].ep != NULL) &&
            uct_dcx_pending_is_blocked(fc->asks[i].ep)) {
            return 1;
        }
    }

    if (fc->num_unasked > 0) {
        uct_dcx_ep_for_each(iface, uct_dcx_fc_count_pending, &pending);
    }
    return pending > 0;
}


void uct_dcx_fc_ask_init(uct_dcx_fc_t *fc)
{
    fc->asks        = NULL;
    fc->num_asks    = 0;
    fc->max_asks    = UCT_DCX_FC_MAX_ASKS;
    fc->free_ask    = UCT_DCX_FC_NO_ASK;
    fc->seq         = 0;
    fc->num_blocked = 0;
    fc->num_unasked = 0;
    fc->num_due     = 0;
    fc->next_due    = 0;
    fc->is_late_due = 0;
}


void uct_dcx_fc_ask_cleanup(uct_dcx_fc_t *fc)
{
    ucs_free(fc->asks);
}
