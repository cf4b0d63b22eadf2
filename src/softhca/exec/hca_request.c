/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One send WQE (hca_request.h): its memory, its message, and the meaning of the
 * answer.
 */
#include "hca_request.h"
#include "hca_bf.h"
#include "hca_fault.h"
#include "hca_late.h"
#include "hca_order.h"
#include "hca_stream.h"
#include "hca_tm_op.h"
#include "hca_wire.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/fabric/hca_count.h"
#include "softhca/fabric/hca_rules.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_odp.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/obj/hca_rq.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/wqe/hca_umr.h"
#include "softhca/wqe/hca_wqe_mem.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#define HCA_UD_MTU   4096u      /* the port's, for any path (kernel mlx5) */
#define HCA_QKEY_OWN (1u << 31) /* IBTA 10.2.5: the QP's own Q_Key is used */

/* The message of an opcode */
static const struct {
    uint8_t op; /* enum hca_msg_op */
    bool has_imm, has_inval;
} hca_request_msgs[256] = {
    [MLX5_OPCODE_SEND]             = {HCA_MSG_SEND, false, false},
    [MLX5_OPCODE_SEND_IMM]         = {HCA_MSG_SEND, true, false},
    [MLX5_OPCODE_SEND_INVAL]       = {HCA_MSG_SEND, false, true},
    [MLX5_OPCODE_RDMA_WRITE]       = {HCA_MSG_WRITE, false, false},
    [MLX5_OPCODE_RDMA_WRITE_IMM]   = {HCA_MSG_WRITE, true, false},
    [MLX5_OPCODE_RDMA_READ]        = {HCA_MSG_READ, false, false},
    [MLX5_OPCODE_ATOMIC_CS]        = {HCA_MSG_ATOMIC, false, false},
    [MLX5_OPCODE_ATOMIC_FA]        = {HCA_MSG_ATOMIC, false, false},
    [MLX5_OPCODE_ATOMIC_MASKED_CS] = {HCA_MSG_ATOMIC, false, false},
    [MLX5_OPCODE_ATOMIC_MASKED_FA] = {HCA_MSG_ATOMIC, false, false},
};

/* Returns true if the data that is read goes into the CQE. An atomic's result
 * does not: libmlx5 and UCX expect another byte order there than in memory. */
static bool hca_request_fits_cqe(const struct hca_request *rq)
{
    return (rq->qp->cs_req != 0) && (rq->wqe.length > 0) &&
           (rq->wqe.opcode == MLX5_OPCODE_RDMA_READ) &&
           hca_wqe_is_signaled(&rq->wqe) &&
           (rq->wqe.length <= hca_cq_inline_room(rq->qp->scqn, rq->qp->cs_req));
}

/* --- waiting ------------------------------------------------------------ */

static enum hca_check hca_request_wait(struct hca_request *rq, uint64_t ns)
{
    rq->wait_ns = ns;
    return HCA_WAIT;
}

/* Records how many bytes a responder with strides has taken: the next try
 * continues behind them. */
static void hca_request_arrived(struct hca_request *rq)
{
    if ((rq->msg.op == HCA_MSG_SEND) && (rq->ack.arrived > 0)) {
        rq->tries->arrived = rq->ack.arrived;
    }
}

static enum hca_check hca_request_rnr(struct hca_request *rq)
{
    struct hca_qp *qp = rq->qp;

    hca_count(qp->obj.dev, HCA_COUNT_RNR_NAK_RETRY_ERR);
    hca_request_arrived(rq);
    if (rq->ack.is_fault) {
        hca_odp_refused(rq->tries);
    }
    rq->tries->retries  = 0;
    rq->tries->was_late = false;
    if (qp->attr.rnr_retry != HCA_RNR_FOREVER) {
        if (rq->tries->rnr_retries >= qp->attr.rnr_retry) {
            return hca_check_wqe(HCA_CHECK_RNR_EXC, rq->wqe.qpn, rq->wqe.idx,
                                 qp->attr.rnr_retry);
        }
        rq->tries->rnr_retries++;
    }
    return hca_request_wait(rq, hca_wire_rnr_ns(rq->ack.rnr_timer));
}

