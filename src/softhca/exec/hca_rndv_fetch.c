/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Fetches the data of rendezvous: see hca_rndv_fetch.h. For a connected QP, on
 * which the program itself sends nothing, a rendezvous is the requester: it
 * holds the QP's sq_lock and uses its PSN. For a DC target it is an initiator
 * without a number, with the attributes of the SRQ (SET_XRQ_DC_PARAMS_ENTRY).
 */
#include "hca_rndv_fetch.h"
#include "hca_fatal.h"
#include "hca_late.h"
#include "hca_wire.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/fabric/hca_proc.h"
#include "softhca/obj/hca_odp.h"
#include "softhca/obj/hca_pcie.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/obj/hca_todo.h"
#include "softhca/resp/hca_completer.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/resp/hca_rndv.h"

#include <endian.h>
#include <string.h>

#define HCA_RNDV_DC_RETRIES 7u

/* The sender's attributes; those of a connected QP are read each time */
struct hca_rndv_sender {
    struct hca_qp *qp;    /* sq_lock is held, or it is private */
    struct hca_path path; /* DC */
    uint32_t dest_qpn;
    uint8_t mtu, timeout, retry_cnt, rnr_retry;
};

static uint32_t hca_rndv_length(const struct hca_rndv *rndv)
{
    return be32toh(rndv->job.request.rvh.len);
}

/* --- completion ---------------------------------------------------------- */

/* Completes the tagged buffer.
 * @param tm_op  PRM_CQE_TM_EXPECTED, or ..._CANCELED: no data will come */
static void hca_rndv_complete(struct hca_rndv *rndv, uint8_t tm_op)
{
    struct hca_srq *srq       = hca_obj_lock(HCA_KIND_SRQ, rndv->job.srqn);
    struct hca_tm_job *job    = &rndv->job;
    struct hca_recv *recv     = &rndv->recv;
    const struct hca_qp qp    = {.obj = {.num = job->qpn, .dev = job->dev}};
    const struct hca_sgl none = {.length = 0};

    if (srq == NULL) {
        return; /* gone with its program */
    }
    if (hca_fatal_is(srq->obj.proc, job->dev)) {
        hca_obj_unlock(srq);
        return;
    }
    hca_tm_consume_end(hca_srq_tm(srq), recv->tm_index);
    recv->tm_op    = tm_op;
    recv->tmh      = (tm_op == PRM_CQE_TM_EXPECTED) ? NULL : &job->request.tmh;
    recv->tm_bytes = hca_rndv_length(rndv);
    job->msg.path  = &job->msg_path;
    job->msg.data  = &none;
    hca_completer_recv(&qp, recv, &job->msg, NULL);
    hca_obj_unlock(srq);
}

static void hca_rndv_fail(struct hca_rndv *rndv)
{
    if (rndv->state == HCA_RNDV_READ) {
        hca_rndv_complete(rndv, PRM_CQE_TM_MSG_COMPLETION_CANCELED);
    }
    rndv->state = HCA_RNDV_FAILED;
}

static void hca_rndv_refused(struct hca_rndv *rndv, enum hca_check check,
                             uint64_t got)
{
    hca_check_recv(check, rndv->job.qpn, got);
    hca_rndv_fail(rndv);
}

/* --- the two messages ---------------------------------------------------- */

/* Builds the READ of the data. @return HCA_OK, or an error, logged. */
static enum hca_check hca_rndv_read(struct hca_rndv *rndv,
                                    const struct hca_rndv_sender *sender,
                                    struct hca_msg *msg, struct hca_sgl *sgl)
{
    uint32_t length = hca_rndv_length(rndv);

    msg->op    = HCA_MSG_READ;
    msg->raddr = be64toh(rndv->job.request.rvh.va);
    msg->rkey  = be32toh(rndv->job.request.rvh.rkey);
    hca_sgl_init(sgl, rndv->recv.owner);
    return hca_recv_map(sender->qp, &rndv->recv, length, sgl);
}

/* Builds the FIN: the headers of the request with another opcode. */
static enum hca_check hca_rndv_fin(struct hca_rndv *rndv,
                                   const struct hca_rndv_sender *sender,
                                   struct hca_msg *msg, struct hca_sgl *sgl)
{
    (void)sender;
    msg->op                      = HCA_MSG_SEND;
    msg->is_fin                  = true;
    rndv->job.request.tmh.opcode = IBV_TMH_FIN;
    hca_sgl_init(sgl, hca_owner(hca_self));
    hca_sgl_add(sgl, &rndv->job.request,
                offsetof(struct hca_rndv_request, ravh));
    return HCA_OK;
}

