/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The responder (hca_responder.h), in the sender's thread, on the state and the
 * memory of the QP's owner. A message goes through three steps: acceptance by
 * the QP, execution, answer. A failure completes the receive that was taken in
 * error, and puts the QP in error; a DCT serves many initiators and stays as it
 * is.
 */
#include "hca_responder.h"
#include "hca_completer.h"
#include "hca_qp.h"
#include "hca_resp.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/obj/hca_async.h"
#include "softhca/obj/hca_path.h"

/* --- acceptance ---------------------------------------------------------- */

/* Checks that the peer is the one that this QP is connected to, and that the
 * way back is right. */
static bool hca_responder_is_peer(struct hca_qp *qp, const struct hca_msg *msg)
{
    if (qp->attr.dest_qpn != msg->src_qpn) {
        hca_debug("qp 0x%x: message of qp 0x%x, connected to 0x%x", qp->obj.num,
                  msg->src_qpn, qp->attr.dest_qpn);
        return false;
    }
    return hca_path_leads(&qp->attr.path, qp->obj.dev, msg->src_dev,
                          &qp->resp.way);
}

static void hca_responder_established(struct hca_qp *qp)
{
    if ((qp->resp.msn == 0) && (hca_qp_state(qp) == IBV_QPS_RTR)) {
        hca_async_event(&qp->obj, IBV_EVENT_COMM_EST);
    }
}

/* Accepts the next message, or the last one again, as its answer was lost. A
 * PSN counts messages here. */
static bool hca_responder_accept_rc(struct hca_qp *qp,
                                    const struct hca_msg *msg,
                                    struct hca_ack *ack)
{
    if (!hca_responder_is_peer(qp, msg)) {
        return false;
    }
    if (msg->psn == qp->resp.psn) {
        hca_responder_established(qp);
        return true;
    }
    if ((qp->resp.msn > 0) &&
        (msg->psn == ((qp->resp.psn - 1) & HCA_PSN_MASK))) {
        hca_count(qp->obj.dev, HCA_COUNT_DUPLICATE_REQUEST);
        return true;
    }
    hca_count(qp->obj.dev, HCA_COUNT_OUT_OF_SEQUENCE);
    hca_info("qp 0x%x: psn is 0x%x, expected 0x%x", qp->obj.num, msg->psn,
             qp->resp.psn);
    ack->code = HCA_ACK_SEQ;
    return false;
}

/* Accepts any PSN: UC continues from there. */
static bool hca_responder_accept_uc(struct hca_qp *qp,
                                    const struct hca_msg *msg,
                                    struct hca_ack *ack)
{
    (void)ack;
    if (!hca_responder_is_peer(qp, msg)) {
        return false;
    }
    hca_responder_established(qp);
    qp->resp.psn = msg->psn;
    return true;
}

static bool hca_responder_accept_ud(struct hca_qp *qp,
                                    const struct hca_msg *msg,
                                    struct hca_ack *ack)
{
    (void)ack;
    if (msg->qkey == qp->attr.qkey) {
        return true;
    }
    hca_fabric->bad_qkeys[qp->obj.dev]++;
    hca_info("qp 0x%x: qkey of qp 0x%x is 0x%x, expected 0x%x", qp->obj.num,
             msg->src_qpn, msg->qkey, qp->attr.qkey);
    return false;
}

static bool hca_responder_accept_dc(struct hca_qp *qp,
                                    const struct hca_msg *msg,
                                    struct hca_ack *ack)
{
    if (msg->dc_key == qp->dc_key) {
        return true;
    }
    ack->check = hca_check_recv(HCA_CHECK_DC_KEY, qp->obj.num, msg->dc_key);
    ack->code  = hca_check_desc(HCA_CHECK_DC_KEY)->ack;
    return false;
}

