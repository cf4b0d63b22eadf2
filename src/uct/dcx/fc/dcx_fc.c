/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the sender's side: endpoints request credits, wait for them,
 * and receive them; see dcx_fc.h.
 */
#include "dcx_fc_grant.h"
#include "dcx_fc_msg.h"
#include "dcx_fc_rndv.h"
#include "uct/dcx/base/dcx_figures.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/sched/dcx_pending.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <ucs/time/time.h>

/* Ticks after which a request is sent again, and then at each power of two: it
 * takes a receive buffer, and the receiver may only be busy. */
#define UCT_DCX_FC_RESEND_TICK 8


/* --- requests ------------------------------------------------------------- */

/* Posts a request. It returns the extra credits of the previous grant, but only
 * the first time: a repeated request returns 0. */
static void uct_dcx_fc_post_request(uct_dcx_fc_t *fc, uct_dcx_dci_t *dci,
                                    uct_dcx_fc_entry_t *entry)
{
    uct_dcx_ep_t *ep               = entry->ep;
    const uct_dcx_fc_grant_t state = {
        .entry   = htobe16(ep->fc_entry),
        .seq     = htobe16(entry->seq),
        .credits = htobe16(ep->credits),
        .extra   = htobe16(entry->extra.credits),
        .epoch   = htobe16(entry->extra.epoch),
    };

    uct_dcx_fc_post_msg(fc, dci, ep, UCT_DCX_FC_ID_REQUEST, &state);
    entry->extra.credits = 0;
    uct_dcx_figures_add(UCT_DCX_FIGURE_CREDITS, 1);
}


/* Blocks an endpoint without credits until its requested grant arrives. */
static void uct_dcx_fc_block(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = &fc->queues->dci;
    uct_dcx_dci_t *dci;

    if (ep->state != UCT_DCX_EP_BLOCKED) {
        uct_dcx_pending_block(set, ep);
        if (uct_dcx_fc_table_block(&fc->table, ep)) {
            fc->next_tick = ucs_get_time() + fc->interval;
            set->todo |= UCT_DCX_TODO_FC;
        }
    }

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &set->dci[ep->dci];
        uct_dcx_tx_release(set, dci);
        uct_dcx_signal_request(dci); /* its completion releases @dci */
    }
}


/* Handles an endpoint without available credits: uses its reserve, and requests
 * more. The first time it has no reserve, and waits for a round trip; most
 * peers in a large job never get so many messages. Without an entry it requests
 * nothing; RNR retries of the device then protect the receiver. */
static void uct_dcx_fc_used_up(uct_dcx_fc_t *fc, uct_dcx_ep_t *ep,
                               uct_dcx_dci_t *dci)
{
    uct_dcx_fc_entry_t *entry;

    if (!fc->enabled || (ep->state == UCT_DCX_EP_GIVEN_UP)) {
        ep->credits = UINT16_MAX;
        return;
    }

    entry = uct_dcx_fc_table_get(&fc->table, ep);
    if (entry == NULL) {
        ep->credits = ucs_max(fc->bank.base, 1);
        return;
    }

    ep->credits = entry->reserve;
    uct_dcx_tx_set_ep(ep, UCT_DCX_EP_REQUESTED);
    entry->ticks = 0;
    entry->seq += (entry->seq == UINT16_MAX) ? 2 : 1; /* 0: none */
    uct_dcx_fc_post_request(fc, dci, entry);
}


uct_dcx_dci_t *uct_dcx_fc_get_dci(uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);
    uct_dcx_fc_t *fc       = uct_dcx_ep_queues(ep)->fc;
    uct_dcx_dci_t *dci     = NULL;

    if (!uct_dcx_ep_has_requested(ep)) {
        dci = uct_dcx_tx_get(set, ep);
        if (dci == NULL) {
            return NULL;
        }
        uct_dcx_fc_used_up(fc, ep, dci);
    }

    if (ep->credits == 0) {
        uct_dcx_fc_block(fc, ep);
        return NULL;
    }

    if (!uct_dcx_dci_may_post(dci, ep)) {
        return NULL;
    }
    uct_dcx_tx_signal(set, dci); /* the request may have been the last WQE
                                  * without a check */
    return dci;
}


/* --- grants --------------------------------------------------------------- */

/* Returns the entry that sent the request. Returns NULL if it was answered
 * before, or the entry belongs to another endpoint now. */
static uct_dcx_fc_entry_t *uct_dcx_fc_find(const uct_dcx_fc_t *fc,
                                           const uct_dcx_fc_grant_t *grant)
{
    unsigned index = be16toh(grant->entry);
    uct_dcx_fc_entry_t *entry;

    if (index >= fc->table.num) {
        return NULL;
    }

    entry = &fc->table.entries[index];
    return ((entry->seq == be16toh(grant->seq)) &&
            ((entry->ep == NULL) || uct_dcx_ep_has_requested(entry->ep))) ?
               entry :
               NULL;
}