/* Records that the responder has executed the message although the answer is
 * lost. A real DC target recognizes the next try by the PSN of its connection
 * to the initiator; here the initiator keeps that state. RC and XRC have a
 * PSN. */
static void hca_request_lost(struct hca_request *rq)
{
    if (rq->ack.lost && (rq->qp->type == HCA_QP_DCI)) {
        rq->tries->executed = true;
        rq->tries->atomic   = rq->ack.atomic;
    }
}

static enum hca_check hca_request_timeout(struct hca_request *rq)
{
    struct hca_qp *qp = rq->qp;

    hca_count(qp->obj.dev, HCA_COUNT_LOCAL_ACK_TIMEOUT_ERR);
    hca_request_arrived(rq);
    hca_request_lost(rq);
    rq->tries->was_late = false;
    rq->tries->retries += (qp->attr.timeout != 0);
    return hca_request_wait(rq, hca_wire_timeout_ns(qp->attr.timeout));
}

static enum hca_check hca_request_bad_psn(struct hca_request *rq)
{
    hca_count(rq->qp->obj.dev, HCA_COUNT_PACKET_SEQ_ERR);
    return hca_request_timeout(rq);
}

static enum hca_check hca_request_late(struct hca_request *rq)
{
    rq->tries->was_late = true;
    return hca_request_wait(rq, rq->ack.wait_ns);
}

/* --- messages and results ---------------------------------------------- */

static void hca_request_address(struct hca_request *rq)
{
    struct hca_msg *msg = &rq->msg;
    struct hca_qp *qp   = rq->qp;

    switch (qp->type) {
    case HCA_QP_UD:
        msg->qkey = (rq->wqe.qkey & HCA_QKEY_OWN) ? qp->attr.qkey :
                                                    rq->wqe.qkey;
        /* fall through */
    case HCA_QP_DCI:
        msg->dc_key   = rq->wqe.dc_key;
        msg->path     = &rq->wqe.path;
        msg->dest_qpn = rq->wqe.dqpn;
        break;
    default:
        msg->srqn     = rq->wqe.xrc_srqn;
        msg->path     = &qp->attr.path;
        msg->dest_qpn = qp->attr.dest_qpn;
        break;
    }
}

/* Returns the number of reads and atomics under way before this one. It is
 * below the limit, where a requester waits for one of them to end. */
static uint8_t hca_request_reads(const struct hca_qp *qp)
{
    unsigned limit = hca_qp_rd_limit(qp->attr.max_rd_atomic);

    return (qp->req.reads < limit) ? qp->req.reads : limit - 1;
}

/* Returns the list that may keep a WRITE back; NULL: none. */
static struct hca_posted *hca_request_posted(const struct hca_request *rq)
{
    struct hca_posted *posted = NULL;

    if ((hca_order == HCA_ORDER_RELAXED) &&
        (rq->wqe.opcode == MLX5_OPCODE_RDMA_WRITE)) {
        posted        = &hca_sq_of(rq->qp)->posted;
        posted->keeps = hca_order_keeps(rq->qp->req.psn);
    }
    return posted;
}

static void hca_request_build(struct hca_request *rq)
{
    struct hca_msg *msg = &rq->msg;

    msg->op        = hca_request_msgs[rq->wqe.opcode].op;
    msg->has_imm   = hca_request_msgs[rq->wqe.opcode].has_imm;
    msg->has_inval = hca_request_msgs[rq->wqe.opcode].has_inval;
    msg->solicited = (rq->wqe.fm_ce_se & MLX5_WQE_CTRL_SOLICITED) != 0;
    msg->is_fin    = false;
    msg->is_spared = rq->tries->was_late;
    msg->is_paged  = hca_odp_is_over(rq->tries);
    msg->mtu       = rq->qp->attr.mtu;
    msg->reads     = (msg->op < HCA_MSG_READ) ? 0 : hca_request_reads(rq->qp);
    msg->executed  = rq->tries->executed;
    msg->atomic_before = rq->tries->atomic; /* or `arrived` */
    msg->src_dev       = rq->qp->obj.dev;
    msg->src_qpn       = rq->wqe.qpn;
    msg->psn           = rq->qp->req.psn;
    msg->imm           = rq->wqe.imm;
    msg->raddr         = rq->wqe.raddr;
    msg->rkey          = rq->wqe.rkey;
    msg->atomic        = &rq->wqe.atomic;
    msg->data          = &rq->local;
    msg->posted        = hca_request_posted(rq);
    hca_request_address(rq);
}

