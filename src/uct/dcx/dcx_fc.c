/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the sender's side: endpoints that ask for credits, wait for
 * them, and get them; see dcx_fc.h. Called by active messages (dcx_am.c) when
 * an endpoint has used up what it has, by the receiving side (dcx_rx.c) and by
 * progress, in the interface's thread.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>

#define UCT_DCX_FC_MIN_ASKS  64
#define UCT_DCX_FC_MAX_ASKS  UINT16_MAX
#define UCT_DCX_FC_NO_ASK    UINT16_MAX


static inline uct_dcx_fc_ask_t *
uct_dcx_fc_ask_of(const uct_dcx_fc_t *fc, const uct_dcx_ep_t *ep)
{
    return (ep->flags & UCT_DCX_EP_FLAG_FC_ASKED) ? &fc->asks[ep->reserve] :
                                                    NULL;
}


/* Makes the table of requests longer, at its end. */
static int uct_dcx_fc_extend(uct_dcx_fc_t *fc)
{
    unsigned count = ucs_min(ucs_max(fc->num_asks * 2, UCT_DCX_FC_MIN_ASKS),
                             UCT_DCX_FC_MAX_ASKS);
    uct_dcx_fc_ask_t *asks;

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
    return fc->free_ask != UCT_DCX_FC_NO_ASK;
}


/* NULL if there are too many, or memory is short: the endpoint asks when it
 * comes here again. */
static uct_dcx_fc_ask_t *uct_dcx_fc_take_ask(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_ask_t *ask;

    if ((fc->free_ask == UCT_DCX_FC_NO_ASK) && !uct_dcx_fc_extend(fc)) {
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


static void uct_dcx_fc_put_ask(uct_dcx_fc_t *fc, uct_dcx_fc_ask_t *ask)
{
    uct_dcx_ep_t *ep = ask->ep;

    ask->ep      = NULL;
    ask->next    = fc->free_ask;
    fc->free_ask = ask - fc->asks;
    ep->reserve  = 0;
    ep->flags   &= ~UCT_DCX_EP_FLAG_FC_ASKED;
    if (ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED) {
        ep->flags &= ~UCT_DCX_EP_FLAG_FC_BLOCKED;
        fc->num_blocked--;
    }
}


static void
uct_dcx_fc_post_request(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                        const uct_dcx_fc_ask_t *ask)
{
    const uct_dcx_fc_t *fc       = &iface->fc;
    uct_dcx_ep_t *ep             = ask->ep;
    uct_dcx_am_hdr_t hdr         = {.am_id = UCT_DCX_FC_ID_REQUEST};
    uct_dcx_fc_request_t request = {
        .token  = {
            .seq   = htobe32(ask->seq),
            .index = htobe16(ask - fc->asks)
        },
        .want   = htobe16(fc->sizes.window -
                          ucs_min(ep->credits, fc->sizes.window - 1)),
        .who    = htobe16((uintptr_t)ep / 16),
        .origin = fc->origin
    };
    uct_dcx_tx_t tx              = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED
    };
    uct_dcx_wqe_t wqe;

    uct_dcx_tx_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(hdr) + sizeof(request));
    uct_dcx_wqe_inline_head(&wqe, &hdr, sizeof(hdr));
    uct_dcx_wqe_inline_put(&wqe, &request, sizeof(request));
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_tx_post(dci, &wqe, &tx);
}


static void uct_dcx_fc_block(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_t *fc = &iface->fc;

    ep->flags |= UCT_DCX_EP_FLAG_FC_BLOCKED;
    if (fc->num_blocked++ == 0) {
        fc->next_tick = ucs_get_time() + fc->interval;
        iface->todo  |= UCT_DCX_TODO_FC;
    }
}