static UCS_F_NOINLINE void
uct_dcx_fc_receive_grant(uct_dcx_fc_t *fc, const uct_dcx_fc_grant_t *grant)
{
    uct_dcx_fc_entry_t *entry = uct_dcx_fc_find(fc, grant);
    unsigned credits, reserve;
    uct_dcx_ep_t *ep;

    if (ucs_unlikely(entry == NULL)) {
        ucs_debug("iface %p: dropped a late grant of credits", fc->queues);
        return;
    }

    ep                   = entry->ep;
    entry->extra.credits = be16toh(grant->extra);
    entry->extra.epoch   = be16toh(grant->epoch);
    if (ucs_unlikely(ep == NULL)) {
        return; /* destroyed: the next endpoint to that peer returns the
                 * grant */
    }

    credits        = ep->credits + be16toh(grant->credits);
    reserve        = entry->extra.credits * fc->thresh;
    entry->reserve = ucs_min(ucs_max(reserve, 1), credits - (credits > 0));
    ep->credits    = credits - entry->reserve;
    uct_dcx_fc_table_unblock(&fc->table, ep);
    uct_dcx_pending_resume(&fc->queues->dci, ep);
}


void uct_dcx_fc_receive(uct_dcx_fc_t *fc, const uct_dcx_am_hdr_t *hdr,
                        size_t length)
{
    unsigned id     = (length >= sizeof(*hdr)) ? hdr->am_id : 0;
    const void *msg = hdr + 1;
    size_t size     = length - sizeof(*hdr);

    if (fc->enabled && (id == UCT_DCX_FC_ID_GRANT) &&
        (size == sizeof(uct_dcx_fc_grant_t))) {
        uct_dcx_fc_receive_grant(fc, msg);
    } else if (fc->enabled && (id == UCT_DCX_FC_ID_REQUEST) &&
               (size == sizeof(uct_dcx_fc_request_t))) {
        uct_dcx_fc_receive_request(fc, msg);
    } else if ((id == UCT_DCX_FC_ID_ASK) &&
               (size == sizeof(uct_dcx_fc_request_t))) {
        uct_dcx_fc_receive_ask(fc, msg);
    } else if ((id == UCT_DCX_FC_ID_LOST) &&
               (size == sizeof(uct_dcx_fc_grant_t))) {
        uct_dcx_fc_receive_lost(fc, ((const uct_dcx_fc_grant_t *)msg)->rndv);
    } else {
        uct_dcx_queues_dropped(fc->queues,
                               "%zu bytes with unknown id %u: the sender runs "
                               "another version of dcx",
                               length, id);
    }
}


/* --- the timer ------------------------------------------------------------ */

/* Returns an initiator for a reminder. It bypasses the wait queue, where
 * endpoints may wait for the answer to it. It takes one WQE, rarely. */
static uct_dcx_dci_t *uct_dcx_fc_reminder_dci(uct_dcx_dci_set_t *set,
                                              uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if ((ep->dci == UCT_DCX_NO_DCI) && (uct_dcx_tx_attach(set, ep) == NULL)) {
        return NULL;
    }

    dci = &set->dci[ep->dci];
    if (!uct_dcx_dci_is_available(dci)) {
        return NULL;
    }

    uct_dcx_sq_signal(&dci->txq.sq);
    uct_dcx_sq_stop(&dci->txq.sq); /* others may be in its wait queue */
    return dci;
}


/* Reminds the receiver of a blocked endpoint's request. The receiver may be
 * busy, or had no memory for the answer; or it is dead, and then the device
 * reports an error when anything is sent. A probe takes no receive buffer.
 * Returns 0 if no initiator is idle: the caller retries later. If the
 * endpoint's own is full, the WQEs on it find out whether the peer is dead. */
static int uct_dcx_fc_remind(uct_dcx_fc_t *fc, uct_dcx_fc_entry_t *entry)
{
    uct_dcx_ep_t *ep = entry->ep;
    uct_dcx_dci_t *dci;

    if ((ep == NULL) || ep->state != UCT_DCX_EP_BLOCKED) {
        return 1;
    }

    if (uct_dcx_tx_is_lost(&fc->queues->dci, ep)) {
        uct_dcx_ep_no_resource(ep); /* makes the endpoint fail */
        return 1;
    }

    dci = uct_dcx_fc_reminder_dci(&fc->queues->dci, ep);
    if (dci == NULL) {
        return (ep->dci != UCT_DCX_NO_DCI) || (ep->state == UCT_DCX_EP_FAILED);
    }

    entry->ticks++;
    if ((entry->ticks >= UCT_DCX_FC_RESEND_TICK) && ucs_is_pow2(entry->ticks)) {
        uct_dcx_fc_post_request(fc, dci, entry);
    } else {
        uct_dcx_post_probe(ep, dci, NULL);
    }
    return 1;
}