static enum hca_check (*const hca_rndv_msgs[])(
    struct hca_rndv *rndv, const struct hca_rndv_sender *sender,
    struct hca_msg *msg, struct hca_sgl *sgl) = {
    [HCA_RNDV_READ] = hca_rndv_read,
    [HCA_RNDV_FIN]  = hca_rndv_fin,
};

static void hca_rndv_address(const struct hca_rndv *rndv,
                             const struct hca_rndv_sender *sender,
                             struct hca_msg *msg)
{
    msg->mtu       = sender->mtu;
    msg->src_dev   = rndv->job.dev;
    msg->src_qpn   = rndv->job.qpn;
    msg->dest_qpn  = sender->dest_qpn;
    msg->psn       = sender->qp->req.psn;
    msg->dc_key    = be64toh(rndv->job.request.ravh.dc_access_key);
    msg->executed  = rndv->tries.executed;
    msg->is_spared = rndv->tries.was_late;
    msg->is_paged  = hca_odp_is_over(&rndv->tries);
    msg->path      = rndv->job.is_dc ? &sender->path : &sender->qp->attr.path;
}

/* --- answers ------------------------------------------------------------- */

static void hca_rndv_next_psn(const struct hca_rndv_sender *sender)
{
    sender->qp->req.psn = (sender->qp->req.psn + 1) & HCA_PSN_MASK;
}

static void hca_rndv_acked(struct hca_rndv *rndv,
                           const struct hca_rndv_sender *sender)
{
    if (!rndv->tries.executed) {
        hca_rndv_next_psn(sender);
    }
    memset(&rndv->tries, 0, sizeof(rndv->tries));
    if (rndv->state == HCA_RNDV_READ) {
        hca_rndv_complete(rndv, PRM_CQE_TM_EXPECTED);
    }
    rndv->state++;
}

/* Waits until the sender of the request has a receive for the FIN. */
static void hca_rndv_rnr(struct hca_rndv *rndv,
                         const struct hca_rndv_sender *sender,
                         const struct hca_ack *ack)
{
    rndv->tries.retries = 0;
    if ((sender->rnr_retry != HCA_RNR_FOREVER) &&
        (rndv->tries.rnr_retries++ >= sender->rnr_retry)) {
        hca_rndv_refused(rndv, HCA_CHECK_RNR_EXC, sender->rnr_retry);
        return;
    }
    rndv->wait_ns = hca_wire_rnr_ns(ack->rnr_timer);
}

/* Waits before the next try. If only the answer was lost, that is recorded:
 * other messages use the next PSN meanwhile, so that this one's PSN would not
 * show the responder that it has executed it. */
static void hca_rndv_unanswered(struct hca_rndv *rndv,
                                const struct hca_rndv_sender *sender,
                                const struct hca_ack *ack)
{
    if (ack->lost && !rndv->tries.executed) {
        rndv->tries.executed = true;
        hca_rndv_next_psn(sender);
    }
    if ((sender->timeout != 0) &&
        (rndv->tries.retries++ >= sender->retry_cnt)) {
        hca_rndv_refused(rndv, HCA_CHECK_RETRY_EXC, rndv->tries.retries);
        return;
    }
    rndv->wait_ns = hca_wire_timeout_ns(sender->timeout);
}

static void hca_rndv_answered(struct hca_rndv *rndv,
                              const struct hca_rndv_sender *sender,
                              const struct hca_ack *ack)
{
    static const uint8_t naks[] = {
        [HCA_ACK_INVAL]  = HCA_CHECK_REMOTE_INVAL,
        [HCA_ACK_ACCESS] = HCA_CHECK_REMOTE_ACCESS,
        [HCA_ACK_OP]     = HCA_CHECK_REMOTE_OP,
    };

    rndv->tries.was_late = (ack->code == HCA_ACK_LATE);
    switch (ack->code) {
    case HCA_ACK:
        hca_rndv_acked(rndv, sender);
        break;
    case HCA_ACK_LATE:
        rndv->wait_ns = ack->wait_ns;
        break;
    case HCA_ACK_RNR:
        if (ack->is_fault) {
            hca_odp_refused(&rndv->tries);
        }
        hca_rndv_rnr(rndv, sender, ack);
        break;
    case HCA_ACK_SEQ:
    case HCA_ACK_NONE:
        hca_rndv_unanswered(rndv, sender, ack);
        break;
    default:
        hca_rndv_refused(rndv, naks[ack->code], ack->check);
        break;
    }
}

