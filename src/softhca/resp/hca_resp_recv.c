/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Copies the bytes of a message, and completes its receive (hca_resp.h). The
 * caller holds obj.lock of the QP; hca_resp_copy() releases that of a DCT
 * during a long copy.
 */
#include "hca_resp.h"
#include "hca_completer.h"
#include "hca_grh.h"
#include "hca_posted.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_odp.h"
#include "softhca/obj/hca_pcie.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Longest copy, in bytes, under the lock of a DCT. A longer copy releases the
 * lock, as many senders write to one DCT at once. */
#define HCA_DCT_COPY_LOCKED 16384u

enum hca_check hca_resp_bad(const struct hca_responder *resp,
                            enum hca_check check, uint64_t got)
{
    return hca_check_recv(check, resp->qp->obj.num, got);
}

bool hca_resp_pdn(struct hca_responder *resp, uint32_t *pdn)
{
    const struct hca_srq *srq;

    *pdn = resp->qp->pdn;
    if (resp->qp->type == HCA_QP_XRC_RECV) {
        srq = hca_obj_peek(HCA_KIND_SRQ, resp->msg->srqn);
        if ((srq == NULL) || !srq->is_xrc || (srq->xrcdn != resp->qp->xrcdn)) {
            return false;
        }
        *pdn               = srq->pdn;
        resp->memory.owner = hca_owner(srq->obj.proc);
        /* No lock: if the SRQ is still there, its process kept the slot. */
        return hca_obj_peek(HCA_KIND_SRQ, resp->msg->srqn) == srq;
    }
    return true;
}

static bool hca_resp_unlocks(const struct hca_responder *resp)
{
    return (resp->qp->type == HCA_QP_DCT) && !resp->srq_held &&
           (resp->msg->data->length > HCA_DCT_COPY_LOCKED);
}

/* Takes the lock again, also of a destroyed QP.
 * @return false if the QP was destroyed meanwhile. */
static bool hca_resp_relock(struct hca_responder *resp)
{
    hca_obj_hold(HCA_KIND_QP, resp->qp);
    return atomic_load(&resp->qp->obj.num) == resp->msg->dest_qpn;
}

/* Counts bytes that are written to, or read from, resp->memory. A copy to the
 * device's own memory (a header, data in a CQE) is no transfer on PCIe. */
static void hca_resp_count(struct hca_responder *resp,
                           const struct hca_sgl *dst, const struct hca_sgl *src)
{
    struct hca_pcie *pcie = &resp->qp->pcie;

    if (dst == &resp->memory) {
        hca_pcie_add_sgl(pcie, HCA_PCIE_PAYLOAD, dst, NULL, 0);
    } else if (src == &resp->memory) {
        hca_pcie_add_sgl(pcie, HCA_PCIE_REMOTE, src, NULL, 0);
    }
}

enum hca_check hca_resp_copy(struct hca_responder *resp,
                             const struct hca_sgl *dst,
                             const struct hca_sgl *src, enum hca_check fault)
{
    bool unlocks = hca_resp_unlocks(resp);
    int ret;

    if (hca_pcie_is_on()) {
        hca_resp_count(resp, dst, src);
    }
    if ((resp->msg->posted != NULL) && hca_posted_keep(resp->msg, dst)) {
        return HCA_OK;
    }
    if (unlocks) {
        hca_obj_unlock(resp->qp);
    }
    ret = hca_sgl_copy(dst, src);
    if (unlocks && !hca_resp_relock(resp)) {
        return HCA_DROP;
    }
    return (ret == 0) ? HCA_OK : hca_resp_failed(resp, ret, fault);
}

enum hca_check hca_resp_page_in(struct hca_responder *resp, uint32_t cap,
                                enum hca_check refusal)
{
    bool unlocks = hca_resp_unlocks(resp), is_missing;

    if (!(hca_odp_caps(resp->qp->type) & cap)) {
        return hca_resp_bad(resp, refusal, cap);
    }
    if (!resp->msg->is_paged) {
        if (unlocks) {
            hca_obj_unlock(resp->qp);
        }
        is_missing = hca_odp_is_missing(&resp->memory);
        if (unlocks && !hca_resp_relock(resp)) {
            return HCA_DROP;
        }
        if (is_missing) {
            return HCA_PAGE_FAULT;
        }
    }
    hca_odp_mark_sgl(&resp->memory);
    return HCA_OK;
}

/* Checks the pages of a receive buffer. A receive of an SRQ goes back to it. */
static __attribute__((noinline)) enum hca_check
hca_resp_page_recv(struct hca_responder *resp)
{
    uint32_t srqn = hca_resp_srqn(resp), cap = IBV_ODP_SUPPORT_RECV;
    const struct hca_srq *srq = NULL;
    enum hca_check check;

    if (!resp->recv.in_ring) {
        srq = hca_obj_peek(HCA_KIND_SRQ, srqn);
        cap = ((srq != NULL) && !srq->is_cyclic) ? IBV_ODP_SUPPORT_SRQ_RECV : 0;
    }
    check = hca_resp_page(resp, cap, HCA_CHECK_RECV_LKEY_ODP);
    return ((check == HCA_PAGE_FAULT) && (srq != NULL)) ?
               hca_srq_put_back(resp->qp, srqn, &resp->recv) :
               check;
}

/* Removes a receive of the QP's own queue only now: if the sender dies during
 * its copy, the queue is unchanged. An SRQ's was removed when it was taken. */
enum hca_check hca_resp_complete(struct hca_responder *resp, const void *data)
{
    if (resp->recv.in_ring) {
        hca_rq_consume(resp->qp, &resp->recv);
    }
    return hca_completer_recv(resp->qp, &resp->recv, resp->msg, data);
}