uct_dcx_dci_t *uct_dcx_fc_used_up(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                                  uct_dcx_dci_t *dci)
{
    uct_dcx_fc_ask_t *ask;

    if (!iface->fc.enabled) {
        ep->credits = UINT16_MAX;
        return dci;
    }

    if (!(ep->flags & UCT_DCX_EP_FLAG_FC_ASKED)) {
        ep->credits = ep->reserve;
        ep->reserve = 0;
        ask         = uct_dcx_fc_take_ask(&iface->fc, ep);
        if (ask != NULL) {
            uct_dcx_fc_post_request(iface, dci, ask);
        }
    }

    if (ep->credits > 0) {
        return uct_dcx_sq_has_room(&dci->sq) ? dci : NULL;
    }

    if ((ep->flags & UCT_DCX_EP_FLAG_FC_ASKED) &&
        !(ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED)) {
        uct_dcx_fc_block(iface, ep);
    }
    uct_dcx_tx_settle(iface, dci);
    return NULL;
}


static void uct_dcx_fc_give(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                            unsigned credits)
{
    const uct_dcx_credit_sizes_t *sizes = &iface->fc.sizes;
    uct_dcx_credit_t credit;

    credits     = ucs_min(ep->credits + credits, sizes->window);
    credit      = uct_dcx_credit_split(credits, sizes->reserve);
    ep->credits = credit.left;
    ep->reserve = credit.reserve;
}


static int uct_dcx_fc_receive_grant(uct_dcx_iface_t *iface,
                                    const void *message, unsigned length)
{
    uct_dcx_fc_t *fc                = &iface->fc;
    const uct_dcx_fc_grant_t *grant = message;
    uct_dcx_fc_ask_t *ask;
    uct_dcx_ep_t *ep;
    unsigned index;

    if (length != sizeof(*grant)) {
        return 0;
    }

    uct_dcx_credit_skip(&fc->book, iface->rx_cq.ci);
    index = be16toh(grant->token.index);
    ask   = (index < fc->num_asks) ? &fc->asks[index] : NULL;
    if ((ask == NULL) || (ask->ep == NULL) ||
        (ask->seq != be32toh(grant->token.seq))) {
        ucs_debug("iface %p: a grant for an endpoint that is no more", iface);
        return 1;
    }

    ep = ask->ep;
    uct_dcx_fc_put_ask(fc, ask);
    uct_dcx_fc_give(iface, ep, be16toh(grant->credits));
    uct_dcx_pending_resume(iface, ep);
    return 1;
}


int uct_dcx_fc_receive(uct_dcx_iface_t *iface, const uct_dcx_am_hdr_t *hdr,
                       unsigned length)
{
    length -= sizeof(*hdr);
    if (!iface->fc.enabled) {
        return 0;
    } else if (hdr->am_id == UCT_DCX_FC_ID_REQUEST) {
        return uct_dcx_fc_receive_request(iface, hdr + 1, length);
    } else if (hdr->am_id == UCT_DCX_FC_ID_GRANT) {
        return uct_dcx_fc_receive_grant(iface, hdr + 1, length);
    }
    return 0;
}


/* The request of a blocked endpoint was not answered yet. The receiver may be
 * busy, or had no memory for the answer; or it is dead, and then the device
 * says so when it is sent something. A probe takes no receive buffer of it,
 * a request does: those come at ever longer intervals. */
static void uct_dcx_fc_remind(uct_dcx_iface_t *iface, uct_dcx_fc_ask_t *ask)
{
    uct_dcx_ep_t *ep = ask->ep;
    uct_dcx_dci_t *dci;

    dci = uct_dcx_tx_get_dci(iface, ep);
    if (dci == NULL) {
        return;
    }

    ask->ticks++;
    if ((ask->ticks > 1) && ucs_is_pow2(ask->ticks)) {
        uct_dcx_fc_post_request(iface, dci, ask);
    } else {
        uct_dcx_ep_post_probe(ep, dci);
    }
}


static void uct_dcx_fc_tick(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    unsigned i;

    for (i = 0; i < fc->num_asks; ++i) {
        if ((fc->asks[i].ep != NULL) &&
            (fc->asks[i].ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED)) {
            uct_dcx_fc_remind(iface, &fc->asks[i]);
        }
    }
}