static void hca_rndv_transmit(struct hca_rndv *rndv,
                              const struct hca_rndv_sender *sender)
{
    struct hca_msg msg = {.data = NULL};
    enum hca_check check;
    struct hca_ack ack;
    struct hca_sgl sgl;

    check = hca_rndv_msgs[rndv->state](rndv, sender, &msg, &sgl);
    if (check == HCA_OK) {
        msg.data = &sgl;
        hca_rndv_address(rndv, sender, &msg);
        hca_wire_send(sender->qp, &msg, &ack);
        if (hca_pcie_is_on() && (msg.op == HCA_MSG_READ)) {
            hca_pcie_add_sgl(&sender->qp->pcie, HCA_PCIE_RESULT, &sgl, NULL, 0);
        }
    }
    hca_sgl_put(&sgl);
    if (check == HCA_OK) {
        hca_rndv_answered(rndv, sender, &ack);
    } else {
        hca_rndv_fail(rndv); /* the buffer's key is gone since the match */
    }
}

/* --- senders ------------------------------------------------------------- */

/* Sends on a connected QP, whose sq_lock is held. */
static void hca_rndv_send_rc(struct hca_rndv *rndv, struct hca_qp *qp)
{
    const struct hca_rndv_sender sender = {
        .qp        = qp,
        .dest_qpn  = qp->attr.dest_qpn,
        .mtu       = qp->attr.mtu,
        .timeout   = qp->attr.timeout,
        .retry_cnt = qp->attr.retry_cnt,
        .rnr_retry = qp->attr.rnr_retry,
    };

    hca_rndv_transmit(rndv, &sender);
    if (rndv->state == HCA_RNDV_FAILED) {
        hca_qp_fail_requester(qp);
        hca_todo_add_failed(rndv->job.qpn);
    }
}

static void hca_rndv_rc(struct hca_rndv *rndv)
{
    struct hca_qp *qp = hca_obj_peek(HCA_KIND_QP, rndv->job.qpn);

    if (qp != NULL) {
        hca_mutex_lock(&qp->sq_lock);
        if ((atomic_load(&qp->obj.num) == rndv->job.qpn) &&
            (qp->num_resets == rndv->job.num_resets) &&
            (hca_qp_state(qp) == IBV_QPS_RTS)) {
            hca_rndv_send_rc(rndv, qp);
            hca_mutex_unlock(&qp->sq_lock);
            return;
        }
        hca_mutex_unlock(&qp->sq_lock);
    }
    hca_rndv_fail(rndv); /* reset, in error or destroyed meanwhile */
}

static void hca_rndv_dc(struct hca_rndv *rndv)
{
    struct hca_qp qp = {
        .obj  = {.num = rndv->job.qpn, .dev = rndv->job.dev},
        .type = HCA_QP_DCI,
        .pdn  = rndv->recv.pdn,
        .pkey = rndv->job.pkey,
    };
    const struct hca_rndv_sender sender = {
        .qp        = &qp,
        .path      = rndv->job.way_back,
        .dest_qpn  = be32toh(rndv->job.request.ravh.sl_dct) & PRM_RAVH_DCT,
        .mtu       = rndv->job.mtu,
        .timeout   = rndv->job.timeout,
        .retry_cnt = HCA_RNDV_DC_RETRIES,
        .rnr_retry = HCA_RNR_FOREVER,
    };

    if (hca_obj_peek(HCA_KIND_SRQ, rndv->job.srqn) != NULL) {
        hca_rndv_transmit(rndv, &sender);
    } else {
        hca_rndv_fail(rndv); /* its program owns the buffers again */
    }
}

static void hca_rndv_timer(struct hca_timer *timer);

/* Continues in the helper, which may free @rndv before this returns. */
static void hca_rndv_wait(struct hca_rndv *rndv, uint64_t ns)
{
    rndv->timer.fn = hca_rndv_timer;
    hca_timer_arm(&rndv->timer, hca_time_ns() + ns);
}

