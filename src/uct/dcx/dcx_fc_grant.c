/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the receiver's side: requests are answered with grants; see
 * dcx_fc.h. A request is met where messages are delivered, so all that its
 * sender sent before it has been delivered by then. A grant goes out as the
 * one message of an endpoint that is its own until it has arrived: it waits for
 * an initiator in line with everybody else, needs no credits, and if whom it is
 * for has died meanwhile, nobody else is held up. Then the endpoint is kept for
 * another answer.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>

/* Answers that are allocated at a time */
#define UCT_DCX_FC_CHUNK  16

/* ... and at most. A job with more endpoints to here than this that all wait
 * at the same time has some of them ask twice. */
#define UCT_DCX_FC_MAX_ANSWERS  65536

/* Part of UCX_DCX_RNR_TIMEOUT after which promised messages that do not come
 * are given up. If they come all the same and find no buffer, that is what it
 * costs their sender; those who wait may wait for some of it. By default this
 * is 62 us, many times what a grant and what is sent then take on the way. */
#define UCT_DCX_FC_PATIENCE  0.0625


/* A request that was received, until its grant has been. The memory is kept
 * for the next one, with an endpoint that leads to another peer then. */
typedef struct uct_dcx_fc_answer {
    uct_dcx_grh_ep_t   ep;      /* leads to who asked */
    uct_pending_req_t  req;     /* in line for an initiator */
    ucs_list_link_t    list;    /* fc->held, fc->lined, or fc->idle */
    uct_dcx_fc_token_t token;
    uint16_t           want;
    uint16_t           credits; /* what is granted */
} uct_dcx_fc_answer_t;


/* Of the endpoint of an answer: the user does not know of it, and never hears
 * of it. */
enum {
    UCT_DCX_FC_EP_FLAGS = UCT_DCX_EP_FLAG_MUTED | UCT_DCX_EP_FLAG_GRANT
};


static ucs_mpool_ops_t uct_dcx_fc_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


/* --- answers -------------------------------------------------------------- */

/* NULL if memory is short. */
static UCS_F_NOINLINE uct_dcx_fc_answer_t *
uct_dcx_fc_answer_new(uct_dcx_iface_t *iface)
{
    const uct_dcx_av_t none     = {};
    uct_dcx_fc_answer_t *answer = ucs_mpool_get(&iface->fc.answers);

    if (answer == NULL) {
        return NULL;
    }

    if (UCS_CLASS_INIT(uct_dcx_grh_ep_t, &answer->ep, iface, &none, NULL) !=
        UCS_OK) {
        ucs_mpool_put(answer);
        return NULL;
    }
    return answer;
}


static void uct_dcx_fc_answer_delete(uct_dcx_fc_answer_t *answer)
{
    UCS_CLASS_CLEANUP(uct_dcx_grh_ep_t, &answer->ep);
    ucs_mpool_put(answer);
}


/* The way to the last one has failed, and the endpoint for good. */
static UCS_F_NOINLINE uct_dcx_fc_answer_t *
uct_dcx_fc_answer_renew(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer)
{
    uct_dcx_fc_answer_delete(answer);
    return uct_dcx_fc_answer_new(iface);
}


static inline uct_dcx_fc_answer_t *uct_dcx_fc_answer_get(uct_dcx_iface_t *iface)
{
    ucs_list_link_t *idle = &iface->fc.idle;
    uct_dcx_fc_answer_t *answer;

    if (ucs_unlikely(ucs_list_is_empty(idle))) {
        return uct_dcx_fc_answer_new(iface);
    }

    /* the one used last: its memory is near, and others are not for long */
    answer = ucs_list_extract_head(idle, uct_dcx_fc_answer_t, list);
    if (ucs_unlikely(answer->ep.super.flags & UCT_DCX_EP_FLAG_FAILED)) {
        return uct_dcx_fc_answer_renew(iface, answer);
    }
    return answer;
}


static inline void
uct_dcx_fc_answer_put(uct_dcx_fc_t *fc, uct_dcx_fc_answer_t *answer)
{
    ucs_list_add_head(&fc->idle, &answer->list);
}


/* An answer to that, NULL if there can be none: who gets none asks again. */
static uct_dcx_fc_answer_t *
uct_dcx_fc_answer_to(uct_dcx_iface_t *iface,
                     const uct_dcx_fc_request_t *request)
{
    uct_dcx_fc_answer_t *answer = uct_dcx_fc_answer_get(iface);
    uct_dcx_ep_t *ep;

    if (answer == NULL) {
        return NULL;
    }

    ep = &answer->ep.super;
    if (uct_dcx_ep_make_answer_av(iface, &request->origin, &ep->av,
                                  &answer->ep.grh) != UCS_OK) {
        uct_dcx_fc_answer_put(&iface->fc, answer);
        return NULL;
    }

    ep->flags     = UCT_DCX_FC_EP_FLAGS |
                    (uct_dcx_av_has_grh(&ep->av) ? UCT_DCX_EP_FLAG_GRH : 0);
    answer->token = request->token;
    answer->want  = be16toh(request->want);
    return answer;
}


