/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The step of a QP into the error state: see hca_qp.h. MODIFY_QP changes states
 * under sq_lock and obj.lock (hca_qp_cmd_modify.c). The responder puts a QP in
 * error under obj.lock only: to take a sq_lock there would deadlock two QPs
 * that send to each other. The requester looks at the state before each WQE.
 */
#define _GNU_SOURCE
#include "hca_qp.h"
#include "hca_completer.h"
#include "hca_tm_job.h"
#include "softhca/base/hca_log.h"
#include "softhca/obj/hca_async.h"
#include "softhca/obj/hca_rq.h"
#include "softhca/obj/hca_todo.h"

/* Counts each receive as taken, even if its completion fails: if its CQ is full
 * there is no way left to report it. */
void hca_qp_flush_rq(struct hca_qp *qp)
{
    unsigned posted = hca_rq_posted(qp);

    if (posted > (1u << qp->rq.log_cnt)) {
        return; /* the doorbell record is wrong */
    }
    for (; posted > 0; posted--) {
        hca_completer_flush_recv(qp, qp->resp.ci++);
    }
}

void hca_qp_enter_error(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_ERR) {
        return;
    }
    hca_info("qp 0x%x: in error", atomic_load(&qp->obj.num));
    atomic_store(&qp->state, IBV_QPS_ERR);
    hca_qp_flush_rq(qp);
    hca_tm_job_flush(qp);
    if ((qp->srqn != 0) && (qp->type != HCA_QP_DCT)) {
        hca_async_event(&qp->obj, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
}

void hca_qp_repair(void *obj)
{
    struct hca_qp *qp = obj;

    if (hca_qp_state(qp) == IBV_QPS_ERR) {
        hca_qp_flush_rq(qp);
        hca_tm_job_flush(qp);
    }
}

void hca_qp_fail(struct hca_qp *qp)
{
    hca_qp_enter_error(qp);
    hca_todo_add_failed(qp->obj.num);
}

void hca_qp_fail_requester(struct hca_qp *qp)
{
    hca_obj_hold(HCA_KIND_QP, qp);
    if (((qp->type == HCA_QP_UC) || (qp->type == HCA_QP_UD)) &&
        (hca_qp_state(qp) == IBV_QPS_RTS)) {
        hca_info("qp 0x%x: send queue in error", atomic_load(&qp->obj.num));
        atomic_store(&qp->state, IBV_QPS_SQE);
    } else {
        hca_qp_enter_error(qp);
    }
    hca_obj_unlock(qp);
}

void hca_qp_fail_fatal(struct hca_qp *qp)
{
    hca_obj_hold(HCA_KIND_QP, qp);
    hca_async_event(&qp->obj, IBV_EVENT_QP_FATAL);
    hca_qp_enter_error(qp);
    hca_obj_unlock(qp);
}

/* Returns true if the QP, or its SRQ with a CQ of its own (XRC, tag matching),
 * completes on the CQ. */
static bool hca_qp_completes_on(const struct hca_qp *qp, uint32_t cqn)
{
    const struct hca_srq *srq = (qp->srqn != 0) ?
                                    hca_obj_peek(HCA_KIND_SRQ, qp->srqn) :
                                    NULL;

    return (qp->scqn == cqn) || (qp->rcqn == cqn) ||
           ((srq != NULL) && (srq->cqn == cqn));
}

static void hca_qp_fail_one_of_cq(void *obj, void *arg)
{
    const uint32_t *cqn = arg;
    struct hca_qp *qp = hca_obj_lock(HCA_KIND_QP, ((struct hca_obj *)obj)->num);

    if (qp == NULL) {
        return;
    }
    if ((qp->type != HCA_QP_DCT) && hca_qp_completes_on(qp, *cqn) &&
        (hca_qp_state(qp) != IBV_QPS_RESET) &&
        (hca_qp_state(qp) != IBV_QPS_ERR)) {
        hca_async_event(&qp->obj, IBV_EVENT_QP_FATAL);
        hca_qp_fail(qp);
    }
    hca_obj_unlock(qp);
}

void hca_qp_fail_cq(uint32_t cqn)
{
    const struct hca_cq *cq = hca_obj_peek(HCA_KIND_CQ, cqn);

    if (cq != NULL) {
        hca_obj_foreach(HCA_KIND_QP, cq->obj.proc, hca_qp_fail_one_of_cq, &cqn);
    }
}