/* Completes with a copy of the message, of up to 64 bytes. */
static __attribute__((noinline)) enum hca_check
hca_resp_put_copy(struct hca_responder *resp)
{
    uint8_t data[64];
    struct hca_sgl local;
    enum hca_check check;

    hca_sgl_init(&local, hca_owner(hca_self));
    hca_sgl_add(&local, data, resp->msg->data->length);
    check = hca_resp_copy(resp, &local, resp->msg->data,
                          HCA_CHECK_RECV_LKEY_FAULT);
    return (check == HCA_OK) ? hca_resp_complete(resp, data) : check;
}

static enum hca_check hca_resp_put_inline(struct hca_responder *resp)
{
    const void *inner    = hca_sgl_inner(resp->msg->data);
    enum hca_check check = HCA_OK;

    if (hca_strict) {
        check = hca_recv_check_cqe(resp->qp, &resp->recv);
    }
    if (check != HCA_OK) {
        return check;
    }
    return (inner != NULL) ? hca_resp_complete(resp, inner) :
                             hca_resp_put_copy(resp);
}

/* Writes a datagram to the buffer, from byte 40 on. The first 40 bytes are for
 * the GRH; without a GRH they are not written. */
static enum hca_check hca_resp_put_ud(struct hca_responder *resp)
{
    const struct hca_sgl *data = resp->msg->data;
    uint8_t grh[HCA_GRH_SIZE];
    struct hca_sgl src;

    if (!resp->msg->path->grh) {
        hca_sgl_skip(&resp->memory, HCA_GRH_SIZE);
        return hca_resp_copy(resp, &resp->memory, data,
                             HCA_CHECK_RECV_LKEY_FAULT);
    }
    hca_grh_build(grh, resp->msg->path, resp->msg->src_dev,
                  data->length + (resp->msg->has_imm ? 4 : 0));
    hca_sgl_init(&src, data->owner);
    hca_sgl_add(&src, grh, sizeof(grh));
    hca_sgl_append(&src, data, 0, data->length);
    return hca_resp_copy(resp, &resp->memory, &src, HCA_CHECK_RECV_LKEY_FAULT);
}

static enum hca_check hca_resp_put_memory(struct hca_responder *resp)
{
    unsigned header = (resp->qp->type == HCA_QP_UD) ? HCA_GRH_SIZE : 0;
    uint64_t length = resp->msg->data->length;
    enum hca_check check;

    resp->memory.owner = resp->recv.owner;
    check = hca_recv_map(resp->qp, &resp->recv, length + header, &resp->memory);
    if ((check == HCA_OK) && __builtin_expect(resp->memory.on_demand, 0)) {
        check = hca_resp_page_recv(resp);
    }
    if (check == HCA_OK) {
        check = hca_resp_invalidate(resp);
    }
    if ((check != HCA_OK) || (length + header == 0)) {
        return check;
    }
    return (header > 0) ? hca_resp_put_ud(resp) :
                          hca_resp_copy(resp, &resp->memory, resp->msg->data,
                                        HCA_CHECK_RECV_LKEY_FAULT);
}

/* Writes the message to the receive buffer. Not inlined: short messages, which
 * matter most, go into the CQE. */
static __attribute__((noinline)) enum hca_check
hca_resp_put(struct hca_responder *resp)
{
    enum hca_check check = hca_resp_put_memory(resp);

    if (check == HCA_OK) {
        check = hca_resp_complete(resp, NULL);
        hca_srq_prefetch(resp->qp->srqn, resp->recv.owner,
                         resp->msg->data->length);
    }
    return check;
}

enum hca_check hca_resp_invalidate_key(struct hca_responder *resp)
{
    struct hca_key_use use = {
        .key = be32toh(resp->msg->imm),
        .qpn = resp->qp->obj.num,
        .dev = resp->qp->obj.dev,
    };

    if (!hca_resp_pdn(resp, &use.pdn) ||
        (hca_mkey_invalidate_remote(&use) != HCA_KEY_OK)) {
        return hca_resp_bad(resp, HCA_CHECK_RKEY_INVAL, use.key);
    }
    return HCA_OK;
}

/* Returns true if the message goes into the CQE. The device may always use the
 * buffer instead, and does so for
 *  - UD: libmlx5 (v44, handle_responder()) reads bits 28 and 29 of flags_rqpn,
 *    bytes 24..27 of the CQE, as IBV_WC_GRH. In an entry of 64 bytes a message
 *    of 25 to 32 bytes overwrites them, so that the flag is random. Only UD
 *    programs use it.
 *  - a FIN of a rendezvous: these bits would be those of its rkey. */
static bool hca_resp_fits_cqe(const struct hca_responder *resp)
{
    uint64_t length = resp->msg->data->length;

    if ((length == 0) || resp->msg->is_fin || (length > resp->qp->cs_res) ||
        (length > resp->recv.length) || (resp->recv.num_strides > 0) ||
        (resp->qp->type == HCA_QP_UD)) {
        return false;
    }
    return (length <= HCA_CQ_INLINE_LEAST) ||
           (length <= hca_cq_inline_room(resp->recv.cqn, resp->qp->cs_res));
}

enum hca_check hca_resp_deliver(struct hca_responder *resp)
{
    enum hca_check check;

    if (!hca_resp_fits_cqe(resp)) {
        return hca_resp_put(resp);
    }
    check = hca_resp_invalidate(resp);
    return (check == HCA_OK) ? hca_resp_put_inline(resp) : check;
}