/* Counts the write of a result; in a CQE it is counted with that. */
static void hca_request_count_result(const struct hca_request *rq)
{
    if (!rq->to_cqe) {
        hca_pcie_add_sgl(&rq->qp->pcie, HCA_PCIE_RESULT, &rq->local, NULL, 0);
    }
}

/* Writes the previous value as a NIC in host-endian mode does: operands of 8
 * bytes in host order, of 4 bytes big endian (HCA capability
 * atomic_req_8B_endianness_mode; UCX, uct_rc_mlx5_common_atomic*_handler). */
static enum hca_check hca_request_put_atomic(struct hca_request *rq)
{
    uint32_t value4 = htobe32(rq->ack.atomic);

    return (rq->wqe.atomic.size == 4) ?
               hca_wqe_mem_put(&rq->wqe, &rq->local, &value4, sizeof(value4)) :
               hca_wqe_mem_put(&rq->wqe, &rq->local, &rq->ack.atomic,
                               sizeof(rq->ack.atomic));
}

static enum hca_check hca_request_acked(struct hca_request *rq)
{
    struct hca_req *req = &rq->qp->req;

    req->psn = (req->psn + 1) & HCA_PSN_MASK;
    memset(rq->tries, 0, sizeof(*rq->tries));
    if (rq->msg.op >= HCA_MSG_READ) {
        req->reads = hca_request_reads(rq->qp) + 1;
        if (hca_pcie_is_on() && (rq->result == NULL)) {
            hca_request_count_result(rq);
        }
    }
    return (rq->msg.op == HCA_MSG_ATOMIC) ? hca_request_put_atomic(rq) : HCA_OK;
}

static enum hca_check hca_request_nak_inval(struct hca_request *rq)
{
    (void)rq;
    return HCA_CHECK_REMOTE_INVAL;
}

static enum hca_check hca_request_nak_access(struct hca_request *rq)
{
    (void)rq;
    return HCA_CHECK_REMOTE_ACCESS;
}

static enum hca_check hca_request_nak_op(struct hca_request *rq)
{
    (void)rq;
    return HCA_CHECK_REMOTE_OP;
}

static enum hca_check (*const hca_request_acks[])(struct hca_request *rq) = {
    [HCA_ACK_RNR]    = hca_request_rnr,
    [HCA_ACK_SEQ]    = hca_request_bad_psn,
    [HCA_ACK_INVAL]  = hca_request_nak_inval,
    [HCA_ACK_ACCESS] = hca_request_nak_access,
    [HCA_ACK_OP]     = hca_request_nak_op,
    [HCA_ACK_NONE]   = hca_request_timeout,
    [HCA_ACK_LATE]   = hca_request_late,
};

/* Returns true if the completion comes later, with the data read. */
static bool hca_request_holds(const struct hca_request *rq)
{
    return (hca_late_ns != 0) && (rq->wqe.op->flags & HCA_OP_DATA_IN) &&
           (rq->wqe.length > 0);
}

/* Reads into a buffer, from which hca_late.c writes to the program's memory;
 * that was checked now, and is checked again then. Without a buffer the result
 * is not late. Called by the timer only, not in a doorbell: malloc() is
 * allowed. */
static void hca_request_hold(struct hca_request *rq)
{
    size_t length             = rq->to_cqe ? 0 : rq->wqe.length;
    struct hca_result *result = malloc(sizeof(*result) + length);

    if (result == NULL) {
        return;
    }
    result->wqe    = rq->wqe;
    result->is_old = false;
    rq->result     = result;
    if (!rq->to_cqe) {
        hca_sgl_put(&rq->local);
        hca_sgl_init(&rq->local, hca_owner(hca_self));
        hca_sgl_add(&rq->local, result->data, length);
    }
}

static enum hca_check hca_request_transmit(struct hca_request *rq)
{
    enum hca_check check;

