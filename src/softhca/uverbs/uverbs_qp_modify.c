/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MODIFY_QP and OPEN_QP, and the table of the write commands of queue pairs.
 */
#define _GNU_SOURCE
#include "softhca/exec/hca_fatal.h"
#include "uverbs_ah.h"
#include "uverbs_dct.h"
#include "uverbs_mmap.h"

#include <errno.h>

/* Attributes of MODIFY_QP, and of its extended form */
#define UVERBS_MODIFY_MASK    ((IBV_QP_DEST_QPN << 1) - 1)
#define UVERBS_MODIFY_EX_MASK ((IBV_QP_RATE_LIMIT << 1) - 1)

static void uverbs_modify_in(const struct ib_uverbs_modify_qp *cmd,
                             struct hca_qp_change *change)
{
    *change = (struct hca_qp_change){
        .mask = cmd->attr_mask,
        .next = cmd->qp_state,
        .cur  = cmd->cur_qp_state,
        .port = cmd->port_num,
        .attr =
            {
                .access             = cmd->qp_access_flags,
                .dest_qpn           = cmd->dest_qp_num,
                .qkey               = cmd->qkey,
                .sq_psn             = cmd->sq_psn & 0xffffff,
                .rq_psn             = cmd->rq_psn & 0xffffff,
                .pkey_index         = cmd->pkey_index,
                .mtu                = cmd->path_mtu,
                .timeout            = cmd->timeout,
                .retry_cnt          = cmd->retry_cnt,
                .rnr_retry          = cmd->rnr_retry,
                .min_rnr_timer      = cmd->min_rnr_timer,
                .max_rd_atomic      = cmd->max_rd_atomic,
                .max_dest_rd_atomic = cmd->max_dest_rd_atomic,
                .mig_state          = cmd->path_mig_state,
            },
    };
}

/* Removes the attributes that an XRC QP, half of an RC QP, does not have, as
 * ib_uverbs' modify_qp_mask() does: programs set them nevertheless. */
static unsigned uverbs_modify_mask(enum hca_qp_type type, unsigned mask)
{
    switch (type) {
    case HCA_QP_XRC_SEND:
        return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case HCA_QP_XRC_RECV:
        return mask &
               ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    default:
        return mask;
    }
}

/* Reads the address vector of a QP other than a DCT. That of a DCI has only its
 * source, as the peer is in each WQE: no MAC is resolved (_ib_modify_qp()). */
static int uverbs_modify_path(const struct uverbs_ctx *ctx,
                              const struct ib_uverbs_qp_dest *dest,
                              enum hca_qp_type type, struct hca_path *path)
{
    struct ibv_ah_attr attr;
    int ret;

    uverbs_dest_in(dest, &attr);
    ret = uverbs_path(ctx, &attr, path);
    return ((ret != 0) || (type == HCA_QP_DCI)) ?
               ret :
               uverbs_path_resolve(ctx, path);
}

static int uverbs_modify_hw(struct uverbs_req *req, struct hca_qp *hw,
                            const struct ib_uverbs_modify_qp *cmd)
{
    struct hca_qp_change change;
    uint32_t bad;
    int ret;

    uverbs_modify_in(cmd, &change);
    change.mask = uverbs_modify_mask(hw->type, change.mask);
    if (change.mask & IBV_QP_AV) {
        ret = uverbs_modify_path(req->ctx, &cmd->dest, hw->type,
                                 &change.attr.path);
        if (ret != 0) {
            return ret;
        }
    }
    uverbs_map_resolve(req->ctx);
    return hca_qp_modify(hw, &change, &bad);
}

/* The answer of a device that has failed: a queue pair has stopped already
 * (mlx5_internal_err_ret_value(): 2ERR_QP, 2RST_QP). */
static int uverbs_modify_failed(const struct ib_uverbs_modify_qp *cmd)
{
    return ((cmd->attr_mask & IBV_QP_STATE) &&
            ((cmd->qp_state == IBV_QPS_ERR) ||
             (cmd->qp_state == IBV_QPS_RESET))) ?
               0 :
               -EIO;
}

static int uverbs_modify(struct uverbs_req *req,
                         const struct ib_uverbs_modify_qp *cmd)
{
    struct hca_qp_change change;
    struct uverbs_qp *qp;
    struct hca_qp *hw;
    int ret;

    qp = uverbs_obj_find(req->ctx, UVERBS_OBJECT_QP, cmd->qp_handle, &ret);
    if (qp == NULL) {
        return -EINVAL;
    }
    if (hca_fatal_is(hca_self, req->ctx->dev)) {
        return uverbs_modify_failed(cmd);
    }
    if (cmd->attr_mask & IBV_QP_ALT_PATH) {
        return -EOPNOTSUPP; /* no path migration: there is one port */
    }
    if ((cmd->attr_mask & IBV_QP_ACCESS_FLAGS) && hca_lacks(HCA_LACK_ATOMICS) &&
        (cmd->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC)) {
        return -EOPNOTSUPP; /* get_atomic_mode() of mlx5_ib */
    }
    if (qp->spec.type == HCA_QP_DCT) {
        uverbs_modify_in(cmd, &change);
        return uverbs_dct_modify(req, qp, &change, &cmd->dest);
    }
    hw = uverbs_qp_hw(qp);
    return (hw == NULL) ? -EINVAL : /* opened, and destroyed by its owner */
                          uverbs_modify_hw(req, hw, cmd);
}

