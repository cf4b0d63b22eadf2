/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_QP: returns the attributes in the context of the QP, which are not
 * always those that MODIFY_QP was given, as mlx5_ib does (mlx5_ib_query_qp(),
 * query_qp_attr()). The address vectors of DC, which mlx5_ib leaves out, are as
 * given.
 */
#define _GNU_SOURCE
#include "uverbs_ah.h"
#include "uverbs_dct.h"
#include "uverbs_qp.h"
#include "softhca/resp/hca_qp.h"

#include <errno.h>

/* Returns the access flags that the context holds: three bits, and only that of
 * writes if max_dest_rd_atomic is 0 (set_qpc_atomic_flags() of mlx5_ib). */
static unsigned uverbs_query_access(const struct hca_qp_attr *attr)
{
    unsigned reads = (attr->max_dest_rd_atomic > 0) ?
                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC :
                         0;

    return attr->access & (IBV_ACCESS_REMOTE_WRITE | reads);
}

/* Fills in the answer as query_qp_attr() of mlx5_ib reads it from the context:
 * PSNs are those of the next message, max_rd_atomic and max_dest_rd_atomic are
 * powers of two. UD always has the MTU of the port (__mlx5_ib_modify_qp()). */
static void uverbs_query_fill(const struct uverbs_qp *qp, enum hca_qp_type type,
                              const struct hca_qp_info *info,
                              struct ib_uverbs_query_qp_resp *resp)
{
    const struct hca_qp_attr *attr = &info->attr;
    uint8_t port                   = (info->state != IBV_QPS_RESET);

    *resp = (struct ib_uverbs_query_qp_resp){
        .max_send_wr     = qp->cap.max_send_wr,
        .max_recv_wr     = qp->cap.max_recv_wr,
        .max_send_sge    = qp->cap.max_send_sge,
        .max_recv_sge    = qp->cap.max_recv_sge,
        .max_inline_data = qp->cap.max_inline_data,
        .qkey            = attr->qkey,
        .sq_psn          = attr->sq_psn,
        .dest_qp_num     = attr->dest_qpn,
        .qp_access_flags = uverbs_query_access(attr),
        .pkey_index      = attr->pkey_index,
        .qp_state        = info->state,
        .cur_qp_state    = info->state,
        .path_mtu        = ((type == HCA_QP_UD) && (port != 0)) ? IBV_MTU_4096 :
                                                                  attr->mtu,
        .path_mig_state  = attr->mig_state,
        .max_rd_atomic   = hca_qp_rd_limit(attr->max_rd_atomic),
        .max_dest_rd_atomic = hca_qp_rd_limit(attr->max_dest_rd_atomic),
        .min_rnr_timer      = attr->min_rnr_timer,
        .port_num           = port,
        .timeout            = attr->timeout,
        .retry_cnt          = attr->retry_cnt,
        .rnr_retry          = attr->rnr_retry,
        .sq_sig_all         = qp->sig_all,
    };
    if (type != HCA_QP_UD) { /* UD has neither a receive PSN nor a path */
        resp->rq_psn = attr->rq_psn;
        uverbs_dest_out(&attr->path, port, &resp->dest);
    }
}

static int uverbs_query_hw(const struct uverbs_qp *qp,
                           struct ib_uverbs_query_qp_resp *resp)
{
    struct hca_qp *hw = uverbs_qp_hw(qp);
    struct hca_qp_info info;

    if (hw == NULL) {
        return -EINVAL;
    }
    hca_qp_query(hw, &info);
    uverbs_query_fill(qp, hw->type, &info, resp);
    return 0;
}

int uverbs_qp_query(struct uverbs_req *req)
{
    struct ib_uverbs_query_qp_resp resp;
    struct ib_uverbs_query_qp cmd;
    const struct uverbs_qp *qp;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    qp = uverbs_obj_find(req->ctx, UVERBS_OBJECT_QP, cmd.qp_handle, &ret);
    if (qp == NULL) {
        return -EINVAL;
    }
    ret = (qp->spec.type == HCA_QP_DCT) ?
              uverbs_dct_query(qp, cmd.attr_mask, &resp) :
              uverbs_query_hw(qp, &resp);
    if (ret != 0) {
        return ret;
    }
    return uverbs_core_out(req, &resp);
}