/* Runs steps until one has to wait. The device of a dead process, or one that
 * has failed for it, sends nothing more. */
static void hca_rndv_continue(struct hca_rndv *rndv)
{
    rndv->wait_ns = 0;
    while ((rndv->wait_ns == 0) && (rndv->state < HCA_RNDV_DONE)) {
        if (!hca_proc_alive(rndv->recv.owner.proc) ||
            hca_fatal_is(rndv->recv.owner.proc, rndv->job.dev)) {
            rndv->state = HCA_RNDV_FAILED;
        } else if (rndv->job.is_dc) {
            hca_rndv_dc(rndv);
        } else {
            hca_rndv_rc(rndv);
        }
    }
    if (rndv->wait_ns != 0) {
        hca_rndv_wait(rndv, rndv->wait_ns);
    } else {
        hca_rndv_put(rndv);
    }
}

static void hca_rndv_timer(struct hca_timer *timer)
{
    hca_rndv_continue((struct hca_rndv *)timer);
}

void hca_rndv_fetch(void)
{
    struct hca_rndv *rndv = hca_todo.rndv;
    struct hca_rndv *next, *list = NULL;

    for (hca_todo.rndv = NULL; rndv != NULL; rndv = next) {
        next       = rndv->next; /* reverse: to the order of the matches */
        rndv->next = list;
        list       = rndv;
    }
    for (; list != NULL; list = next) {
        next = list->next;
        if (hca_late_ns != 0) {
            hca_rndv_wait(list, hca_late_ns);
        } else {
            hca_rndv_continue(list);
        }
    }
}

/* --- of a dead process ---------------------------------------------------- */

/* Takes over the fetch for an entry of the SRQ, which is locked.
 * @return false if as many as possible are under way */
static bool hca_rndv_begin_anew(struct hca_srq *srq, uint16_t index)
{
    const struct hca_tm *tm = hca_srq_tm(srq);
    struct hca_tm_job *job  = hca_tm_job(tm, index);
    struct hca_rndv *rndv   = hca_rndv_get();

    if (rndv == NULL) {
        return false;
    }
    hca_info("srq 0x%x: entry %u: the process that fetched its data died",
             srq->obj.num, index);
    job->proc = hca_self;
    rndv->job = *job;
    hca_proc_have_watched(srq->obj.proc);
    hca_srq_take_tagged(srq, &tm->entries[index].data, &rndv->recv);
    rndv->recv.tm_index = index;
    hca_rndv_wait(rndv, 0);
    return true;
}

struct hca_rndv_heir {
    unsigned proc;
    struct timespec deadline;
    bool is_done;
};

/* A process that leaves in order leaves its own fetches to others. */
static void hca_rndv_take(struct hca_srq *srq, uint16_t index, void *arg)
{
    struct hca_rndv_heir *heir = arg;
    struct hca_tm_job *job     = hca_tm_job(hca_srq_tm(srq), index);

    if (!job->is_rndv || (job->proc != heir->proc)) {
        return;
    }
    if ((heir->proc == hca_self) || !hca_rndv_begin_anew(srq, index)) {
        heir->is_done = false;
    }
}

static void hca_rndv_take_all(void *obj, void *arg)
{
    struct hca_rndv_heir *heir = arg;
    struct hca_srq *srq        = obj;
    uint32_t srqn              = atomic_load(&srq->obj.num);

    if (!hca_srq_has_tm(srqn)) {
        return;
    }
    if (!hca_obj_hold_until(HCA_KIND_SRQ, srq, &heir->deadline)) {
        heir->is_done = false;
        return;
    }
    if (atomic_load(&srq->obj.num) == srqn) {
        hca_tm_job_foreach(srq, hca_rndv_take, heir);
    }
    hca_obj_unlock(srq);
}

bool hca_rndv_fetch_inherit(unsigned proc)
{
    struct hca_rndv_heir heir = {
        .proc     = proc,
        .deadline = hca_mutex_deadline(),
        .is_done  = true,
    };

    for (unsigned i = 1; i < HCA_MAX_PROCS; i++) {
        if ((i != proc) &&
            (atomic_load(&hca_fabric->procs[i].state) != HCA_PROC_FREE)) {
            hca_obj_foreach(HCA_KIND_SRQ, i, hca_rndv_take_all, &heir);
        }
    }
    return heir.is_done;
}
