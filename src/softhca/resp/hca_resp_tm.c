/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tag matching by the responder. A message begins with a header (struct
 * ibv_tmh); a match goes to the tagged buffer without it, any other message to
 * a receive of the SRQ as it is (rdma-core, Documentation/tag_matching.md).
 * Matches and unexpected messages complete in the order in which they were
 * matched: the SRQ is locked from the look at its list to the completion.
 *
 *   one packet        CONSUMED_MSG
 *   more than one     CONSUMED (the lock is released, data moves) EXPECTED
 *   rendezvous        CONSUMED (hca_rndv_fetch.c fetches the data) EXPECTED
 *     by software     CONSUMED_MSG_SW_RNDV, with the message in the buffer
 *   no match          UNEXPECTED, and the device counts it
 *   no tag, FIN       NO_TAG
 *   the last two, in strides: one completion a packet (hca_resp_strides.c)
 *
 * A failure before the completion leaves the list unchanged and completes
 * nothing here: the index in a completion in error would be that of a receive
 * of the SRQ, which libmlx5 then frees.
 */
#include "hca_resp.h"
#include "hca_rndv.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_srq_take.h"
#include "softhca/obj/hca_tm.h"

#include <endian.h>
#include <string.h>

#define HCA_TM_INLINE 64u /* most bytes of a tagged buffer's data in a CQE */

/* A message to be matched. */
struct hca_tm_msg {
    struct hca_responder *resp;
    struct hca_srq *srq; /* locked, or NULL */
    union {
        struct ibv_tmh tmh;
        struct hca_rndv_request rndv;
    };
    uint64_t length; /* without the header */
};

static void hca_tm_unlock(struct hca_tm_msg *msg)
{
    if (msg->srq != NULL) {
        hca_obj_unlock(msg->srq);
    }
    msg->srq            = NULL;
    msg->resp->srq_held = false;
}

static inline bool hca_tm_lock(struct hca_tm_msg *msg)
{
    msg->srq            = hca_obj_lock(HCA_KIND_SRQ, msg->resp->qp->srqn);
    msg->resp->srq_held = (msg->srq != NULL);
    return msg->resp->srq_held;
}

/* Reads as much of the header as the message has; the rest of it is 0. */
static enum hca_check hca_tm_read_header(struct hca_tm_msg *msg)
{
    const struct hca_sgl *data = msg->resp->msg->data;
    size_t size = (data->length < sizeof(msg->rndv)) ? data->length :
                                                       sizeof(msg->rndv);
    struct hca_sgl src, dst;

    if (size == 0) {
        return hca_resp_bad(msg->resp, HCA_CHECK_TMH_LEN, 0);
    }
    msg->length = data->length - sizeof(msg->tmh);
    hca_sgl_part(&src, data, 0, size);
    hca_sgl_init(&dst, hca_owner(hca_self));
    hca_sgl_add(&dst, &msg->rndv, size);
    return hca_resp_copy(msg->resp, &dst, &src, HCA_CHECK_RECV_LKEY_FAULT);
}

/* Checks the header except for its reserved bytes, which UCX fills. */
static enum hca_check hca_tm_check_header(const struct hca_tm_msg *msg)
{
    uint64_t length = msg->resp->msg->data->length;

    switch (msg->tmh.opcode) {
    case IBV_TMH_NO_TAG:
        return HCA_OK; /* the rest is the program's */
    case IBV_TMH_FIN:
    case IBV_TMH_EAGER:
        return (length >= sizeof(msg->tmh)) ?
                   HCA_OK :
                   hca_resp_bad(msg->resp, HCA_CHECK_TMH_LEN, length);
    case IBV_TMH_RNDV:
        return ((length >= hca_rndv_header(msg->resp->qp)) &&
                (length <= HCA_RNDV_MAX_HDR)) ?
                   HCA_OK :
                   hca_resp_bad(msg->resp, HCA_CHECK_TMH_RNDV, length);
    default:
        return hca_resp_bad(msg->resp, HCA_CHECK_TMH_OPCODE, msg->tmh.opcode);
    }
}