    if (hca_request_holds(rq)) {
        hca_request_hold(rq);
    }
    if (hca_pcie_is_on() && (rq->wqe.op->flags & HCA_OP_DATA_OUT)) {
        hca_pcie_add_sgl(&rq->qp->pcie, HCA_PCIE_GATHER, &rq->local,
                         rq->wqe.raw, sizeof(rq->wqe.raw));
    }
    hca_request_build(rq);
    hca_wire_send(rq->qp, &rq->msg, &rq->ack);
    check = (rq->ack.code == HCA_ACK) ? hca_request_acked(rq) :
                                        hca_request_acks[rq->ack.code](rq);
    if (check != HCA_OK) {
        free(rq->result);
        rq->result = NULL;
    }
    return check;
}

static enum hca_check hca_request_map(struct hca_request *rq)
{
    if (rq->to_cqe) {
        hca_sgl_add(&rq->local,
                    (hca_sq_of(rq->qp)->streams != NULL) ?
                        hca_stream_inlined(rq->qp, rq->wqe.idx) :
                        rq->data,
                    rq->wqe.length);
        return HCA_OK;
    }
    return hca_wqe_mem_map(rq->qp, &rq->wqe, &rq->local);
}

/* Waits once for pages that are missing. */
__attribute__((cold)) static enum hca_check
hca_request_page(struct hca_request *rq)
{
    uint32_t cap = hca_msg_odp(hca_request_msgs[rq->wqe.opcode].op);

    if (!(hca_odp_caps(rq->qp->type) & cap)) {
        return hca_check_wqe(HCA_CHECK_LKEY_ODP, rq->wqe.qpn, rq->wqe.idx, cap);
    }
    if (!rq->tries->is_paged && hca_odp_is_missing(&rq->local)) {
        rq->tries->is_paged = true;
        hca_odp_count();
        return hca_request_wait(rq, hca_odp_ns);
    }
    hca_odp_mark_sgl(&rq->local);
    return HCA_OK;
}

static enum hca_check hca_request_send(struct hca_request *rq)
{
    enum hca_check check;

    if (rq->wqe.length > 1ull << rq->qp->attr.log_msg_max) {
        return hca_check_wqe(HCA_CHECK_MSG_LEN, rq->wqe.qpn, rq->wqe.idx,
                             rq->wqe.length);
    }
    if ((rq->qp->type == HCA_QP_UD) && (rq->wqe.length > HCA_UD_MTU)) {
        return hca_check_wqe(HCA_CHECK_UD_LEN, rq->wqe.qpn, rq->wqe.idx,
                             rq->wqe.length);
    }
    hca_sgl_init(&rq->local, hca_owner(hca_self));
    rq->to_cqe = hca_request_fits_cqe(rq);
    check      = hca_request_map(rq);
    if (check == HCA_OK) {
        if (__builtin_expect(rq->local.on_demand, 0)) {
            check = hca_request_page(rq);
        }
        if (check == HCA_OK) {
            check = hca_request_transmit(rq);
        }
    }
    hca_sgl_put(&rq->local);
    return check;
}

/* Returns the fault of a rule that selects the UMR, or HCA_FAULT_NONE. */
__attribute__((cold)) static enum hca_fault_what
hca_request_umr_fault(const struct hca_request *rq)
{
    struct hca_rule_event event = {.point = HCA_RULE_UMR};
    const struct hca_rule *rule;
    enum hca_fault_what what;
    uint64_t n;

    rule = hca_rules_find(&event, &n);
    if (rule == NULL) {
        return HCA_FAULT_NONE;
    }
    what = rule->what;
    hca_info("qp 0x%x: fault: %s of a WQE", rq->wqe.qpn, hca_rule_name(what));
    return what;
}

/* Executes a UMR, and an invalidation out of its order: that of the layout
 * before, which has come late, or that of this layout, which comes early. */
static enum hca_check hca_request_umr_change(struct hca_request *rq)
{
    enum hca_fault_what what;
    enum hca_check check;

    if (!hca_rules_are_set()) {
        return hca_umr_execute(rq->qp, &rq->wqe);
    }
    what = hca_request_umr_fault(rq);
    if (what == HCA_FAULT_UMR_REFUSED) {
        return HCA_CHECK_UMR_KEY;
    }
    check = (what == HCA_FAULT_INVAL_RACED) ? HCA_CHECK_UMR_NOT_FREE :
                                              hca_umr_execute(rq->qp, &rq->wqe);
    if ((what == HCA_FAULT_INVAL_RACED) ||
        ((what == HCA_FAULT_INVAL_EARLY) && (check == HCA_OK))) {
        hca_umr_free(rq->qp, &rq->wqe);
    }
    return check;
}

