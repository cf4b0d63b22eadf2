/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the receiver's side: a request is answered with a grant at
 * once; see dcx_fc.h. It is handled where messages are delivered, after all
 * earlier messages of its sender. A grant is sent on an endpoint of its own: it
 * waits for an initiator as others do, and needs no credits.
 *
 * The origin of a request may be dead, or forged. So answers use all exclusive
 * initiators but one, and others wait for these (fc->waiting). An answer that
 * is not acknowledged in time is canceled. A shared initiator cannot be
 * canceled: there all answers are sent at once, and end with the retries of the
 * device.
 *
 * An answer that fails is put off with all others to its origin (fc->late), as
 * the link may be down. These use one initiator, one after the other, for a
 * while; if one of them fails, that of another origin is next. The pause
 * between them doubles, as each failure costs a reset of the initiator. When an
 * answer to an origin arrives, all others to it follow. After the while a peer
 * that lives sends its request again.
 */
#include "dcx_fc_grant.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>

/* Answers allocated at a time, and their maximum. If more endpoints send
 * requests at the same time, some have to repeat them. */
#define UCT_DCX_FC_CHUNK       16
#define UCT_DCX_FC_MAX_ANSWERS 65536

/* Seconds after which an answer is canceled: longer than a round trip in any
 * network that works */
#define UCT_DCX_FC_PATIENCE 0.2

/* Seconds from the request for which an answer is sent again if it is not
 * acknowledged */
#define UCT_DCX_FC_LIFE 8

/* Answers to an origin that are put off at a time */
#define UCT_DCX_FC_MAX_LATE 64

/* Seconds from the begin of an answer that is sent again to the next one, at
 * first. It doubles up to UCT_DCX_FC_PATIENCE. */
#define UCT_DCX_FC_PAUSE 0.001


/* Messages of an endpoint that take no credit at a time: a request, and the
 * answer to one */
#define UCT_DCX_FC_EXTRA_MSGS 2

/* Peers for which the first half of the receive queue is always enough */
#define UCT_DCX_FC_MIN_PEERS 4


/* An answer, and the endpoint to the peer that sent the request. Both are
 * reused for the next request of any peer. */
typedef struct uct_dcx_fc_answer {
    uct_dcx_grh_ep_t ep;
    uint8_t has_ep;
    uint8_t id;            /* UCT_DCX_FC_ID_* */
    uint8_t is_granted;    /* @request.state is the grant */
    ucs_time_t since;      /* first tick that saw it in fc->sending; 0: none */
    ucs_time_t born;       /* when the request came */
    uct_pending_req_t req; /* waits for an initiator */
    ucs_list_link_t list;  /* entry of fc->waiting, fc->sending or fc->late */
    uct_dcx_fc_request_t request;
} uct_dcx_fc_answer_t;


static void uct_dcx_fc_answer_init(ucs_mpool_t *mp, void *obj, void *chunk)
{
    ((uct_dcx_fc_answer_t *)obj)->has_ep = 0;
}


/* Destroys the endpoint of an answer. The initiators are gone by then. */
static void uct_dcx_fc_answer_cleanup(ucs_mpool_t *mp, void *obj)
{
    const uct_dcx_fc_t *fc      = ucs_container_of(mp, uct_dcx_fc_t, answers);
    uct_dcx_fc_answer_t *answer = obj;

    if (answer->has_ep) {
        uct_dcx_tx_unbind(&answer->ep.super);
        fc->ep_ops->cleanup(&answer->ep.super);
    }
}


static ucs_mpool_ops_t uct_dcx_fc_answer_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = uct_dcx_fc_answer_init,
    .obj_cleanup   = uct_dcx_fc_answer_cleanup,
};


/* Connects the endpoint of an answer to the origin of its request. Creates it
 * the first time, and again if it has failed since. */
