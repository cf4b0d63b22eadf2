/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Execution of messages by the responder (hca_resp.h): SEND into a receive
 * buffer, RDMA and atomics on the memory named by raddr and rkey. obj.lock of
 * the QP is held.
 */
#include "hca_resp.h"
#include "hca_atomic.h"
#include "hca_qp.h"
#include "softhca/obj/hca_pcie.h"

/* --- SEND --------------------------------------------------------------- */

static enum hca_check hca_resp_send(struct hca_responder *resp)
{
    enum hca_check check;

    if (__builtin_expect(resp->qp->has_tm, 0)) {
        return hca_resp_tm_send(resp);
    }
    check = hca_resp_take_recv(resp);
    return (check == HCA_OK) ? hca_resp_deliver(resp) : check;
}

/* --- RDMA --------------------------------------------------------------- */

/* Appends the memory at raddr to resp->memory, checked against rkey. Checks no
 * mkey for a message of 0 bytes (IBTA 9.7.4.1.5).
 * @return HCA_OK, HCA_PAGE_FAULT, or an error, logged. */
static enum hca_check hca_resp_map(struct hca_responder *resp, uint32_t access)
{
    const struct hca_msg *msg = resp->msg;
    struct hca_key_use use    = {
           .key    = msg->rkey,
           .qpn    = resp->qp->obj.num,
           .access = access,
           .dev    = resp->qp->obj.dev,
           .addr   = msg->raddr,
           .length = msg->data->length,
    };
    enum hca_key_fault fault;

    if (use.length == 0) {
        return HCA_OK;
    }
    if (!hca_resp_pdn(resp, &use.pdn)) {
        return hca_resp_bad(resp, HCA_CHECK_XRC_DOMAIN, msg->srqn);
    }
    fault = hca_sgl_add_key(&resp->memory, &use);
    /* the rows from HCA_CHECK_RKEY on are in the order of hca_key_fault */
    return (fault == HCA_KEY_OK) ?
               hca_resp_page(resp, hca_msg_odp(msg->op), HCA_CHECK_RKEY_ODP) :
               hca_resp_bad(resp, HCA_CHECK_RKEY + fault - 1,
                            (fault == HCA_KEY_BOUNDS) ? use.addr : use.key);
}

static enum hca_check hca_resp_write(struct hca_responder *resp)
{
    enum hca_check check;

    if (!(resp->qp->attr.access & IBV_ACCESS_REMOTE_WRITE)) {
        return hca_resp_bad(resp, HCA_CHECK_QP_WRITE, resp->msg->rkey);
    }
    check = hca_resp_map(resp, IBV_ACCESS_REMOTE_WRITE);
    if ((check == HCA_OK) && resp->msg->has_imm) {
        check = hca_resp_take_recv(resp);
    }
    if ((check == HCA_OK) && (resp->msg->data->length > 0)) {
        check = hca_resp_copy(resp, &resp->memory, resp->msg->data,
                              HCA_CHECK_RKEY_FAULT);
    }
    return ((check == HCA_OK) && resp->msg->has_imm) ?
               hca_resp_complete(resp, NULL) :
               check;
}

/* Returns true if the QP allows READs or atomics, by @access. The kernel turns
 * both off with max_dest_rd_atomic 0; a DC target has no such attribute. */
static bool hca_resp_may_rd_atomic(const struct hca_qp *qp, uint32_t access)
{
    return (qp->attr.access & access) &&
           ((qp->type == HCA_QP_DCT) || (qp->attr.max_dest_rd_atomic > 0));
}

/* Refuses a READ or an atomic if max_dest_rd_atomic others are under way (IBTA
 * 9.9.3, "too many RDMA READ or ATOMIC requests"). The requester counts those
 * in msg->reads that have no completion yet, and that no fence has waited for.
 * A DC target has no limit of its own. */
static enum hca_check hca_resp_rd_atomic(struct hca_responder *resp)
{
    return ((resp->qp->type == HCA_QP_DCT) ||
            (resp->msg->reads <
             hca_qp_rd_limit(resp->qp->attr.max_dest_rd_atomic))) ?
               HCA_OK :
               hca_resp_bad(resp, HCA_CHECK_RD_ATOMIC, resp->msg->reads + 1);
}

static enum hca_check hca_resp_read(struct hca_responder *resp)
{
    enum hca_check check;