/* --- grants --------------------------------------------------------------- */

/* The grant has arrived, or never will: then its endpoint asks again. On RoCE the
 * way to there may have changed: the next answer asks for it anew. */
static void uct_dcx_fc_done_grant(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                  ucs_status_t status)
{
    uct_dcx_fc_answer_t *answer = op->buffer;
    uct_dcx_iface_t *iface      = uct_dcx_ep_iface(&answer->ep.super);

    if (ucs_unlikely(status != UCS_OK) &&
        (answer->ep.super.flags & UCT_DCX_EP_FLAG_GRH)) {
        uct_dcx_port_forget(&iface->port, &answer->ep.grh);
    }
    uct_dcx_fc_answer_put(&iface->fc, answer);
}


static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_fc_post_grant(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer,
                      int is_plain)
{
    uct_dcx_ep_t *ep         = &answer->ep.super;
    uct_dcx_am_hdr_t hdr     = {.am_id = UCT_DCX_FC_ID_GRANT};
    uct_dcx_fc_grant_t grant = {
        .token   = answer->token,
        .credits = htobe16(answer->credits)
    };
    uct_dcx_tx_t tx          = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED,
        .done   = uct_dcx_fc_done_grant,
        .buffer = answer
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    dci = uct_dcx_tx_get(iface, ep, is_plain);
    if (dci == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_dcx_tx_start(&wqe, dci, ep, is_plain);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(hdr) + sizeof(grant));
    uct_dcx_wqe_inline_head(&wqe, &hdr, sizeof(hdr));
    uct_dcx_wqe_inline_head(&wqe, &grant, sizeof(grant));
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_tx_post(dci, &wqe, &tx);
    return UCS_OK;
}


static UCS_F_NOINLINE ucs_status_t
uct_dcx_fc_post_grant_any(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer)
{
    return uct_dcx_fc_post_grant(iface, answer, 0);
}


/* First in the line for an initiator. */
static ucs_status_t uct_dcx_fc_pending_cb(uct_pending_req_t *req)
{
    uct_dcx_fc_answer_t *answer = ucs_container_of(req, uct_dcx_fc_answer_t,
                                                   req);
    ucs_status_t status;

    status = uct_dcx_fc_post_grant_any(uct_dcx_ep_iface(&answer->ep.super),
                                       answer);
    if (status == UCS_OK) {
        ucs_list_del(&answer->list);
    }
    return status;
}


static UCS_F_NOINLINE void
uct_dcx_fc_line_up(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer)
{
    ucs_status_t status;

    do {
        if (uct_dcx_fc_post_grant_any(iface, answer) == UCS_OK) {
            return;
        }

        answer->req.func = uct_dcx_fc_pending_cb;
        status           = uct_dcx_ep_pending_add(&answer->ep.super.super.super,
                                                  &answer->req, 0);
    } while (status == UCS_ERR_BUSY);
    ucs_list_add_tail(&iface->fc.lined, &answer->list);
}


static inline void uct_dcx_fc_send_grant(uct_dcx_iface_t *iface,
                                         uct_dcx_fc_answer_t *answer)
{
    if (ucs_unlikely(uct_dcx_fc_post_grant(iface, answer, 1) !=
                     UCS_OK)) {
        uct_dcx_fc_line_up(iface, answer);
    }
}


/* Promises what the book allows. A promise is of a buffer that is posted. */
static int
uct_dcx_fc_decide(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer)
{
    uct_dcx_fc_t *fc = &iface->fc;
    uct_dcx_rx_t *rx = &iface->rx;

    if (!uct_dcx_credit_has_room(&fc->book, iface->rx_cq.ci, answer->want)) {
        return 0;
    }

    if (uct_dcx_rx_num_free(rx) > 0) {
        uct_dcx_srq_post(rx);
        if (uct_dcx_rx_num_free(rx) > 0) {
            return 0; /* memory is short */
        }
    }

    answer->credits = uct_dcx_credit_grant(&fc->book, iface->rx_cq.ci,
                                           ucs_min(answer->want,
                                                   fc->sizes.window),
                                           uct_dcx_credit_crowd_size(
                                                   &fc->crowd));
    return 1;
}


/* Those that are held wait for promised messages from now on. */
static inline void uct_dcx_fc_listen(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;

    uct_dcx_credit_listen(&fc->quiet, &fc->book, iface->rx_cq.ci);
}


/* There is room for the first of those who wait. */
static UCS_F_NOINLINE void uct_dcx_fc_grant_some(uct_dcx_iface_t *iface)
{
    ucs_list_link_t *held = &iface->fc.held;
    uct_dcx_fc_answer_t *answer;

    do {
        answer = ucs_list_head(held, uct_dcx_fc_answer_t, list);
        if (!uct_dcx_fc_decide(iface, answer)) {
            return;
        }
        ucs_list_del(&answer->list);
        uct_dcx_fc_send_grant(iface, answer);
    } while (!ucs_list_is_empty(held));
}