static ucs_status_t uct_dcx_fc_set_target(uct_dcx_fc_t *fc,
                                          uct_dcx_fc_answer_t *answer)
{
    const uct_dcx_route_t route = {
        .target    = &answer->request.origin,
        .own_dctn  = fc->queues->rx.dctn,
        .is_answer = 1,
    };
    uct_dcx_ep_t *ep = &answer->ep.super;
    ucs_status_t status;

    if (answer->has_ep && ucs_unlikely(ep->state == UCT_DCX_EP_FAILED)) {
        fc->ep_ops->cleanup(ep);
        answer->has_ep = 0;
    }

    if (ucs_unlikely(!answer->has_ep)) {
        status = fc->ep_ops->init(ep, fc->queues);
        if (status != UCS_OK) {
            return status;
        }
        answer->has_ep = 1;

        /* errors are not reported to the user */
        ep->flags |= UCT_DCX_EP_FLAG_MUTED | UCT_DCX_EP_FLAG_GRANT;
    }

    status = uct_dcx_port_make_av(&fc->queues->port, &route, &ep->av,
                                  &answer->ep.grh);
    if (status != UCS_OK) {
        return status;
    }

    ep->flags = (ep->flags & ~UCT_DCX_EP_FLAG_GRH) |
                (uct_dcx_av_has_grh(&ep->av) ? UCT_DCX_EP_FLAG_GRH : 0);
    return UCS_OK;
}


void uct_dcx_fc_check_queue(uct_dcx_fc_t *fc, unsigned offer)
{
    uct_dcx_queues_t *queues = fc->queues;
    unsigned extra = fc->bank.granted[0] + fc->bank.granted[1] + offer;
    size_t num_eps = queues->eps.plain.num_used + queues->eps.grh.num_used +
                     queues->eps.small.num_used;
    size_t own = ucs_max(num_eps, UCT_DCX_FC_MIN_PEERS) *
                 (fc->bank.base + UCT_DCX_FC_EXTRA_MSGS);

    if (ucs_unlikely((own + extra >= queues->rx.length) ||
                     (extra > fc->bank.size * 3 / 4)) &&
        (queues->rx.length < queues->rx.max_length)) {
        uct_dcx_srq_grow(&queues->rx);
        uct_dcx_queues_refill(queues);
    }
}


/* Returns the credits available for a grant, all backed by posted buffers. 0
 * while memory is short. */
static unsigned uct_dcx_fc_offer(uct_dcx_fc_t *fc)
{
    unsigned offer   = uct_dcx_credit_offer(&fc->bank);
    uct_dcx_rx_t *rx = &fc->queues->rx;

    uct_dcx_fc_check_queue(fc, offer);
    if (uct_dcx_srq_num_free(rx) > 0) {
        uct_dcx_srq_post(rx);
    }
    return (uct_dcx_srq_num_free(rx) > 0) ? 0 : offer;
}


/* Returns a grant for an endpoint with this state. */
static uct_dcx_fc_grant_t uct_dcx_fc_grant(uct_dcx_fc_t *fc,
                                           const uct_dcx_fc_grant_t *state)
{
    uct_dcx_fc_grant_t grant = *state;
    uct_dcx_credit_extra_t extra;

    grant.credits = htobe16(uct_dcx_credit_grant(
        &fc->bank, be16toh(state->credits), uct_dcx_fc_offer(fc), &extra));
    grant.extra   = htobe16(extra.credits);
    grant.epoch   = htobe16(extra.epoch);
    return grant;
}


/* Takes an answer out of fc->sending. */
static void uct_dcx_fc_unlist_answer(uct_dcx_fc_t *fc,
                                     uct_dcx_fc_answer_t *answer)
{
    ucs_list_del(&answer->list);
    fc->num_sending--;
    if (fc->retried == answer) {
        fc->retried = NULL;
    }
}


/* Ends an answer that was begun. */
static void uct_dcx_fc_end_answer(uct_dcx_fc_t *fc, uct_dcx_fc_answer_t *answer)
{
    uct_dcx_fc_unlist_answer(fc, answer);
    ucs_mpool_put(answer);
}


static int uct_dcx_fc_is_to(const uct_dcx_fc_answer_t *answer,
                            const uct_dcx_target_t *origin)
{
    return memcmp(&answer->request.origin, origin, sizeof(*origin)) == 0;
}


/* Moves the answers in @from to an origin to the end of @to, in order. Drops
 * them behind the first UCT_DCX_FC_MAX_LATE, as they may be forged. */
static void uct_dcx_fc_move_origin(ucs_list_link_t *from, ucs_list_link_t *to,
                                   const uct_dcx_target_t *origin)
{
    unsigned num = 0;
    uct_dcx_fc_answer_t *answer, *next;
    ucs_list_link_t moved;

    ucs_list_head_init(&moved);
    ucs_list_for_each_safe (answer, next, from, list) {
        if (uct_dcx_fc_is_to(answer, origin)) {
            ucs_list_del(&answer->list);
            if (num++ < UCT_DCX_FC_MAX_LATE) {
                ucs_list_add_tail(&moved, &answer->list);
            } else {
                ucs_mpool_put(answer);
            }
        }
    }
    ucs_list_splice_tail(to, &moved);
}


