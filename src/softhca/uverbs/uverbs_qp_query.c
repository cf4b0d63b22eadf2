/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_QP: what the QP has, which is not always what MODIFY_QP was given. As by
 * mlx5_ib (mlx5_ib_query_qp(), query_qp_attr()), which leaves out the address
 * vectors of DC: here they are as given.
 */
#define _GNU_SOURCE
#include "uverbs_qp.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/exec/hca_qp.h"
#include "softhca/exec/hca_requester.h"
#include "uverbs_ah.h"

#include <errno.h>

/* What of the access flags a QP's context holds (rre, rwe, rae) */
#define UVERBS_REMOTE_ACCESS \
    (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_ATOMIC)

/* set_qpc_atomic_flags(): of what a peer may do the context has three bits,
 * and without reads under way only that of writes. */
static unsigned uverbs_query_access(const struct hca_qp *hw)
{
    unsigned reads = (hw->max_dest_rd_atomic > 0) ?
                     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0;

    return hw->attr.qp_access_flags & (IBV_ACCESS_REMOTE_WRITE | reads);
}

/* A datagram has the port's, whatever it was asked for (__mlx5_ib_modify_qp).
 */
static uint8_t uverbs_query_mtu(const struct hca_qp *hw)
{
    return ((hw->type == HCA_QP_UD) &&
            (atomic_load(&hw->state) != IBV_QPS_RESET)) ?
           IBV_MTU_4096 : hw->attr.path_mtu;
}

/* query_qp_attr() of mlx5_ib reads the context back: PSNs are those of the next
 * message, reads under way a logarithm. Under both locks of the QP. */
static void uverbs_query_fill(const struct uverbs_qp *qp,
                              const struct hca_qp *hw,
                              struct ib_uverbs_query_qp_resp *resp)
{
    const struct ibv_qp_attr *attr = &hw->attr;

    *resp = (struct ib_uverbs_query_qp_resp){
        .max_send_wr        = qp->cap.max_send_wr,
        .max_recv_wr        = qp->cap.max_recv_wr,
        .max_send_sge       = qp->cap.max_send_sge,
        .max_recv_sge       = qp->cap.max_recv_sge,
        .max_inline_data    = qp->cap.max_inline_data,
        .qkey               = attr->qkey,
        .sq_psn             = hw->req.psn,
        .dest_qp_num        = attr->dest_qp_num,
        .qp_access_flags    = uverbs_query_access(hw),
        .pkey_index         = attr->pkey_index,
        .qp_state           = atomic_load(&hw->state),
        .cur_qp_state       = atomic_load(&hw->state),
        .path_mtu           = uverbs_query_mtu(hw),
        .path_mig_state     = attr->path_mig_state,
        .max_rd_atomic      = hca_qp_rd_limit(attr->max_rd_atomic),
        .max_dest_rd_atomic = hca_qp_rd_limit(attr->max_dest_rd_atomic),
        .min_rnr_timer      = attr->min_rnr_timer,
        .port_num           = attr->port_num,
        .timeout            = attr->timeout,
        .retry_cnt          = attr->retry_cnt,
        .rnr_retry          = attr->rnr_retry,
        .sq_sig_all         = hw->sq_sig_all,
    };
    if (hw->type != HCA_QP_UD) { /* which expects no PSN and has no path */
        resp->rq_psn = hw->resp.psn;
        uverbs_dest_out(&attr->ah_attr, &resp->dest);
    }
}

#define UVERBS_DCT_QUERY \
    (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_PKEY_INDEX | \
     IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU)

/* mlx5_ib_dct_query_qp(): there is something to ask once it is in RTR, and
 * answered is what was asked for. */
static bool uverbs_dct_query_ok(const struct hca_qp *hw, uint32_t mask)
{
    return (atomic_load(&hw->state) == IBV_QPS_RTR) &&
           !(mask & ~(uint32_t)UVERBS_DCT_QUERY);
}

static void uverbs_dct_query_fill(const struct hca_qp *hw, uint32_t mask,
                                  struct ib_uverbs_query_qp_resp *resp)
{
    const struct ibv_qp_attr *attr = &hw->attr;

    *resp = (struct ib_uverbs_query_qp_resp){
        .qp_state        = (mask & IBV_QP_STATE) ? IBV_QPS_RTR : 0,
        .qp_access_flags = (mask & IBV_QP_ACCESS_FLAGS) ?
                           attr->qp_access_flags & UVERBS_REMOTE_ACCESS : 0,
        .port_num        = (mask & IBV_QP_PORT) ? attr->port_num : 0,
        .pkey_index      = (mask & IBV_QP_PKEY_INDEX) ? attr->pkey_index : 0,
        .min_rnr_timer   = (mask & IBV_QP_MIN_RNR_TIMER) ?
                           attr->min_rnr_timer : 0,
        .path_mtu        = (mask & IBV_QP_PATH_MTU) ? attr->path_mtu : 0,
    };
    if (mask & IBV_QP_AV) {
        uverbs_dest_out(&attr->ah_attr, &resp->dest);
    }
}

int uverbs_qp_query(struct uverbs_req *req)
{
    struct ib_uverbs_query_qp_resp resp;
    struct ib_uverbs_query_qp cmd;
    const struct uverbs_qp *qp;
    struct hca_qp *hw;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    qp = uverbs_obj_find(req->ctx, UVERBS_OBJECT_QP, cmd.qp_handle, &ret);
    hw = (qp != NULL) ? uverbs_qp_hw(qp) : NULL;
    if ((hw == NULL) ||
        ((hw->type == HCA_QP_DCT) && !uverbs_dct_query_ok(hw, cmd.attr_mask))) {
        return -EINVAL;
    }

    if (hca_qp_is_stuck(hw)) {
        return -ETIMEDOUT;
    }
    hca_mutex_lock(&hw->sq_lock);
    hca_mutex_lock(&hw->obj.lock);
    if (hw->type == HCA_QP_DCT) {
        uverbs_dct_query_fill(hw, cmd.attr_mask, &resp);
    } else {
        uverbs_query_fill(qp, hw, &resp);
    }
    hca_mutex_unlock(&hw->obj.lock);
    hca_mutex_unlock(&hw->sq_lock);
    if (resp.qp_state == IBV_QPS_ERR) {
        /* a peer's doing: from now on receives are flushed */
        hca_requester_run(hw, hw->obj.num);
    }
    return uverbs_core_out(req, &resp);
}