static int uverbs_modify_qp(struct uverbs_req *req)
{
    struct ib_uverbs_modify_qp cmd;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    return (cmd.attr_mask & ~UVERBS_MODIFY_MASK) ? -EOPNOTSUPP :
                                                   uverbs_modify(req, &cmd);
}

/* Checks the driver's part: ECE and rate bursts, which are not supported. */
static int uverbs_modify_uhw(struct uverbs_req *req)
{
    struct mlx5_ib_modify_qp ucmd;
    size_t len = uverbs_len(req, UVERBS_ATTR_UHW_IN);
    int ret;

    if ((len != 0) && (len < offsetof(typeof(ucmd), ece_options))) {
        return -EINVAL;
    }
    ret = uverbs_uhw_in(req, &ucmd);
    if (ret != 0) {
        return ret;
    }
    return ((ucmd.comp_mask != 0) || (ucmd.burst_info.reserved != 0) ||
            (ucmd.burst_info.max_burst_sz != 0) ||
            (ucmd.burst_info.typical_pkt_sz != 0)) ?
               -EOPNOTSUPP :
               0;
}

static int uverbs_modify_qp_ex(struct uverbs_req *req)
{
    struct ib_uverbs_ex_modify_qp_resp resp = {
        .response_length = sizeof(resp),
    };
    struct ib_uverbs_ex_modify_qp cmd;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    if (cmd.base.attr_mask & ~UVERBS_MODIFY_EX_MASK) {
        return -EOPNOTSUPP;
    }
    if (cmd.base.attr_mask & IBV_QP_RATE_LIMIT) {
        return -EOPNOTSUPP; /* packet_pacing_caps are zero */
    }
    ret = uverbs_modify_uhw(req);
    if (ret == 0) {
        ret = uverbs_modify(req, &cmd.base);
    }
    return (ret != 0) ? ret : uverbs_core_out(req, &resp);
}

/* Makes a second handle for an XRC target QP of the same domain, of this or
 * another process. It does not keep the QP: its owner may destroy it. */
static int uverbs_open_qp(struct uverbs_req *req)
{
    struct ib_uverbs_create_qp_resp resp = {0};
    struct ib_uverbs_open_qp cmd;
    struct uverbs_xrcd *xrcd;
    struct uverbs_qp *qp;
    struct hca_qp *hw;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    xrcd = uverbs_obj_find(req->ctx, UVERBS_OBJECT_XRCD, cmd.pd_handle, &ret);
    hw   = hca_obj_peek(HCA_KIND_QP, cmd.qpn);
    if ((xrcd == NULL) || (hw == NULL) ||
        (cmd.qp_type != IB_UVERBS_QPT_XRC_TGT) ||
        (hw->type != HCA_QP_XRC_RECV) || (hw->xrcdn != xrcd->xrcdn)) {
        return -EINVAL;
    }

    ret = uverbs_obj_new(req->ctx, UVERBS_OBJECT_QP, sizeof(*qp), &qp);
    if (ret != 0) {
        return ret;
    }
    qp->open_qpn = cmd.qpn;
    qp->xrcd     = xrcd;
    uverbs_hold(xrcd);
    resp.qp_handle = qp->obj.handle;
    resp.qpn       = cmd.qpn;
    ret            = uverbs_core_out(req, &resp);
    if (ret != 0) {
        uverbs_obj_destroy(&qp->obj, NULL);
    }
    return ret;
}

const struct uverbs_write uverbs_qp_writes[] = {
    {IB_USER_VERBS_CMD_MODIFY_QP, "modify_qp",
     sizeof(struct ib_uverbs_modify_qp), 0, uverbs_modify_qp},
    {UVERBS_EX(IB_USER_VERBS_EX_CMD_MODIFY_QP), "modify_qp_ex",
     sizeof(struct ib_uverbs_modify_qp), 0, uverbs_modify_qp_ex},
    {IB_USER_VERBS_CMD_QUERY_QP, "query_qp", sizeof(struct ib_uverbs_query_qp),
     sizeof(struct ib_uverbs_query_qp_resp), uverbs_qp_query},
    {IB_USER_VERBS_CMD_OPEN_QP, "open_qp", sizeof(struct ib_uverbs_open_qp),
     sizeof(struct ib_uverbs_create_qp_resp), uverbs_open_qp},
    {.handler = NULL},
};