/* Drops late answers to requests of which @request is a repetition. */
static void uct_dcx_fc_forget_request(uct_dcx_fc_t *fc, uint8_t id,
                                      const uct_dcx_fc_request_t *request)
{
    const uct_dcx_fc_grant_t *state = &request->state;
    uct_dcx_fc_answer_t *answer, *next;

    ucs_list_for_each_safe (answer, next, &fc->late, list) {
        if ((answer->id == id) && uct_dcx_fc_is_to(answer, &request->origin) &&
            ((id == UCT_DCX_FC_ID_GRANT) ?
                 (answer->request.state.entry == state->entry) :
                 (answer->request.state.rndv == state->rndv))) {
            ucs_list_del(&answer->list);
            ucs_mpool_put(answer);
        }
    }
}


/* Returns non-zero if it is too late to send an answer again. */
static int uct_dcx_fc_is_old(const uct_dcx_fc_answer_t *answer, ucs_time_t now)
{
    return now - answer->born >= ucs_time_from_sec(UCT_DCX_FC_LIFE);
}


/* Ends all answers in @list, which were not begun. */
static void uct_dcx_fc_forget_all(ucs_list_link_t *list)
{
    while (!ucs_list_is_empty(list)) {
        ucs_mpool_put(ucs_list_extract_head(list, uct_dcx_fc_answer_t, list));
    }
}


/* Lets the late answers to the origin of @answer be sent, which has arrived:
 * the peer lives. If it was sent again, the next one follows at once. */
static void uct_dcx_fc_resume_others(uct_dcx_fc_t *fc,
                                     const uct_dcx_fc_answer_t *answer)
{
    uct_dcx_fc_move_origin(&fc->late, &fc->waiting, &answer->request.origin);
    if (fc->retried == answer) {
        fc->next_retry = 0;
    }
}


/* Handles a lost answer: it is sent again, after all others that are put off.
 * On RoCE the MAC of the peer may have changed: the next answer looks it up. */
static void uct_dcx_fc_lost_answer(uct_dcx_fc_t *fc,
                                   uct_dcx_fc_answer_t *answer)
{
    uct_dcx_target_t origin = answer->request.origin; /* it may be dropped */

    if (answer->ep.super.flags & UCT_DCX_EP_FLAG_GRH) {
        uct_dcx_port_forget(&fc->queues->port, &answer->ep.grh);
    }

    uct_dcx_fc_unlist_answer(fc, answer);
    if (fc->max_sending == 0) {
        ucs_mpool_put(answer); /* stopped: it is in no list any longer */
        return;
    }

    ucs_list_add_tail(&fc->late, &answer->list);
    uct_dcx_fc_move_origin(&fc->late, &fc->late, &origin);
    uct_dcx_fc_move_origin(&fc->waiting, &fc->late, &origin);
}


/* Ends an answer. Progress begins those that wait. */
static void uct_dcx_fc_done_answer(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                   ucs_status_t status)
{
    uct_dcx_fc_answer_t *answer = slot->buffer;
    uct_dcx_fc_t *fc            = uct_dcx_ep_queues(&answer->ep.super)->fc;

    if (ucs_likely(status == UCS_OK)) {
        if (ucs_unlikely((fc->retried != NULL) ||
                         !ucs_list_is_empty(&fc->late))) {
            uct_dcx_fc_resume_others(fc, answer);
        }
        uct_dcx_fc_end_answer(fc, answer);
    } else {
        uct_dcx_fc_lost_answer(fc, answer);
    }

    if (!ucs_list_is_empty(&fc->waiting) || !ucs_list_is_empty(&fc->late)) {
        fc->queues->dci.todo |= UCT_DCX_TODO_FC;
    } else if ((fc->num_sending == 0) && (fc->table.num_blocked == 0)) {
        fc->queues->dci.todo &= ~UCT_DCX_TODO_FC;
    }
}


/* Posts an answer. Returns UCS_ERR_NO_RESOURCE if it has to wait for an
 * initiator: call it again. Drops the answer if there will never be one: the
 * peer cannot be reached. */