/* Executes a UMR. If the next WQE was rung before the UMR has completed, by the
 * doorbell record as it is now, behind_umr is set; not with streams, as the
 * next WQE may be of another one. */
static enum hca_check hca_request_umr(struct hca_request *rq)
{
    struct hca_qp *qp    = rq->qp;
    enum hca_check check = hca_request_umr_change(rq);
    uint16_t rung        = qp->req.ci + hca_qp_sq_posted(qp);

    qp->req.behind_umr = (check == HCA_OK) && !qp->has_streams &&
                         (rung != (uint16_t)(rq->wqe.idx + rq->wqe.blocks));
    return check;
}

/* A rule may put the queue in error: then the WQE is flushed. */
static enum hca_check hca_request_fault(struct hca_request *rq)
{
    bool is_umr = (rq->wqe.opcode == MLX5_OPCODE_UMR);

    if (is_umr || (rq->wqe.opcode == MLX5_OPCODE_TAG_MATCHING)) {
        hca_fault_local(rq->qp, is_umr ? HCA_RULE_OP_UMR : HCA_RULE_OP_TAG);
    }
    return (hca_qp_state(rq->qp) == IBV_QPS_RTS) ? HCA_OK :
                                                   hca_request_wait(rq, 1);
}

static enum hca_check hca_request_local(struct hca_request *rq)
{
    if (hca_rules_are_set() && (hca_request_fault(rq) != HCA_OK)) {
        return HCA_WAIT;
    }
    switch (rq->wqe.opcode) {
    case MLX5_OPCODE_UMR:
        return hca_request_umr(rq);
    case MLX5_OPCODE_LOCAL_INVAL:
        return hca_umr_local_inval(rq->qp, &rq->wqe);
    case MLX5_OPCODE_TAG_MATCHING:
        return hca_tm_op_execute(rq->qp, &rq->wqe);
    default:
        return HCA_OK; /* NOP */
    }
}

enum hca_check hca_request_execute(struct hca_request *rq, uint16_t idx,
                                   uint16_t posted)
{
    struct hca_qp *qp = rq->qp;
    enum hca_check check;

    rq->to_cqe    = false;
    rq->result    = NULL;
    rq->ack.check = HCA_OK;
    check         = hca_wqe_read(&rq->wqe, qp, idx, posted);
    if (check != HCA_OK) {
        return check;
    }
    if (qp->req.behind_umr) {
        if (hca_lacks(HCA_LACK_UMR_FENCE) &&
            (hca_wqe_fm(&rq->wqe) != HCA_FM_STRONG)) {
            return hca_check_wqe(HCA_CHECK_UMR_FENCE, rq->wqe.qpn, rq->wqe.idx,
                                 hca_wqe_fm(&rq->wqe));
        }
        qp->req.behind_umr = false;
    }
    if (hca_pcie_is_on() && (hca_bf_pushed(rq->wqe.qpn, idx) == 0)) {
        hca_pcie_wqe(&qp->pcie, idx, rq->wqe.ds * 16);
    }
    if (hca_late_ns != 0) {
        hca_late_before(qp, &rq->wqe);
        if (hca_qp_state(qp) != IBV_QPS_RTS) {
            return hca_request_wait(rq, 1); /* to be flushed */
        }
    } else if (hca_wqe_is_fenced(&rq->wqe)) {
        qp->req.reads = 0;
    }
    if (rq->tries->retries > qp->attr.retry_cnt) {
        return hca_check_wqe(HCA_CHECK_RETRY_EXC, rq->wqe.qpn, rq->wqe.idx,
                             rq->tries->retries);
    }
    if (hca_order == HCA_ORDER_RELAXED) {
        hca_posted_before(&hca_sq_of(qp)->posted, &rq->wqe);
    }
    return (rq->wqe.op->flags & HCA_OP_LOCAL) ? hca_request_local(rq) :
                                                hca_request_send(rq);
}
