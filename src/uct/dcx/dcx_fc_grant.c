/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Flow control, the receiver's side: requests are answered with grants; see
 * dcx_fc.h. A request is met where messages are delivered, so all that its
 * sender sent before it has been delivered by then. A grant goes out as the
 * one message of an endpoint that lives until it has arrived: it waits for an
 * initiator in line with everybody else, needs no credits, and if whom it is
 * for has died meanwhile, nobody else is held up.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

/* Answers that are allocated at a time */
#define UCT_DCX_FC_CHUNK  16

/* ... and at most. A job with more endpoints to here than this that all wait
 * at the same time has some of them ask twice. */
#define UCT_DCX_FC_MAX_ANSWERS  65536

/* Calls of progress without a message until promised ones are given up: about
 * the time that a grant and what is sent then take */
#define UCT_DCX_FC_PATIENCE  32


/* A request that was received, until its grant has been. */
typedef struct uct_dcx_fc_answer {
    uct_dcx_grh_ep_t   ep;      /* leads to who asked */
    uct_pending_req_t  req;     /* in line for an initiator */
    ucs_list_link_t    list;    /* fc->held or fc->lined */
    uct_dcx_fc_token_t token;
    uint16_t           want;
    uint16_t           credits; /* what is granted */
} uct_dcx_fc_answer_t;


static ucs_mpool_ops_t uct_dcx_fc_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


static void uct_dcx_fc_answer_free(uct_dcx_fc_answer_t *answer)
{
    UCS_CLASS_CLEANUP(uct_dcx_grh_ep_t, &answer->ep);
    ucs_mpool_put(answer);
}


/* The grant has arrived, or never will: then its endpoint asks again. */
static void uct_dcx_fc_done_grant(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                  ucs_status_t status)
{
    uct_dcx_fc_answer_free(op->buffer);
}


static ucs_status_t uct_dcx_fc_post_grant(uct_dcx_fc_answer_t *answer)
{
    uct_dcx_ep_t *ep         = &answer->ep.super;
    uct_dcx_iface_t *iface   = uct_dcx_ep_iface(ep);
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

    dci = uct_dcx_tx_get_dci(iface, ep);
    if (dci == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_dcx_tx_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(hdr) + sizeof(grant));
    uct_dcx_wqe_inline_head(&wqe, &hdr, sizeof(hdr));
    uct_dcx_wqe_inline_head(&wqe, &grant, sizeof(grant));
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_tx_post(dci, &wqe, &tx);
    return UCS_OK;
}


/* First in the line for an initiator. */
static ucs_status_t uct_dcx_fc_pending_cb(uct_pending_req_t *req)
{
    uct_dcx_fc_answer_t *answer = ucs_container_of(req, uct_dcx_fc_answer_t,
                                                   req);
    ucs_status_t status;

    status = uct_dcx_fc_post_grant(answer);
    if (status == UCS_OK) {
        ucs_list_del(&answer->list);
    }
    return status;
}


static void uct_dcx_fc_send_grant(uct_dcx_iface_t *iface,
                                  uct_dcx_fc_answer_t *answer)
{
    ucs_status_t status;

    do {
        if (uct_dcx_fc_post_grant(answer) == UCS_OK) {
            return;
        }

        answer->req.func = uct_dcx_fc_pending_cb;
        status           = uct_dcx_ep_pending_add(&answer->ep.super.super.super,
                                                  &answer->req, 0);
    } while (status == UCS_ERR_BUSY);
    ucs_list_add_tail(&iface->fc.lined, &answer->list);
}


/* Promises what the book allows. A promise is of a buffer that is posted. */
static int
uct_dcx_fc_decide(uct_dcx_iface_t *iface, uct_dcx_fc_answer_t *answer)
{
    uct_dcx_fc_t *fc = &iface->fc;
    uct_dcx_rx_t *rx = &iface->rx;

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
    return answer->credits > 0;
}


/* Whether those who were granted something have had the time to send it, and
 * have not. */
static int uct_dcx_fc_is_quiet(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc  = &iface->fc;
    uint32_t received = iface->rx_cq.ci;

    if ((fc->quiet_since != received) ||
        (uct_dcx_cq_peek(&iface->rx_cq, received) != NULL)) {
        fc->quiet_since = received;
        fc->quiet       = 0;
    }

    if (fc->quiet++ < UCT_DCX_FC_PATIENCE) {
        return 0;
    }

    fc->quiet = 0;
    return 1;
}


