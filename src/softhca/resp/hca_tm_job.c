/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Records of messages to busy tagged buffers: see hca_tm_job.h. */
#include "hca_tm_job.h"
#include "hca_completer.h"
#include "softhca/base/hca_log.h"
#include "softhca/obj/hca_rq.h"

void hca_tm_job_init(struct hca_tm_job *job, const struct hca_qp *qp,
                     const struct hca_msg *msg,
                     const struct hca_rndv_request *request)
{
    *job = (struct hca_tm_job){
        .proc       = hca_self,
        .is_dc      = (qp->type == HCA_QP_DCT),
        .dev        = qp->obj.dev,
        .qpn        = qp->obj.num,
        .srqn       = qp->srqn,
        .num_resets = qp->num_resets,
        .msg        = *msg,
        .msg_path   = *msg->path,
        .request    = *request,
    };
}

void hca_tm_job_foreach(struct hca_srq *srq,
                        void (*fn)(struct hca_srq *srq, uint16_t index,
                                   void *arg),
                        void *arg)
{
    const struct hca_tm *tm = hca_srq_tm(srq);

    for (unsigned i = 0; i < tm->size; i++) {
        if (tm->entries[i].state == HCA_TM_BUSY) {
            fn(srq, i, arg);
        }
    }
}

/* Returns true for an eager message to @qp, whose obj.lock is held: its sender
 * died, as a live one would hold the lock. */
static bool hca_tm_job_is_cut(const struct hca_tm_job *job,
                              const struct hca_qp *qp)
{
    return !job->is_rndv && (job->qpn == qp->obj.num);
}

static void hca_tm_job_cancel(struct hca_srq *srq, uint16_t index, void *arg)
{
    const struct hca_qp *qp = arg;
    struct hca_tm *tm       = hca_srq_tm(srq);
    struct hca_tm_job *job  = hca_tm_job(tm, index);
    struct hca_msg msg      = job->msg;
    struct hca_sgl none     = {.length = 0};
    struct hca_recv recv;

    if (!hca_tm_job_is_cut(job, qp)) {
        return;
    }
    hca_info("qp 0x%x: its peer ended in the middle of a message for entry %u "
             "of srq 0x%x",
             job->qpn, index, srq->obj.num);
    hca_srq_take_tagged(srq, &tm->entries[index].data, &recv);
    recv.tm_op    = PRM_CQE_TM_MSG_COMPLETION_CANCELED;
    recv.tm_index = index;
    recv.tm_bytes = job->length;
    recv.tmh      = &job->request.tmh;
    msg.path      = &job->msg_path;
    msg.data      = &none;
    hca_tm_consume_end(tm, index);
    hca_completer_recv(qp, &recv, &msg, NULL);
}

static void hca_tm_job_forget(struct hca_srq *srq, uint16_t index, void *arg)
{
    struct hca_tm_job *job = hca_tm_job(hca_srq_tm(srq), index);

    if (hca_tm_job_is_cut(job, arg)) {
        job->qpn = 0;
    }
}

/* Calls @fn for each busy entry of the QP's SRQ; not for a DCT, whose lock is
 * released in the middle of messages. */
static void hca_tm_job_of_qp(const struct hca_qp *qp,
                             void (*fn)(struct hca_srq *srq, uint16_t index,
                                        void *arg))
{
    struct hca_srq *srq;

    if (!qp->has_tm || (qp->type == HCA_QP_DCT)) {
        return;
    }
    srq = hca_obj_lock(HCA_KIND_SRQ, qp->srqn);
    if (srq != NULL) {
        hca_tm_job_foreach(srq, fn, (void *)qp);
        hca_obj_unlock(srq);
    }
}

void hca_tm_job_flush(const struct hca_qp *qp)
{
    hca_tm_job_of_qp(qp, hca_tm_job_cancel);
}

void hca_tm_job_drop(const struct hca_qp *qp)
{
    hca_tm_job_of_qp(qp, hca_tm_job_forget);
}