/* There is none, and no promised message has come. */
static UCS_F_NOINLINE void uct_dcx_fc_grant_forgive(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;

    if (uct_dcx_credit_is_quiet(&fc->quiet, ucs_get_time(), fc->patience)) {
        uct_dcx_credit_forgive(&fc->book, iface->rx_cq.ci);
        uct_dcx_fc_listen(iface);
    }
}


void uct_dcx_fc_grant_held(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    unsigned want    = ucs_list_head(&fc->held, uct_dcx_fc_answer_t,
                                     list)->want;

    if (uct_dcx_credit_has_room(&fc->book, iface->rx_cq.ci, want)) {
        uct_dcx_fc_grant_some(iface);
        uct_dcx_fc_listen(iface);
    } else if (!uct_dcx_credit_heard(&fc->quiet, &fc->book, iface->rx_cq.ci) &&
               (uct_dcx_cq_next(&iface->rx_cq) == NULL)) {
        uct_dcx_fc_grant_forgive(iface);
    }
}


void uct_dcx_fc_receive_request(uct_dcx_iface_t *iface,
                                const uct_dcx_fc_request_t *request)
{
    uct_dcx_fc_t *fc = &iface->fc;
    uct_dcx_fc_answer_t *answer;

    uct_dcx_credit_skip(&fc->book, iface->rx_cq.ci);
    uct_dcx_credit_crowd_add(&fc->crowd,
                             request->origin.dc_key + request->who);
    answer = uct_dcx_fc_answer_to(iface, request);
    if (ucs_unlikely(answer == NULL)) {
        ucs_debug("iface %p: a request for credits is dropped", iface);
        return;
    }

    /* whoever asked before is served before */
    if (ucs_list_is_empty(&fc->held) && uct_dcx_fc_decide(iface, answer)) {
        uct_dcx_fc_send_grant(iface, answer);
    } else {
        if (ucs_list_is_empty(&fc->held)) {
            uct_dcx_fc_listen(iface);
        }
        ucs_list_add_tail(&fc->held, &answer->list);
        iface->todo |= UCT_DCX_TODO_FC;
    }
}


ucs_status_t uct_dcx_fc_grant_init(uct_dcx_iface_t *iface, double rnr_timeout)
{
    uct_dcx_fc_t *fc = &iface->fc;

    fc->book        = uct_dcx_credit_open(&fc->sizes, iface->rx_cq.ci);
    fc->patience    = ucs_time_from_sec(rnr_timeout * UCT_DCX_FC_PATIENCE);
    memset(&fc->quiet, 0, sizeof(fc->quiet));
    memset(&fc->crowd, 0, sizeof(fc->crowd));
    ucs_list_head_init(&fc->idle);
    ucs_list_head_init(&fc->held);
    ucs_list_head_init(&fc->lined);

    return ucs_mpool_init(&fc->answers, 0, sizeof(uct_dcx_fc_answer_t), 0,
                          UCS_SYS_CACHE_LINE_SIZE, UCT_DCX_FC_CHUNK,
                          UCT_DCX_FC_MAX_ANSWERS,
                          &uct_dcx_fc_mpool_ops, "uct_dcx_fc_answers");
}


static void uct_dcx_fc_drop(uct_pending_req_t *req, void *arg)
{
}


static void uct_dcx_fc_drop_all(uct_dcx_fc_t *fc, ucs_list_link_t *list)
{
    uct_dcx_fc_answer_t *answer, *next;

    ucs_list_for_each_safe(answer, next, list, list) {
        uct_dcx_ep_pending_purge(&answer->ep.super.super.super,
                                 uct_dcx_fc_drop, NULL);
        uct_dcx_fc_answer_put(fc, answer);
    }
    ucs_list_head_init(list);
}


void uct_dcx_fc_grant_stop(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_drop_all(&iface->fc, &iface->fc.held);
    uct_dcx_fc_drop_all(&iface->fc, &iface->fc.lined);
}


/* There are no initiators any more that answers could leave. */
void uct_dcx_fc_grant_cleanup(uct_dcx_iface_t *iface)
{
    ucs_list_link_t *idle = &iface->fc.idle;
    uct_dcx_fc_answer_t *answer;

    while (!ucs_list_is_empty(idle)) {
        answer                 = ucs_list_extract_head(idle,
                                                       uct_dcx_fc_answer_t,
                                                       list);
        answer->ep.super.flags = UCT_DCX_FC_EP_FLAGS;
        answer->ep.super.dci   = UCT_DCX_NO_DCI;
        uct_dcx_fc_answer_delete(answer);
    }
    ucs_mpool_cleanup(&iface->fc.answers, 1);
}