    if (!hca_resp_may_rd_atomic(resp->qp, IBV_ACCESS_REMOTE_READ)) {
        return hca_resp_bad(resp, HCA_CHECK_QP_READ, resp->msg->rkey);
    }
    check = hca_resp_rd_atomic(resp);
    if (check == HCA_OK) {
        check = hca_resp_map(resp, IBV_ACCESS_REMOTE_READ);
    }
    if ((check != HCA_OK) || (resp->msg->data->length == 0)) {
        return check;
    }
    return hca_resp_copy(resp, resp->msg->data, &resp->memory,
                         HCA_CHECK_RKEY_FAULT);
}

static enum hca_check hca_resp_do_atomic(struct hca_responder *resp)
{
    int ret;

    if (resp->memory.count != 1) { /* an indirect mkey splits the operand */
        return hca_resp_bad(resp, HCA_CHECK_RKEY_BOUNDS, resp->msg->raddr);
    }
    if (resp->memory.has_via) { /* the null mkey: reads as 0 */
        resp->ack->atomic          = 0;
        resp->qp->resp.last_atomic = 0;
        return HCA_OK;
    }
    ret = hca_atomic_execute(resp->memory.owner,
                             (uintptr_t)resp->memory.iov[0].iov_base,
                             resp->msg->atomic, &resp->ack->atomic);
    if (ret != 0) {
        return hca_resp_failed(resp, ret, HCA_CHECK_RKEY_FAULT);
    }
    resp->qp->resp.last_atomic = resp->ack->atomic;
    if (hca_pcie_is_on()) { /* the operand is read, then written back */
        hca_pcie_add_sgl(&resp->qp->pcie, HCA_PCIE_REMOTE, &resp->memory, NULL,
                         0);
        hca_pcie_add_sgl(&resp->qp->pcie, HCA_PCIE_PAYLOAD, &resp->memory, NULL,
                         0);
    }
    return HCA_OK;
}

static enum hca_check hca_resp_atomic(struct hca_responder *resp)
{
    enum hca_check check;

    if (!hca_resp_may_rd_atomic(resp->qp, IBV_ACCESS_REMOTE_ATOMIC) ||
        resp->qp->attr.no_atomics) {
        return hca_resp_bad(resp, HCA_CHECK_QP_ATOMIC, resp->msg->rkey);
    }
    if (resp->msg->raddr % resp->msg->atomic->size != 0) {
        return hca_resp_bad(resp, HCA_CHECK_ATOMIC_ALIGN, resp->msg->raddr);
    }
    check = hca_resp_rd_atomic(resp);
    if (check == HCA_OK) {
        check = hca_resp_map(resp, IBV_ACCESS_REMOTE_ATOMIC);
    }
    return (check == HCA_OK) ? hca_resp_do_atomic(resp) : check;
}

static enum hca_check (*const hca_resp_ops[])(struct hca_responder *) = {
    [HCA_MSG_SEND]   = hca_resp_send,
    [HCA_MSG_WRITE]  = hca_resp_write,
    [HCA_MSG_READ]   = hca_resp_read,
    [HCA_MSG_ATOMIC] = hca_resp_atomic,
};

/* Returns false if the two ends have different MTUs and the message is longer
 * than the smaller one (IBTA 9.7.4.1.6). A DCT has an MTU, too (mlx5_ifc.h,
 * dctc): that it also refuses is inferred. */
static bool hca_resp_mtu_ok(const struct hca_responder *resp)
{
    unsigned mtu = resp->qp->attr.mtu;

    if (__builtin_expect(resp->msg->mtu == mtu, 1) ||
        (resp->qp->type == HCA_QP_UD)) {
        return true;
    }
    mtu = (resp->msg->mtu < mtu) ? resp->msg->mtu : mtu;
    return resp->msg->data->length <= (128u << mtu);
}

enum hca_check hca_resp_execute(struct hca_responder *resp)
{
    return hca_resp_mtu_ok(resp) ?
               hca_resp_ops[resp->msg->op](resp) :
               hca_resp_bad(resp, HCA_CHECK_PATH_MTU, 128u << resp->msg->mtu);
}

enum hca_check hca_resp_repeat(struct hca_responder *resp)
{
    if (resp->msg->op == HCA_MSG_READ) {
        return hca_resp_read(resp);
    }
    /* DC and rendezvous pass the result of the first execution in the message;
     * RC and XRC find it in the QP. */
    resp->ack->atomic = resp->msg->executed ? resp->msg->atomic_before :
                                              resp->qp->resp.last_atomic;
    return HCA_OK;
}