static bool (*const hca_responder_accept[])(struct hca_qp *qp,
                                            const struct hca_msg *msg,
                                            struct hca_ack *ack) = {
    [HCA_QP_RC]       = hca_responder_accept_rc,
    [HCA_QP_UC]       = hca_responder_accept_uc,
    [HCA_QP_UD]       = hca_responder_accept_ud,
    [HCA_QP_XRC_RECV] = hca_responder_accept_rc,
    [HCA_QP_DCT]      = hca_responder_accept_dc,
};

/* --- the answer --------------------------------------------------------- */

/* Completes the receive in error. An async event reports a fault only if no
 * completion does (IBTA 11.6.3). */
static void hca_responder_fail_recv(struct hca_responder *resp,
                                    enum hca_check check)
{
    if (resp->recv.in_ring) {
        hca_rq_consume(resp->qp, &resp->recv);
    }
    if (hca_completer_recv_error(resp->qp, &resp->recv, check) != HCA_OK) {
        hca_async_event(&resp->qp->obj, IBV_EVENT_QP_FATAL);
    }
}

static void hca_responder_fail(struct hca_responder *resp, enum hca_check check)
{
    const struct hca_check_desc *desc = hca_check_desc(check);
    struct hca_qp *qp                 = resp->qp;
    bool is_acked = (qp->type != HCA_QP_UC) && (qp->type != HCA_QP_UD);

    resp->ack->code  = desc->ack;
    resp->ack->check = check;
    if (desc->ack == HCA_ACK_ACCESS) {
        hca_count(qp->obj.dev, HCA_COUNT_RESP_REMOTE_ACCESS_ERRORS);
    }
    if (resp->recv.taken) {
        hca_responder_fail_recv(resp, check);
    } else if (is_acked) {
        hca_async_event(&qp->obj, desc->event);
    } else {
        return; /* unreliable: dropped */
    }
    if (qp->type != HCA_QP_DCT) {
        hca_qp_fail(qp);
    }
}

static void hca_responder_finish(struct hca_responder *resp,
                                 enum hca_check check, bool is_repeated)
{
    struct hca_qp *qp = resp->qp;

    if (__builtin_expect(check == HCA_OK, 1)) {
        resp->ack->code = HCA_ACK;
        if (!is_repeated) {
            qp->resp.psn = (qp->resp.psn + 1) & HCA_PSN_MASK;
            qp->resp.msn++;
        }
    } else if ((check == HCA_CHECK_NO_RECV) || (check == HCA_PAGE_FAULT)) {
        resp->ack->is_fault = (check == HCA_PAGE_FAULT);
        if (!resp->ack->is_fault) {
            hca_count(qp->obj.dev, HCA_COUNT_OUT_OF_BUFFER);
        }
        resp->ack->code      = HCA_ACK_RNR;
        resp->ack->rnr_timer = qp->attr.min_rnr_timer;
    } else if (check != HCA_DROP) {
        hca_responder_fail(resp, check);
    }
}

static bool hca_responder_is_ready(const struct hca_qp *qp)
{
    enum ibv_qp_state state = hca_qp_state(qp);

    return (state >= IBV_QPS_RTR) && (state <= IBV_QPS_SQE);
}

void hca_responder_receive(struct hca_qp *qp, const struct hca_msg *msg,
                           struct hca_ack *ack)
{
    struct hca_responder resp;
    enum hca_check check;
    bool is_repeated;

    if (!hca_responder_is_ready(qp) ||
        !hca_responder_accept[qp->type](qp, msg, ack)) {
        return;
    }
    resp.qp         = qp;
    resp.msg        = msg;
    resp.ack        = ack;
    resp.recv.taken = false;
    resp.srq_held   = false;
    hca_sgl_init(&resp.memory, hca_owner(qp->obj.proc));

    is_repeated = msg->executed ||
                  (((qp->type == HCA_QP_RC) || (qp->type == HCA_QP_XRC_RECV)) &&
                   (msg->psn != qp->resp.psn));
    check = is_repeated ? hca_resp_repeat(&resp) : hca_resp_execute(&resp);
    hca_sgl_put(&resp.memory);
    hca_responder_finish(&resp, check, is_repeated);
}