/* Returns true if strides hold its first packets, from an earlier try. */
static bool hca_tm_goes_on(const struct hca_tm_msg *msg)
{
    return msg->resp->msg->arrived > 0;
}

/* --- to a receive of the SRQ --------------------------------------------- */

static enum hca_check hca_tm_to_srq(struct hca_tm_msg *msg, uint8_t tm_op)
{
    struct hca_responder *resp = msg->resp;
    struct hca_recv *recv      = &resp->recv;
    enum hca_check check;

    if (msg->srq->strides.number > 0) {
        return hca_resp_strides_send(resp, msg->srq, tm_op);
    }
    check = hca_srq_take_locked(resp->qp, msg->srq, recv);
    if (check != HCA_OK) {
        return check;
    }
    recv->tm_op = tm_op;
    return hca_resp_deliver(resp);
}

/* Returns true if this try is the first one that delivered anything, all of the
 * message or, with strides, its first packets. */
static bool hca_tm_has_begun(const struct hca_tm_msg *msg, enum hca_check check)
{
    return !hca_tm_goes_on(msg) &&
           ((check == HCA_OK) || (msg->resp->ack->arrived > 0));
}

/* Delivers a message without a match as it is, and counts it. */
static enum hca_check hca_tm_unmatched(struct hca_tm_msg *msg, uint8_t tm_op)
{
    enum hca_check check = hca_tm_to_srq(msg, tm_op);

    if (hca_tm_has_begun(msg, check)) {
        hca_tm_count(hca_srq_tm(msg->srq), tm_op);
    }
    return check;
}

/* --- to a tagged buffer -------------------------------------------------- */

static enum hca_check hca_tm_complete(struct hca_tm_msg *msg, uint8_t tm_op,
                                      const void *data)
{
    struct hca_recv *recv = &msg->resp->recv;

    recv->tm_op    = tm_op;
    recv->tmh      = (tm_op == PRM_CQE_TM_EXPECTED) ? NULL : &msg->tmh;
    recv->tm_bytes = msg->length;
    return hca_resp_complete(msg->resp, data);
}

static bool hca_tm_fits_cqe(const struct hca_tm_msg *msg)
{
    return (msg->length > 0) && (msg->length <= HCA_TM_INLINE) &&
           (hca_cq_inline_room(msg->resp->recv.cqn, msg->resp->qp->cs_res) ==
            HCA_TM_INLINE);
}

/* Consumes the entry and completes it.
 * @param data  for the CQE; NULL: the data is in the buffer */
static enum hca_check hca_tm_consumed(struct hca_tm_msg *msg, uint8_t tm_op,
                                      const void *data)
{
    hca_tm_consume(hca_srq_tm(msg->srq), msg->resp->recv.tm_index);
    return hca_tm_complete(msg, tm_op, data);
}

/* Delivers a message that completes at once to the buffer. */
static enum hca_check hca_tm_one_packet(struct hca_tm_msg *msg, uint8_t tm_op,
                                        const struct hca_sgl *from)
{
    struct hca_responder *resp = msg->resp;
    enum hca_check check       = HCA_OK;

    if (msg->length > 0) {
        check = hca_resp_copy(resp, &resp->memory, from,
                              HCA_CHECK_RECV_LKEY_FAULT);
    }
    return (check == HCA_OK) ? hca_tm_consumed(msg, tm_op, NULL) : check;
}

/* Delivers a message to the CQE. */
static enum hca_check hca_tm_to_cqe(struct hca_tm_msg *msg, uint8_t tm_op,
                                    const struct hca_sgl *from)
{
    const void *inner = hca_sgl_inner(from);
    uint8_t data[HCA_TM_INLINE];
    enum hca_check check;
    struct hca_sgl local;

    if (inner != NULL) {
        return hca_tm_consumed(msg, tm_op, inner);
    }
    hca_sgl_init(&local, hca_owner(hca_self));
    hca_sgl_add(&local, data, msg->length);
    check = hca_resp_copy(msg->resp, &local, from, HCA_CHECK_RECV_LKEY_FAULT);
    return (check == HCA_OK) ? hca_tm_consumed(msg, tm_op, data) : check;
}