void uct_dcx_fc_progress(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    ucs_time_t now;

    uct_dcx_fc_grant_held(iface);
    if (fc->num_blocked > 0) {
        now = ucs_get_time();
        if (now >= fc->next_tick) {
            fc->next_tick = now + fc->interval;
            uct_dcx_fc_tick(iface);
        }
    } else if (!uct_dcx_fc_is_ready(fc)) {
        iface->todo &= ~UCT_DCX_TODO_FC;
    }
}


int uct_dcx_fc_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left)
{
    ucs_time_t now;

    *left = 0;
    if (fc->num_blocked == 0) {
        return 0;
    }

    now   = ucs_get_time();
    *left = (now < fc->next_tick) ? fc->next_tick - now : 0;
    return 1;
}


int uct_dcx_fc_has_pending(uct_dcx_fc_t *fc)
{
    unsigned i;

    for (i = 0; (fc->num_blocked > 0) && (i < fc->num_asks); ++i) {
        if ((fc->asks[i].ep != NULL) &&
            uct_dcx_pending_is_blocked(fc->asks[i].ep)) {
            return 1;
        }
    }
    return 0;
}


/* It asks when it has used them all up, and waits a round trip then, once: a
 * job has many peers that never get so many messages. */
void uct_dcx_fc_ep_init(uct_dcx_ep_t *ep, unsigned initial)
{
    ep->credits = initial;
    ep->reserve = 0;
}


void uct_dcx_fc_ep_cleanup(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_fc_ask_t *ask = uct_dcx_fc_ask_of(&iface->fc, ep);

    if (ask != NULL) {
        uct_dcx_fc_put_ask(&iface->fc, ask);
    }
}


static void uct_dcx_fc_init_origin(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_origin_t *origin = &iface->fc.origin;
    uint32_t dctn               = iface->rx.dct->qp_num;

    uct_dcx_port_get_address(&iface->port, &origin->dev_addr);
    origin->dc_key  = htobe64(iface->rx.dc_key);
    origin->dctn[0] = dctn >> 16;
    origin->dctn[1] = dctn >> 8;
    origin->dctn[2] = dctn;
}


static unsigned uct_dcx_fc_size(unsigned long value)
{
    return (value == UCS_ULUNITS_AUTO) ? UCT_DCX_CREDIT_AUTO : value;
}


ucs_status_t uct_dcx_fc_init(uct_dcx_iface_t *iface,
                             const uct_dcx_iface_config_t *config)
{
    uct_dcx_fc_t *fc = &iface->fc;
    unsigned posted  = iface->rx.length - 1;

    fc->enabled     = config->fc.enable;
    fc->sizes       = uct_dcx_credit_sizes(posted,
                                           uct_dcx_fc_size(config->fc.window),
                                           uct_dcx_fc_size(config->fc.initial),
                                           config->fc.thresh);
    fc->asks        = NULL;
    fc->num_asks    = 0;
    fc->free_ask    = UCT_DCX_FC_NO_ASK;
    fc->seq         = 0;
    fc->num_blocked = 0;
    fc->interval    = ucs_time_from_sec(config->fc.resend_timeout);

    if (fc->enabled && ((fc->sizes.window > posted) ||
                        (fc->sizes.initial > fc->sizes.window))) {
        ucs_error("UCX_DCX_FC_INITIAL (%u) may be no more than "
                  "UCX_DCX_FC_WINDOW (%u), and that no more than "
                  "UCX_DCX_RX_QUEUE_LEN (%u)", fc->sizes.initial,
                  fc->sizes.window, posted);
        return UCS_ERR_INVALID_PARAM;
    }

    uct_dcx_fc_init_origin(iface);
    return uct_dcx_fc_grant_init(iface);
}


void uct_dcx_fc_stop(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_grant_stop(iface);
    iface->todo &= ~UCT_DCX_TODO_FC;
}


void uct_dcx_fc_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_grant_cleanup(iface);
    ucs_free(iface->fc.asks);
}