static ucs_status_t uct_dcx_fc_post_answer(uct_dcx_fc_answer_t *answer)
{
    uct_dcx_ep_t *ep          = &answer->ep.super;
    uct_dcx_dci_set_t *set    = uct_dcx_ep_dci_set(ep);
    uct_dcx_fc_t *fc          = uct_dcx_ep_queues(ep)->fc;
    uct_dcx_am_hdr_t hdr      = {.am_id = answer->id};
    uct_dcx_fc_grant_t *state = &answer->request.state;
    uct_dcx_post_t tx         = {
                .opcode = MLX5_OPCODE_SEND,
                .flags  = MLX5_WQE_CTRL_SOLICITED,
                .done   = uct_dcx_fc_done_answer,
                .buffer = answer,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    dci = uct_dcx_tx_get_dci(ep); /* leaves initiators to their peers */
    if (ucs_unlikely(dci == NULL)) {
        if (!uct_dcx_tx_is_lost(set, ep) && (ep->state != UCT_DCX_EP_FAILED)) {
            return UCS_ERR_NO_RESOURCE;
        }
        uct_dcx_fc_end_answer(fc, answer);
        return UCS_OK;
    }

    if ((answer->id == UCT_DCX_FC_ID_GRANT) && !answer->is_granted) {
        *state             = uct_dcx_fc_grant(fc, state);
        answer->is_granted = 1; /* the peer takes it once, if sent again */
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(hdr) + sizeof(*state));
    uct_dcx_wqe_inline_head(&wqe, &hdr, sizeof(hdr));
    uct_dcx_wqe_inline_head(&wqe, state, sizeof(*state));
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    return UCS_OK;
}


static ucs_status_t uct_dcx_fc_resume_answer(uct_pending_req_t *req)
{
    return uct_dcx_fc_post_answer(
        ucs_container_of(req, uct_dcx_fc_answer_t, req));
}


/* Queues the answer until there is an initiator, or posts it if there is one by
 * now. */
static void uct_dcx_fc_wait_answer(uct_dcx_fc_answer_t *answer)
{
    answer->req.func = uct_dcx_fc_resume_answer;
    while ((uct_dcx_ep_pending_add(&answer->ep.super.super.super, &answer->req,
                                   0) != UCS_OK) &&
           (uct_dcx_fc_post_answer(answer) != UCS_OK)) {
    }
}


/* Posts an answer that is in no list, or queues it for an initiator. */
static void uct_dcx_fc_begin_answer(uct_dcx_fc_t *fc,
                                    uct_dcx_fc_answer_t *answer)
{
    if (uct_dcx_fc_set_target(fc, answer) != UCS_OK) {
        fc->retried = (fc->retried == answer) ? NULL : fc->retried;
        ucs_mpool_put(answer);
        return;
    }

    answer->since = 0;
    fc->num_sending++;
    fc->queues->dci.todo |= UCT_DCX_TODO_FC;
    ucs_list_add_tail(&fc->sending, &answer->list);
    if (ucs_unlikely(uct_dcx_fc_post_answer(answer) != UCS_OK)) {
        uct_dcx_fc_wait_answer(answer);
    }
}


void uct_dcx_fc_answer(uct_dcx_fc_t *fc, uint8_t id,
                       const uct_dcx_fc_request_t *request)
{
    uct_dcx_fc_answer_t *answer = ucs_mpool_get(&fc->answers);

    if (ucs_unlikely(answer == NULL)) {
        ucs_debug("iface %p: dropped a request", fc->queues);
        return;
    }

    answer->id         = id;
    answer->is_granted = 0;
    answer->born       = ucs_get_time();
    answer->request    = *request;
    if (ucs_unlikely(!ucs_list_is_empty(&fc->late))) {
        uct_dcx_fc_forget_request(fc, id, request);
    }

    if (ucs_likely(fc->num_sending < fc->max_sending)) {
        uct_dcx_fc_begin_answer(fc, answer);
    } else if (fc->max_sending > 0) {
        ucs_list_add_tail(&fc->waiting, &answer->list);
    } else {
        ucs_mpool_put(answer);
    }
}


/* Cancels an answer that takes too long. */
static void uct_dcx_fc_check_answer(uct_dcx_fc_t *fc,
                                    uct_dcx_fc_answer_t *answer, ucs_time_t now)
{
    uct_dcx_ep_t *ep = &answer->ep.super;

    if (answer->since == 0) {
        answer->since = now;
    } else if ((now - answer->since >= fc->patience) &&
               (ep->dci != UCT_DCX_NO_DCI)) {
        uct_dcx_ep_cancel(ep, &fc->queues->dci.dci[ep->dci]);
        answer->since = now;
    }
}


/* Returns non-zero if an answer in fc->late can be sent again when it is
 * due. */
static int uct_dcx_fc_may_retry(const uct_dcx_fc_t *fc)
{
    return (fc->late.next != &fc->late) && (fc->retried == NULL) &&
           (fc->num_sending < fc->max_sending);
}


int uct_dcx_fc_grant_time_left(const uct_dcx_fc_t *fc, ucs_time_t *left)
{
    int is_watched = (fc->num_sending > 0) && (fc->max_sending < UINT_MAX);
    int is_due     = (fc->waiting.next != &fc->waiting) &&
                 (fc->num_sending < fc->max_sending);
    ucs_time_t now;

    *left = is_due ? 0 : fc->patience;
    if (!is_due && uct_dcx_fc_may_retry(fc)) {
        now   = ucs_get_time();
        *left = (now < fc->next_retry) ? fc->next_retry - now : 0;
        return 1;
    }
    return is_due || is_watched;
}


/* Sends the first answer of fc->late again, or drops it if it has waited for
 * too long. The pause begins anew if nothing was sent again for a while. */
static void uct_dcx_fc_retry(uct_dcx_fc_t *fc, ucs_time_t now)
{
    uct_dcx_fc_answer_t *answer =
        ucs_list_extract_head(&fc->late, uct_dcx_fc_answer_t, list);

    if (uct_dcx_fc_is_old(answer, now)) {
        ucs_mpool_put(answer);
        return;
    }

    fc->pause      = (now - fc->next_retry > fc->patience) ?
                         ucs_time_from_sec(UCT_DCX_FC_PAUSE) :
                         ucs_min(2 * fc->pause, fc->patience);
    fc->next_retry = now + fc->pause;
    fc->retried    = answer;
    uct_dcx_fc_begin_answer(fc, answer);
}


void uct_dcx_fc_grant_progress(uct_dcx_fc_t *fc, ucs_time_t now)
{
    uct_dcx_fc_answer_t *answer;

    while ((fc->num_sending < fc->max_sending) &&
           !ucs_list_is_empty(&fc->waiting)) {
        answer = ucs_list_extract_head(&fc->waiting, uct_dcx_fc_answer_t, list);
        uct_dcx_fc_begin_answer(fc, answer);
    }

    while (uct_dcx_fc_may_retry(fc) && (now >= fc->next_retry)) {
        uct_dcx_fc_retry(fc, now);
    }

    if (fc->max_sending < UINT_MAX) {
        ucs_list_for_each (answer, &fc->sending, list) {
            uct_dcx_fc_check_answer(fc, answer, now);
        }
    }
}


void uct_dcx_fc_receive_request(uct_dcx_fc_t *fc,
                                const uct_dcx_fc_request_t *request)
{
    const uct_dcx_credit_extra_t extra = {
        .credits = be16toh(request->state.extra),
        .epoch   = be16toh(request->state.epoch),
    };

    uct_dcx_credit_return(&fc->bank, extra);
    uct_dcx_fc_answer(fc, UCT_DCX_FC_ID_GRANT, request);
}


ucs_status_t uct_dcx_fc_grant_init(uct_dcx_fc_t *fc)
{
    const uct_dcx_pool_t *pool = &fc->queues->dci.pool;

    ucs_list_head_init(&fc->waiting);
    ucs_list_head_init(&fc->late);
    ucs_list_head_init(&fc->sending);
    fc->patience    = ucs_time_from_sec(UCT_DCX_FC_PATIENCE);
    fc->max_sending = pool->policy->is_shared ? UINT_MAX :
                      (pool->num_dci > 1)     ? pool->num_dci - 1 :
                                                1;
    return uct_dcx_ucx_mpool_init(&fc->answers, sizeof(uct_dcx_fc_answer_t),
                                  UCT_DCX_FC_CHUNK, UCT_DCX_FC_MAX_ANSWERS,
                                  &uct_dcx_fc_answer_ops, "uct_dcx_fc_answers");
}


static void uct_dcx_fc_drop(uct_pending_req_t *req, void *arg)
{
    uct_dcx_fc_end_answer(arg, ucs_container_of(req, uct_dcx_fc_answer_t, req));
}


void uct_dcx_fc_grant_stop(uct_dcx_fc_t *fc)
{
    uct_dcx_fc_answer_t *answer, *next;

    fc->max_sending = 0; /* an answer that ends later is not sent again */
    uct_dcx_fc_forget_all(&fc->waiting);
    uct_dcx_fc_forget_all(&fc->late);
    ucs_list_for_each_safe (answer, next, &fc->sending, list) {
        uct_dcx_ep_pending_purge(&answer->ep.super.super.super, uct_dcx_fc_drop,
                                 fc);
    }
}