/* Completes the buffer, as canceled if the copy failed. It stays busy if a
 * process is out of reach (HCA_DROP): see hca_tm_job.h. */
static enum hca_check hca_tm_end(struct hca_tm_msg *msg, enum hca_check check)
{
    if (check == HCA_DROP) {
        return HCA_DROP;
    }
    if (!hca_tm_lock(msg)) {
        return HCA_DROP; /* the SRQ was destroyed */
    }
    hca_tm_consume_end(hca_srq_tm(msg->srq), msg->resp->recv.tm_index);
    if (check == HCA_OK) {
        return hca_tm_complete(msg, PRM_CQE_TM_EXPECTED, NULL);
    }
    hca_tm_complete(msg, PRM_CQE_TM_MSG_COMPLETION_CANCELED, NULL);
    return check;
}

/* Delivers a message of several packets, with the SRQ unlocked while data
 * moves. */
static enum hca_check hca_tm_more_packets(struct hca_tm_msg *msg,
                                          const struct hca_sgl *from)
{
    struct hca_responder *resp = msg->resp;
    struct hca_tm *tm          = hca_srq_tm(msg->srq);
    struct hca_tm_job *job     = hca_tm_job(tm, resp->recv.tm_index);
    enum hca_check check;

    hca_tm_job_init(job, resp->qp, resp->msg, &msg->rndv);
    job->length = msg->length;
    hca_tm_consume_begin(tm, resp->recv.tm_index);
    check = hca_tm_complete(msg, PRM_CQE_TM_CONSUMED, NULL);
    hca_tm_unlock(msg);
    if (check != HCA_OK) {
        return check;
    }
    return hca_tm_end(msg, hca_resp_copy(resp, &resp->memory, from,
                                         HCA_CHECK_RECV_LKEY_FAULT));
}

static enum hca_check hca_tm_expected(struct hca_tm_msg *msg, uint16_t index)
{
    struct hca_responder *resp = msg->resp;
    struct hca_recv *recv      = &resp->recv;
    enum hca_check check;
    struct hca_sgl from;

    hca_srq_take_tagged(msg->srq, &hca_srq_tm(msg->srq)->entries[index].data,
                        recv);
    recv->tm_index = index;
    if (msg->length > recv->length) {
        return hca_resp_bad(resp, HCA_CHECK_TM_LEN, msg->length);
    }
    hca_sgl_part(&from, resp->msg->data, sizeof(msg->tmh), msg->length);
    if (hca_tm_fits_cqe(msg)) {
        return hca_tm_to_cqe(msg, PRM_CQE_TM_CONSUMED_MSG, &from);
    }
    resp->memory.owner = recv->owner;
    check = hca_recv_map(resp->qp, recv, msg->length, &resp->memory);
    if (check != HCA_OK) {
        return check;
    }
    return (resp->msg->data->length <= (128u << resp->msg->mtu)) ?
               hca_tm_one_packet(msg, PRM_CQE_TM_CONSUMED_MSG, &from) :
               hca_tm_more_packets(msg, &from);
}

/* --- rendezvous ---------------------------------------------------------- */

/* Writes the message itself to the buffer, or to the CQE, as libmlx5 expects
 * for any match (handle_tag_matching()): the program fetches the data. */
static enum hca_check hca_tm_sw_rndv(struct hca_tm_msg *msg)
{
    struct hca_responder *resp = msg->resp;
    struct hca_recv *recv      = &resp->recv;
    enum hca_check check;

    msg->length = resp->msg->data->length;
    if (msg->length > recv->length) {
        return hca_resp_bad(resp, HCA_CHECK_TM_LEN, msg->length);
    }
    if (hca_tm_fits_cqe(msg)) {
        return hca_tm_to_cqe(msg, PRM_CQE_TM_CONSUMED_MSG_SW_RNDV,
                             resp->msg->data);
    }
    resp->memory.owner = recv->owner;
    check = hca_recv_map(resp->qp, recv, msg->length, &resp->memory);
    return (check != HCA_OK) ?
               check :
               hca_tm_one_packet(msg, PRM_CQE_TM_CONSUMED_MSG_SW_RNDV,
                                 resp->msg->data);
}

