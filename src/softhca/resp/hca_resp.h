/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A message under execution, for the files of the responder only: from
 * hca_responder.c, which takes it in and answers it, down to the steps of its
 * execution.
 */
#ifndef HCA_RESP_H
#define HCA_RESP_H

#include "hca_msg.h"
#include "softhca/obj/hca_rq.h"

#include <errno.h>

struct hca_responder {
    struct hca_qp *qp;
    const struct hca_msg *msg;
    struct hca_ack *ack;
    bool srq_held; /* lock of the SRQ, taken after the QP's */
    struct hca_recv recv;
    struct hca_sgl memory; /* read or written here by the message */
};

/* --- hca_resp_exec.c ------------------------------------------------------ */

/* Executes resp->msg. The caller releases resp->memory.
 * @return HCA_OK, HCA_CHECK_NO_RECV, HCA_PAGE_FAULT, HCA_DROP, or an error,
 *         logged. */
enum hca_check hca_resp_execute(struct hca_responder *resp);

/* Answers a message that was executed before: only a READ is executed again. An
 * atomic has its first result. @return as hca_resp_execute(). */
enum hca_check hca_resp_repeat(struct hca_responder *resp);

/* --- hca_resp_tm.c -------------------------------------------------------- */

/* Executes a SEND to a QP whose SRQ has tag matching.
 * @return as hca_resp_execute(). */
enum hca_check hca_resp_tm_send(struct hca_responder *resp);

/* --- hca_resp_strides.c --------------------------------------------------- */

/* Executes a SEND, from the bytes that had arrived before, to strides of an SRQ
 * whose lock is held. If it stores any packet, resp->ack->arrived becomes the
 * number of bytes in strides, also without success.
 * @param tm_op  PRM_CQE_TM_* of its completions
 * @return as hca_resp_execute(). */
enum hca_check hca_resp_strides_send(struct hca_responder *resp,
                                     struct hca_srq *srq, uint8_t tm_op);

/* --- hca_resp_recv.c ------------------------------------------------------ */

/* Logs that the field of @check is @got. @return @check. */
enum hca_check hca_resp_bad(const struct hca_responder *resp,
                            enum hca_check check, uint64_t got);

/* Returns the result of a copy, or an atomic, that failed with @ret: @fault,
 * logged; HCA_DROP, as a process that is gone does not answer. */
static inline enum hca_check hca_resp_failed(const struct hca_responder *resp,
                                             int ret, enum hca_check fault)
{
    return (ret == -ESRCH) ? HCA_DROP :
                             hca_resp_bad(resp, fault, resp->msg->raddr);
}

/* hca_resp_page() for memory on demand */
enum hca_check hca_resp_page_in(struct hca_responder *resp, uint32_t cap,
                                enum hca_check refusal);

/* Checks resp->memory before it is accessed.
 * @param cap  IBV_ODP_SUPPORT_* that memory on demand needs
 * @return HCA_OK; HCA_PAGE_FAULT if the message has to wait for pages; HCA_DROP
 *         as hca_resp_copy(); or @refusal, logged. */
static inline enum hca_check hca_resp_page(struct hca_responder *resp,
                                           uint32_t cap, enum hca_check refusal)
{
    return __builtin_expect(resp->memory.on_demand, 0) ?
               hca_resp_page_in(resp, cap, refusal) :
               HCA_OK;
}

/* Returns the number of the SRQ of the message; 0: it has none. */
static inline uint32_t hca_resp_srqn(const struct hca_responder *resp)
{
    return (resp->qp->type == HCA_QP_XRC_RECV) ? resp->msg->srqn :
                                                 resp->qp->srqn;
}

/* Takes the next receive of the QP's own queue or SRQ into resp->recv.
 * @return as hca_resp_execute(). */
static inline enum hca_check hca_resp_take_recv(struct hca_responder *resp)
{
    struct hca_qp *qp = resp->qp;
    uint32_t srqn     = hca_resp_srqn(resp);

    return ((srqn != 0) || (qp->type == HCA_QP_XRC_RECV)) ?
               hca_srq_take(qp, srqn, &resp->recv) :
               hca_rq_take(qp, &resp->recv);
}

/* Copies @src to @dst, or keeps a WRITE back (hca_posted.h). The lock of a DCT
 * may be released meanwhile, unless that of an SRQ is held, too.
 * @param fault  the error if memory is missing
 * @return HCA_OK; HCA_DROP if a process is out of reach, or the DCT was
 *         destroyed meanwhile; or @fault, logged. */
enum hca_check hca_resp_copy(struct hca_responder *resp,
                             const struct hca_sgl *dst,
                             const struct hca_sgl *src, enum hca_check fault);

/* Completes the receive; @data goes into the CQE, if not NULL.
 * @return HCA_OK or HCA_CHECK_CQ. */
enum hca_check hca_resp_complete(struct hca_responder *resp, const void *data);

/* Invalidates the mkey that the message names, if any, writes the whole message
 * to the receive that was taken, and completes that.
 * @return HCA_OK, HCA_DROP, or an error. */
enum hca_check hca_resp_deliver(struct hca_responder *resp);

/* hca_resp_invalidate() for a SEND with invalidate */
enum hca_check hca_resp_invalidate_key(struct hca_responder *resp);

/* Invalidates the mkey of a SEND with invalidate. Not before there is a receive
 * for it, as the sender may have to try again.
 * @return HCA_OK, also for other messages, or HCA_CHECK_RKEY_INVAL, logged. */
static inline enum hca_check hca_resp_invalidate(struct hca_responder *resp)
{
    return resp->msg->has_inval ? hca_resp_invalidate_key(resp) : HCA_OK;
}

/* Stores the domain of remote mkeys in @pdn. For XRC that is the SRQ's, whose
 * process becomes the owner of resp->memory.
 * @return false if an XRC message names no SRQ of the QP's XRC domain. */
bool hca_resp_pdn(struct hca_responder *resp, uint32_t *pdn);

#endif