static int uct_dcx_fc_has_ticks(const uct_dcx_fc_t *fc)
{
    return (fc->table.num_blocked > 0) || uct_dcx_fc_rndv_is_open(fc);
}


/* Reminds all blocked endpoints at each tick, and asks for rendezvous. If
 * initiators run out, the next call continues with the endpoints. */
static void uct_dcx_fc_tick(uct_dcx_fc_t *fc, ucs_time_t now)
{
    if (now >= fc->next_tick) {
        fc->next_tick = now + fc->interval;
        fc->num_due   = fc->table.num;
        uct_dcx_fc_rndv_tick(fc);
    }

    while ((fc->num_due > 0) &&
           uct_dcx_fc_remind(fc, &fc->table.entries[fc->next_due])) {
        fc->next_due = (fc->next_due + 1) % fc->table.num;
        fc->num_due--;
    }
}


void uct_dcx_fc_progress(uct_dcx_fc_t *fc)
{
    ucs_time_t now = ucs_get_time();
    ucs_time_t left;

    uct_dcx_fc_grant_progress(fc, now);
    if (uct_dcx_fc_has_ticks(fc)) {
        uct_dcx_fc_tick(fc, now);
    } else if (!uct_dcx_fc_grant_time_left(fc, &left)) {
        fc->queues->dci.todo &= ~(UCT_DCX_TODO_FC | UCT_DCX_TODO_RNDV);
    }
}


int uct_dcx_fc_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left)
{
    int has_answers = uct_dcx_fc_grant_time_left(fc, left);
    ucs_time_t now, tick;

    if (uct_dcx_fc_has_ticks(fc)) {
        now   = ucs_get_time();
        tick  = (now < fc->next_tick) ? fc->next_tick - now : 0;
        *left = has_answers ? ucs_min(*left, tick) : tick;
        return 1;
    }

    *left = has_answers ? *left : 0;
    return has_answers;
}


int uct_dcx_fc_has_pending(const uct_dcx_fc_t *fc)
{
    const uct_dcx_fc_table_t *table = &fc->table;
    unsigned i;

    for (i = 0; (table->num_blocked > 0) && (i < table->num); ++i) {
        if ((table->entries[i].ep != NULL) &&
            uct_dcx_pending_is_blocked(table->entries[i].ep)) {
            return 1;
        }
    }
    return 0;
}


/* --- opening and closing -------------------------------------------------- */

ucs_status_t uct_dcx_fc_init(uct_dcx_fc_t *fc, uct_dcx_queues_t *queues,
                             const uct_dcx_fc_ep_ops_t *ep_ops,
                             const uct_dcx_iface_config_t *config)
{
    uct_dcx_target_t *origin = &fc->origin.fields;
    unsigned window          = uct_dcx_config_credits(config->fc.window);
    unsigned initial         = uct_dcx_config_credits(config->fc.initial);
    unsigned posted          = queues->rx.max_length - 1;

    memset(fc, 0, sizeof(*fc));
    fc->queues   = queues;
    fc->ep_ops   = ep_ops;
    fc->enabled  = config->fc.enable;
    fc->thresh   = config->fc.thresh;
    fc->interval = ucs_time_from_sec(config->fc.resend_timeout);
    fc->bank     = uct_dcx_credit_bank(posted, config->rx.queue_len, window,
                                       initial);
    queues->fc   = fc;
    queues->dci.fc_table = &fc->table;
    uct_dcx_fc_table_init(&fc->table);
    if (fc->enabled && ((fc->bank.window > config->rx.queue_len) ||
                        (fc->bank.base > fc->bank.window))) {
        ucs_error("UCX_DCX_FC_INITIAL (%u) must not exceed UCX_DCX_FC_WINDOW "
                  "(%u), which must not exceed UCX_DCX_RX_QUEUE_LEN (%u)",
                  fc->bank.base, fc->bank.window, config->rx.queue_len);
        return UCS_ERR_INVALID_PARAM;
    }

    /* With tag matching there are fewer buffers than RX_QUEUE_LEN. */
    fc->bank.window = ucs_min(fc->bank.window, posted);
    fc->bank.base   = ucs_min(fc->bank.base, posted);

    uct_dcx_port_get_address(&queues->port, &origin->dev_addr);
    uct_dcx_target_set_dctn(origin->dctn, queues->rx.dctn);
    origin->dc_key = htobe64(queues->rx.dc_key);
    return uct_dcx_fc_grant_init(fc);
}


void uct_dcx_fc_stop(uct_dcx_fc_t *fc)
{
    uct_dcx_fc_grant_stop(fc);
    fc->queues->dci.todo &= ~(UCT_DCX_TODO_FC | UCT_DCX_TODO_RNDV);
}


void uct_dcx_fc_cleanup(uct_dcx_fc_t *fc)
{
    ucs_mpool_cleanup(&fc->answers, 1);
    uct_dcx_fc_table_cleanup(&fc->table);
}