/* Returns true if the device may fetch the data: it fits into the buffer, QP
 * and SRQ allow it, and for DC the SRQ's attributes for that are set. */
static bool hca_tm_can_fetch(const struct hca_tm_msg *msg)
{
    const struct hca_qp *qp = msg->resp->qp;

    return (be32toh(msg->rndv.rvh.len) <= msg->resp->recv.length) &&
           qp->has_rndv && msg->srq->has_rndv &&
           ((qp->type != HCA_QP_DCT) || msg->srq->dc.is_set);
}

/* Checks the DC key of a request. No document says with which of two keys an
 * adapter fetches the data: that of the request or that of the SRQ. UCX has one
 * for all. This device uses the first; without TM_OWN_KEY (hca_caps.h) the two
 * must be equal. */
static enum hca_check hca_tm_check_dc_key(const struct hca_tm_msg *msg)
{
    uint64_t key = be64toh(msg->rndv.ravh.dc_access_key);

    return ((msg->resp->qp->type != HCA_QP_DCT) ||
            !hca_lacks(HCA_LACK_TM_OWN_KEY) || (key == msg->srq->dc.key)) ?
               HCA_OK :
               hca_resp_bad(msg->resp, HCA_CHECK_TMH_DC_KEY, key);
}

static enum hca_check hca_tm_rndv(struct hca_tm_msg *msg, uint16_t index)
{
    struct hca_responder *resp = msg->resp;
    struct hca_tm *tm          = hca_srq_tm(msg->srq);
    struct hca_rndv *rndv;
    enum hca_check check;

    hca_srq_take_tagged(msg->srq, &tm->entries[index].data, &resp->recv);
    resp->recv.tm_index = index;
    rndv                = hca_tm_can_fetch(msg) ? hca_rndv_get() : NULL;
    if (rndv == NULL) {
        return hca_tm_sw_rndv(msg);
    }
    resp->memory.owner = resp->recv.owner;
    check              = hca_tm_check_dc_key(msg);
    if (check == HCA_OK) {
        check = hca_recv_map(resp->qp, &resp->recv, be32toh(msg->rndv.rvh.len),
                             &resp->memory);
    }
    if (check != HCA_OK) {
        hca_rndv_put(rndv);
        return check;
    }
    hca_rndv_start(rndv, resp, msg->srq, &msg->rndv);
    hca_tm_consume_begin(tm, index);
    return hca_tm_complete(msg, PRM_CQE_TM_CONSUMED, NULL);
}

/* --- dispatch ------------------------------------------------------------ */

static enum hca_check hca_tm_matched(struct hca_tm_msg *msg, uint16_t index)
{
    enum hca_check check = hca_resp_invalidate(msg->resp);

    if (check != HCA_OK) {
        return check;
    }
    return (msg->tmh.opcode == IBV_TMH_RNDV) ? hca_tm_rndv(msg, index) :
                                               hca_tm_expected(msg, index);
}

static enum hca_check hca_tm_dispatch(struct hca_tm_msg *msg)
{
    uint16_t index;

    if (msg->srq->in_error) {
        return hca_resp_bad(msg->resp, HCA_CHECK_SRQ, msg->srq->obj.num);
    }
    if ((msg->tmh.opcode != IBV_TMH_EAGER) &&
        (msg->tmh.opcode != IBV_TMH_RNDV)) {
        return hca_tm_unmatched(msg, PRM_CQE_TM_NO_TAG);
    }
    index = hca_tm_goes_on(msg) ?
                HCA_TM_NONE :
                hca_tm_match(hca_srq_tm(msg->srq), msg->tmh.tag);
    return (index == HCA_TM_NONE) ?
               hca_tm_unmatched(msg, PRM_CQE_TM_UNEXPECTED) :
               hca_tm_matched(msg, index);
}