void uct_dcx_fc_grant_held(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;
    uct_dcx_fc_answer_t *answer;

    while (!ucs_list_is_empty(&fc->held)) {
        answer = ucs_list_head(&fc->held, uct_dcx_fc_answer_t, list);
        if (!uct_dcx_fc_decide(iface, answer)) {
            break;
        }
        ucs_list_del(&answer->list);
        uct_dcx_fc_send_grant(iface, answer);
    }

    if (!ucs_list_is_empty(&fc->held) && uct_dcx_fc_is_quiet(iface)) {
        uct_dcx_credit_forgive(&fc->book, iface->rx_cq.ci);
    }
}


static uct_dcx_fc_answer_t *
uct_dcx_fc_answer_new(uct_dcx_iface_t *iface,
                      const uct_dcx_fc_request_t *request)
{
    uct_dcx_fc_answer_t *answer;
    uct_dcx_grh_t grh;
    uct_dcx_av_t av;

    if (uct_dcx_ep_make_av(iface, &request->origin, 0, &av, &grh) != UCS_OK) {
        return NULL;
    }

    /* who gets none asks again */
    answer = ucs_mpool_get(&iface->fc.answers);
    if (answer == NULL) {
        return NULL;
    }

    if (UCS_CLASS_INIT(uct_dcx_grh_ep_t, &answer->ep, iface, &av, &grh) !=
        UCS_OK) {
        ucs_mpool_put(answer);
        return NULL;
    }

    /* the user does not know of this endpoint, and never hears of it */
    answer->ep.super.flags |= UCT_DCX_EP_FLAG_MUTED | UCT_DCX_EP_FLAG_GRANT;
    answer->token           = request->token;
    answer->want            = be16toh(request->want);
    return answer;
}


int uct_dcx_fc_receive_request(uct_dcx_iface_t *iface, const void *message,
                               unsigned length)
{
    uct_dcx_fc_t *fc                    = &iface->fc;
    const uct_dcx_fc_request_t *request = message;
    uct_dcx_fc_answer_t *answer;

    if ((length != sizeof(*request)) || (request->want == 0)) {
        return 0;
    }

    uct_dcx_credit_skip(&fc->book, iface->rx_cq.ci);
    uct_dcx_credit_crowd_add(&fc->crowd, be64toh(request->origin.dc_key) +
                                         be16toh(request->who));
    answer = uct_dcx_fc_answer_new(iface, request);
    if (answer == NULL) {
        ucs_debug("iface %p: a request for credits is dropped", iface);
        return 1;
    }

    /* whoever asked before is served before */
    if (ucs_list_is_empty(&fc->held) && uct_dcx_fc_decide(iface, answer)) {
        uct_dcx_fc_send_grant(iface, answer);
    } else {
        ucs_list_add_tail(&fc->held, &answer->list);
        iface->todo |= UCT_DCX_TODO_FC;
    }
    return 1;
}


ucs_status_t uct_dcx_fc_grant_init(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_t *fc = &iface->fc;

    fc->book        = uct_dcx_credit_open(&fc->sizes, iface->rx_cq.ci);
    fc->quiet       = 0;
    fc->quiet_since = iface->rx_cq.ci;
    memset(&fc->crowd, 0, sizeof(fc->crowd));
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


static void uct_dcx_fc_drop_all(ucs_list_link_t *list)
{
    uct_dcx_fc_answer_t *answer, *next;

    ucs_list_for_each_safe(answer, next, list, list) {
        uct_dcx_ep_pending_purge(&answer->ep.super.super.super,
                                 uct_dcx_fc_drop, NULL);
        uct_dcx_fc_answer_free(answer);
    }
}


void uct_dcx_fc_grant_stop(uct_dcx_iface_t *iface)
{
    uct_dcx_fc_drop_all(&iface->fc.held);
    uct_dcx_fc_drop_all(&iface->fc.lined);
}


void uct_dcx_fc_grant_cleanup(uct_dcx_iface_t *iface)
{
    ucs_mpool_cleanup(&iface->fc.answers, 1);
}
