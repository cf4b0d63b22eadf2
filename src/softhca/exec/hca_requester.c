/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The requester (hca_requester.h): takes WQEs in order, sends each as one
 * message and waits for its answer before the next, which satisfies all fences.
 * It runs to completion in the thread that rang the doorbell, under the QP's
 * sq_lock; if it has to wait (RNR, no answer), the helper's timer continues.
 * Queues that may have several WQEs under way use hca_stream_run.c instead: a
 * DCI with streams, each queue of a device that is late (hca_late.h) or out of
 * order (hca_order.h).
 */
#include "hca_requester.h"
#include "hca_late.h"
#include "hca_request.h"
#include "hca_sq.h"
#include "hca_stream.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/resp/hca_completer.h"
#include "softhca/resp/hca_qp.h"

/* The RQ of a QP in error is looked at after the first millisecond, then after
 * twice as long each time, up to a quarter second. */
#define HCA_ERR_LOOK_NS 1000000ull
#define HCA_ERR_LOOKS   8

/* Completes a WQE in error, and puts the QP in error. If the WQE cannot be read
 * the place of the next one is unknown: all rung WQEs are dropped with it. */
static void hca_requester_fail(struct hca_request *rq, enum hca_check check,
                               uint16_t posted)
{
    struct hca_qp *qp = rq->qp;

    hca_completer_send_error(qp, &rq->wqe, check,
                             (rq->ack.check != HCA_OK) ? rq->ack.check : check);
    qp->req.ci += (rq->wqe.blocks == 0) ? posted : rq->wqe.blocks;
    hca_qp_fail_requester(qp);
}

/* Inlined into the run of a queue */
#define HCA_REQUESTER_F static inline __attribute__((always_inline))

HCA_REQUESTER_F void hca_requester_done(struct hca_request *rq)
{
    struct hca_qp *qp = rq->qp;

    qp->req.ci += rq->wqe.blocks;
    if (!hca_wqe_is_signaled(&rq->wqe)) {
        return;
    }
    qp->req.reads = 0;
    if (hca_completer_send(qp, &rq->wqe, rq->to_cqe ? rq->data : NULL) !=
        HCA_OK) {
        hca_qp_fail_fatal(qp);
    }
}

HCA_REQUESTER_F void hca_requester_step(struct hca_qp *qp, uint16_t posted)
{
    struct hca_request rq;
    enum hca_check check;

    rq.qp    = qp;
    rq.tries = &qp->req.tries;
    check    = hca_request_execute(&rq, qp->req.ci, posted);
    if (__builtin_expect(check == HCA_OK, 1)) {
        hca_requester_done(&rq);
    } else if (check == HCA_WAIT) {
        qp->req.waiting = true;
        hca_timer_arm(&hca_sq_of(qp)->timer, hca_time_ns() + rq.wait_ns);
    } else {
        hca_requester_fail(&rq, check, posted);
    }
}

static void hca_requester_overrun(struct hca_qp *qp, uint16_t posted)
{
    hca_check_wqe(HCA_CHECK_SQ_OVERRUN, qp->obj.num, qp->req.ci, posted);
    hca_qp_fail_fatal(qp);
}

static bool hca_requester_is_ready(const struct hca_qp *qp)
{
    return (hca_qp_state(qp) == IBV_QPS_RTS) && !qp->req.waiting;
}

/* Flushes posted WQEs on the SQ of a QP in ERR or SQE; sq_lock is held. The end
 * of an invalid WQE is unknown: the rest is dropped then. */
static void hca_requester_flush_sq(struct hca_qp *qp)
{
    struct hca_wqe wqe;
    uint16_t posted;

    qp->req.waiting = false;
    if ((qp->req.fetched > 0) && (hca_sq_of(qp) != NULL) &&
        (hca_stream_of(qp) != NULL)) {
        hca_late_finish(qp);
        hca_stream_flush(qp);
    }
    posted = hca_qp_sq_posted(qp);
    if (posted > (1u << qp->sq.log_cnt)) {
        qp->req.ci += posted;
        return;
    }
    for (; posted > 0; posted -= wqe.blocks) {
        hca_wqe_peek(&wqe, qp, qp->req.ci, posted);
        wqe.blocks = (wqe.blocks == 0) ? posted : wqe.blocks;
        hca_completer_send_error(qp, &wqe, HCA_CHECK_FLUSH, HCA_CHECK_FLUSH);
        qp->req.ci += wqe.blocks;
    }
}

/* Lets the helper look for receives that are posted to a QP in error, soon at
 * first, then less often: they must be flushed, and ring no doorbell. */
static void hca_requester_watch_rq(struct hca_qp *qp)
{
    if (qp->rq.buf == 0) {
        return;
    }
    hca_timer_arm(&hca_sq_of(qp)->timer,
                  hca_time_ns() + (HCA_ERR_LOOK_NS << qp->req.err_looks));
    if (qp->req.err_looks < HCA_ERR_LOOKS) {
        qp->req.err_looks++;
    }
}

