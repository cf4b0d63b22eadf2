/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the receiver's side: a request is answered with a grant at
 * once; see dcx_fc.h. It is handled where messages are delivered, after all
 * earlier messages of its sender. A grant is sent on an endpoint of its own: it
 * waits for an initiator as others do, and needs no credits. If the peer has
 * died meanwhile, no other endpoint is held up.
 */
#include "dcx_fc_grant.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>

/* Answers allocated at a time, and their maximum. If more endpoints send
 * requests at the same time, some have to repeat them. */
#define UCT_DCX_FC_CHUNK       16
#define UCT_DCX_FC_MAX_ANSWERS 65536


/* An answer, and the endpoint to the peer that sent the request. Both are reused
 * for the next request of any peer. */
typedef struct uct_dcx_fc_answer {
    uct_dcx_grh_ep_t ep;
    uint8_t has_ep;
    uint8_t id;            /* UCT_DCX_FC_ID_* */
    uct_pending_req_t req; /* waits for an initiator */
    ucs_list_link_t list;  /* entry of fc->waiting */
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


/* Returns the credits available for a grant, all backed by posted buffers. 0
 * while memory is short. */
static unsigned uct_dcx_fc_offer(uct_dcx_fc_t *fc)
{
    uct_dcx_rx_t *rx = &fc->queues->rx;

    if (uct_dcx_srq_num_free(rx) > 0) {
        uct_dcx_srq_post(rx);
    }
    return (uct_dcx_srq_num_free(rx) > 0) ? 0 : uct_dcx_credit_offer(&fc->bank);
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


/* Ends an answer. If it was lost, its endpoint sends the request again. On RoCE
 * the MAC of the peer may have changed: the next answer looks it up. */
static void uct_dcx_fc_done_answer(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                   ucs_status_t status)
{
    uct_dcx_fc_answer_t *answer = slot->buffer;

    if (ucs_unlikely(status != UCS_OK) &&
        (answer->ep.super.flags & UCT_DCX_EP_FLAG_GRH)) {
        uct_dcx_port_forget(&uct_dcx_ep_queues(&answer->ep.super)->port,
                            &answer->ep.grh);
    }
    ucs_mpool_put(answer);
}


/* Posts an answer. Returns UCS_ERR_NO_RESOURCE if it has to wait for an
 * initiator: call it again. Drops the answer if there will never be one: the
 * peer cannot be reached. */
static ucs_status_t uct_dcx_fc_post_answer(uct_dcx_fc_answer_t *answer)
{
    uct_dcx_ep_t *ep         = &answer->ep.super;
    uct_dcx_dci_set_t *set   = uct_dcx_ep_dci_set(ep);
    uct_dcx_am_hdr_t hdr     = {.am_id = answer->id};
    uct_dcx_fc_grant_t state = answer->request.state;
    uct_dcx_post_t tx        = {
               .opcode = MLX5_OPCODE_SEND,
               .flags  = MLX5_WQE_CTRL_SOLICITED,
               .done   = uct_dcx_fc_done_answer,
               .buffer = answer,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    dci = uct_dcx_tx_get(set, ep);
    if (ucs_unlikely(dci == NULL)) {
        if (!uct_dcx_tx_is_lost(set, ep) && (ep->state != UCT_DCX_EP_FAILED)) {
            return UCS_ERR_NO_RESOURCE;
        }
        ucs_mpool_put(answer);
        return UCS_OK;
    }

    if (answer->id == UCT_DCX_FC_ID_GRANT) {
        state = uct_dcx_fc_grant(uct_dcx_ep_queues(ep)->fc, &state);
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(hdr) + sizeof(state));
    uct_dcx_wqe_inline_head(&wqe, &hdr, sizeof(hdr));
    uct_dcx_wqe_inline_head(&wqe, &state, sizeof(state));
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    return UCS_OK;
}


static ucs_status_t uct_dcx_fc_resume_answer(uct_pending_req_t *req)
{
    uct_dcx_fc_answer_t *answer = ucs_container_of(req, uct_dcx_fc_answer_t,
                                                   req);
    ucs_list_link_t *waiting =
        &uct_dcx_ep_queues(&answer->ep.super)->fc->waiting;
    ucs_status_t status;

    ucs_list_del(&answer->list);
    status = uct_dcx_fc_post_answer(answer);
    if (status != UCS_OK) {
        ucs_list_add_tail(waiting, &answer->list);
    }
    return status;
}


/* Queues the answer until there is an initiator, or posts it if there is one by
 * now. */
static void uct_dcx_fc_wait_answer(uct_dcx_fc_t *fc,
                                   uct_dcx_fc_answer_t *answer)
{
    answer->req.func = uct_dcx_fc_resume_answer;
    ucs_list_add_tail(&fc->waiting, &answer->list);
    while ((uct_dcx_ep_pending_add(&answer->ep.super.super.super, &answer->req,
                                   0) != UCS_OK) &&
           (uct_dcx_fc_resume_answer(&answer->req) != UCS_OK)) {
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

    answer->id      = id;
    answer->request = *request;
    if (uct_dcx_fc_set_target(fc, answer) != UCS_OK) {
        ucs_mpool_put(answer);
        return;
    }

    if (ucs_unlikely(uct_dcx_fc_post_answer(answer) != UCS_OK)) {
        uct_dcx_fc_wait_answer(fc, answer);
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
    ucs_list_head_init(&fc->waiting);
    return uct_dcx_ucx_mpool_init(&fc->answers, sizeof(uct_dcx_fc_answer_t),
                                  UCT_DCX_FC_CHUNK, UCT_DCX_FC_MAX_ANSWERS,
                                  &uct_dcx_fc_answer_ops, "uct_dcx_fc_answers");
}


static void uct_dcx_fc_drop(uct_pending_req_t *req, void *arg)
{
    ucs_mpool_put(ucs_container_of(req, uct_dcx_fc_answer_t, req));
}


void uct_dcx_fc_grant_stop(uct_dcx_fc_t *fc)
{
    uct_dcx_fc_answer_t *answer, *next;

    ucs_list_for_each_safe (answer, next, &fc->waiting, list) {
        uct_dcx_ep_pending_purge(&answer->ep.super.super.super, uct_dcx_fc_drop,
                                 NULL);
    }
}