/* Executes any message. */
static __attribute__((noinline)) enum hca_check
hca_tm_send_any(struct hca_responder *resp)
{
    struct hca_tm_msg msg = {.resp = resp};
    enum hca_check check;

    check = hca_tm_read_header(&msg);
    if (check == HCA_OK) {
        check = hca_tm_check_header(&msg);
    }
    if (check != HCA_OK) {
        return check;
    }
    if (!hca_tm_lock(&msg)) {
        return hca_resp_bad(resp, HCA_CHECK_SRQ, resp->qp->srqn);
    }
    check = hca_tm_dispatch(&msg);
    hca_tm_unlock(&msg);
    return check;
}

/* --- the short way -------------------------------------------------------- */

/* Reads the header where most messages have it: in their first piece, in the
 * device or in memory of this process.
 * @return false if it is not there, or not that of an eager message or of one
 *         without a tag */
static inline bool hca_tm_read_first(const struct hca_sgl *data,
                                     struct ibv_tmh *tmh)
{
    if ((data->count == 0) || (data->iov[0].iov_len < sizeof(*tmh))) {
        return false;
    }
    if (!data->is_outer) {
        memcpy(tmh, data->iov[0].iov_base, sizeof(*tmh));
    } else if (data->has_via || (data->owner.proc != hca_self) ||
               (hca_trap_guard_memcpy(tmh, data->iov[0].iov_base,
                                      sizeof(*tmh)) != 0)) {
        return false;
    }
    return (tmh->opcode == IBV_TMH_EAGER) || (tmh->opcode == IBV_TMH_NO_TAG);
}

/* hca_tm_unmatched() without strides; unlocks the SRQ. */
static inline enum hca_check hca_tm_first_unmatched(struct hca_responder *resp,
                                                    struct hca_srq *srq,
                                                    uint8_t tm_op)
{
    enum hca_check check = hca_srq_take_locked(resp->qp, srq, &resp->recv);

    if (check == HCA_OK) {
        resp->recv.tm_op = tm_op;
        check            = hca_resp_deliver(resp);
    }
    if (check == HCA_OK) {
        hca_tm_count(hca_srq_tm(srq), tm_op);
    }
    resp->srq_held = false;
    hca_obj_unlock(srq);
    return check;
}

/* Delivers a message to entry @index, and unlocks the SRQ. */
static __attribute__((noinline)) enum hca_check
hca_tm_first_matched(struct hca_responder *resp, struct hca_srq *srq,
                     const struct ibv_tmh *tmh, uint16_t index)
{
    struct hca_tm_msg msg = {
        .resp   = resp,
        .srq    = srq,
        .rndv   = {.tmh = *tmh},
        .length = resp->msg->data->length - sizeof(*tmh),
    };
    enum hca_check check;

    check = srq->in_error ? hca_resp_bad(resp, HCA_CHECK_SRQ, srq->obj.num) :
                            hca_tm_matched(&msg, index);
    hca_tm_unlock(&msg);
    return check;
}

/* Most messages match nothing in the list, which is empty, and need no strides:
 * they take as long as with an SRQ that does not match tags. */
enum hca_check hca_resp_tm_send(struct hca_responder *resp)
{
    uint8_t tm_op = PRM_CQE_TM_NO_TAG;
    struct ibv_tmh tmh;
    struct hca_srq *srq;
    uint16_t index;

    if (!hca_tm_read_first(resp->msg->data, &tmh)) {
        return hca_tm_send_any(resp);
    }
    srq = hca_obj_lock(HCA_KIND_SRQ, resp->qp->srqn);
    if (srq == NULL) {
        return hca_resp_bad(resp, HCA_CHECK_SRQ, resp->qp->srqn);
    }
    if (__builtin_expect(srq->strides.number > 0, 0)) {
        hca_obj_unlock(srq);
        return hca_tm_send_any(resp);
    }
    resp->srq_held = true;
    if (tmh.opcode == IBV_TMH_EAGER) {
        index = hca_tm_match(hca_srq_tm(srq), tmh.tag);
        if (index != HCA_TM_NONE) {
            return hca_tm_first_matched(resp, srq, &tmh, index);
        }
        tm_op = PRM_CQE_TM_UNEXPECTED;
    }
    return hca_tm_first_unmatched(resp, srq, tm_op);
}