static void hca_requester_flush_rq(struct hca_qp *qp)
{
    hca_obj_hold(HCA_KIND_QP, qp);
    if (hca_rq_posted(qp) > 0) {
        qp->req.err_looks = 0;
        hca_qp_flush_rq(qp);
    }
    hca_obj_unlock(qp);
}

/* Flushes a QP in error: not inline, as it is rare. */
static __attribute__((noinline)) void hca_requester_flush(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_ERR) {
        hca_requester_flush_sq(qp);
        hca_requester_flush_rq(qp);
        hca_requester_watch_rq(qp);
    } else if (hca_qp_state(qp) == IBV_QPS_SQE) {
        hca_requester_flush_sq(qp);
    }
}

/* Executes the WQEs that are posted by now. The doorbell of a later one waits
 * for sq_lock, or runs the queue when this thread leaves the device. */
HCA_REQUESTER_F void hca_requester_execute(struct hca_qp *qp)
{
    uint16_t end = qp->req.ci + hca_qp_sq_posted(qp), posted;

    while (hca_requester_is_ready(qp) && ((posted = end - qp->req.ci) > 0)) {
        if (posted > (1u << qp->sq.log_cnt)) {
            hca_requester_overrun(qp, posted);
        } else {
            hca_requester_step(qp, posted);
        }
    }
}

/* Returns true if more is rung than the ring has room for. If it seems so,
 * completes late results first: the program may have used the ring again up to
 * a NOP that has completed before the results in front of it (hca_stream.h). */
static bool hca_requester_has_overrun(struct hca_qp *qp)
{
    if (hca_qp_sq_posted(qp) <= (1u << qp->sq.log_cnt)) {
        return false;
    }
    if (qp->req.fetched > 0) {
        hca_late_finish(qp);
    }
    return hca_qp_sq_posted(qp) > (1u << qp->sq.log_cnt);
}

static void hca_requester_run_streams(struct hca_qp *qp)
{
    if ((hca_late_ns != 0) && !hca_late_is_due(qp)) {
        return;
    }
    if (hca_requester_is_ready(qp) && (hca_qp_sq_posted(qp) > 0)) {
        if (hca_requester_has_overrun(qp)) {
            hca_requester_overrun(qp, hca_qp_sq_posted(qp));
        } else {
            hca_stream_run(qp);
        }
    }
    if (hca_late_ns != 0) {
        hca_late_tick(qp);
    }
}

HCA_REQUESTER_F void hca_requester_run_attached(struct hca_qp *qp,
                                                const struct hca_sq *sq)
{
    if (__builtin_expect(sq->streams == NULL, 1)) {
        hca_requester_execute(qp);
    } else {
        hca_requester_run_streams(qp);
    }
    if (__builtin_expect(hca_qp_state(qp) != IBV_QPS_RTS, 0)) {
        hca_requester_flush(qp);
    }
}

void hca_requester_run_locked(struct hca_qp *qp)
{
    const struct hca_sq *sq = hca_sq_of(qp);

    if (sq != NULL) {
        hca_requester_run_attached(qp, sq);
    }
}

void hca_requester_run(struct hca_qp *qp, uint32_t qpn)
{
    const struct hca_sq *sq;

    hca_mutex_lock(&qp->sq_lock);
    sq = hca_sq_of(qp);
    if ((sq != NULL) && (atomic_load(&qp->obj.num) == qpn)) {
        hca_requester_run_attached(qp, sq);
    }
    hca_mutex_unlock(&qp->sq_lock);
}

/* Returns true if this process can flush the queue. Fetched WQEs (hca_stream.h)
 * are in the memory of the owner, whose timer runs while there are any. */
static bool hca_requester_can_flush(const struct hca_qp *qp)
{
    return (qp->obj.proc == hca_self) || (qp->req.fetched == 0);
}

void hca_requester_flush_failed(uint32_t qpn)
{
    struct hca_qp *qp = hca_obj_peek(HCA_KIND_QP, qpn);

    if ((qp == NULL) || !hca_mutex_try(&qp->sq_lock)) {
        return;
    }
    /* this lock keeps its rings from being freed meanwhile */
    if (hca_obj_lock(HCA_KIND_QP, qpn) != NULL) {
        if ((hca_qp_state(qp) == IBV_QPS_ERR) && qp->req.attached &&
            hca_requester_can_flush(qp)) {
            hca_requester_flush_sq(qp);
        }
        hca_obj_unlock(qp);
    }
    hca_mutex_unlock(&qp->sq_lock);
}

void hca_requester_timer(struct hca_timer *timer)
{
    struct hca_sq *sq = (struct hca_sq *)timer;

    hca_mutex_lock(&sq->qp->sq_lock);
    if ((hca_sq_of(sq->qp) == sq) && (sq->qp->obj.proc == hca_self)) {
        sq->qp->req.waiting = false;
        sq->qp->req.ticking = false;
        sq->qp->req.due     = true;
        hca_requester_run_locked(sq->qp);
        sq->qp->req.due = false;
    }
    hca_mutex_unlock(&sq->qp->sq_lock);
}
