/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the sender's side: endpoints that ask for credits, wait for
 * them, and get them; see dcx_fc.h. Called by active messages (dcx_am.c) when
 * an endpoint has used up what it has, by the receiving side (dcx_rx.c) and by
 * progress, in the interface's thread.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>


void uct_dcx_fc_wait(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (!(ep->flags & UCT_DCX_EP_FLAG_FC_BLOCKED)) {
        uct_dcx_fc_block(iface, ep);
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &iface->dci.dci[ep->dci];
        uct_dcx_tx_settle(iface, dci);
        uct_dcx_tx_ask(dci); /* it lets go of it soon */
    }
}


uct_dcx_dci_t *uct_dcx_fc_used_up(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep,
                                  uct_dcx_dci_t *dci)
{
    if (!iface->fc.enabled) {
        ep->credits = UINT16_MAX;
        return dci;
    }

    ep->credits = ep->reserve;
    ep->reserve = 0;
    uct_dcx_fc_ask(iface, ep, dci);
    if (ep->credits == 0) {
        uct_dcx_fc_wait(iface, ep);
        return NULL;
    }
    return uct_dcx_dci_has_room(dci, ep) ? dci : NULL;
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


static void uct_dcx_fc_receive_grant(uct_dcx_iface_t *iface,
                                     const uct_dcx_fc_grant_t *grant)
{
    uct_dcx_fc_t *fc = &iface->fc;
    uct_dcx_ep_t *ep = uct_dcx_fc_find(fc, &grant->token);

    uct_dcx_credit_skip(&fc->book, iface->rx_cq.ci);
    if (ucs_unlikely(ep == NULL)) {
        ucs_debug("iface %p: a grant for an endpoint that is no more", iface);
        return;
    }

    uct_dcx_fc_unblock(fc, ep);
    uct_dcx_fc_give(iface, ep, be16toh(grant->credits));
    uct_dcx_pending_resume(iface, ep);
}


void uct_dcx_fc_receive(uct_dcx_iface_t *iface, const uct_dcx_am_hdr_t *hdr,
                        size_t length)
{
    const void *message = hdr + 1;

    if (!iface->fc.enabled || (length < sizeof(*hdr))) {
        uct_dcx_rx_no_am(iface, hdr, length);
    } else if ((hdr->am_id == UCT_DCX_FC_ID_GRANT) &&
               (length == sizeof(*hdr) + sizeof(uct_dcx_fc_grant_t))) {
        uct_dcx_fc_receive_grant(iface, message);
    } else if ((hdr->am_id == UCT_DCX_FC_ID_REQUEST) &&
               (length == sizeof(*hdr) + sizeof(uct_dcx_fc_request_t)) &&
               (((const uct_dcx_fc_request_t*)message)->want != 0)) {
        uct_dcx_fc_receive_request(iface, message);
    } else {
        uct_dcx_rx_no_am(iface, hdr, length);
    }
}


void uct_dcx_fc_progress(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    ucs_time_t now;

    if (uct_dcx_fc_is_ready(fc)) {
        uct_dcx_fc_grant_held(iface);
    }

    if (fc->num_blocked > 0) {
        now = ucs_get_time();
        if (now >= fc->next_tick) {
            fc->next_tick = now + fc->interval;
            uct_dcx_fc_tick(fc);
        }
        uct_dcx_fc_remind_due(iface);
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


/* It asks when it has used them all up, and waits a round trip then, once: a
 * job has many peers that never get so many messages. */
void uct_dcx_fc_ep_init(uct_dcx_ep_t *ep, unsigned initial)
{
    ep->credits = initial;
    ep->reserve = 0;
}


void uct_dcx_fc_ep_cleanup(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    if (ep->flags & (UCT_DCX_EP_FLAG_FC_ASKED | UCT_DCX_EP_FLAG_FC_BLOCKED)) {
        uct_dcx_fc_unblock(&iface->fc, ep);
    }
}


static void uct_dcx_fc_init_origin(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_origin_t *origin = &iface->fc.origin.fields;
    uint32_t dctn               = iface->rx.dct->qp_num;

    memset(&iface->fc.origin, 0, sizeof(iface->fc.origin));
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
    fc->interval    = ucs_time_from_sec(config->fc.resend_timeout);
    uct_dcx_fc_ask_init(fc);

    if (fc->enabled && ((fc->sizes.window > posted) ||
                        (fc->sizes.initial > fc->sizes.window))) {
        ucs_error("UCX_DCX_FC_INITIAL (%u) may be no more than "
                  "UCX_DCX_FC_WINDOW (%u), and that no more than "
                  "UCX_DCX_RX_QUEUE_LEN (%u)", fc->sizes.initial,
                  fc->sizes.window, posted);
        return UCS_ERR_INVALID_PARAM;
    }

    uct_dcx_fc_init_origin(iface);
    return uct_dcx_fc_grant_init(iface, config->rx.rnr_timeout);
}


void uct_dcx_fc_stop(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_grant_stop(iface);
    iface->todo &= ~UCT_DCX_TODO_FC;
}


void uct_dcx_fc_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_grant_cleanup(iface);
    uct_dcx_fc_ask_cleanup(&iface->fc);
}
