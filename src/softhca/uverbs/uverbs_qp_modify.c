/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MODIFY_QP and OPEN_QP, and the table of the write commands of queue pairs.
 */
#define _GNU_SOURCE
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/exec/hca_qp_cmd.h"
#include "uverbs.h"
#include "uverbs_ah.h"
#include "uverbs_dct.h"
#include "uverbs_mmap.h"

#include <errno.h>
#include <string.h>

/* The plain command ends at DEST_QPN, the extended one at RATE_LIMIT. */
#define UVERBS_MODIFY_MASK    ((IBV_QP_DEST_QPN << 1) - 1)
#define UVERBS_MODIFY_EX_MASK ((IBV_QP_RATE_LIMIT << 1) - 1)

static void uverbs_modify_in(const struct ib_uverbs_modify_qp *cmd,
                             struct ibv_qp_attr *attr)
{
    *attr = (struct ibv_qp_attr){
        .qp_state           = cmd->qp_state,
        .cur_qp_state       = cmd->cur_qp_state,
        .path_mtu           = cmd->path_mtu,
        .path_mig_state     = cmd->path_mig_state,
        .qkey               = cmd->qkey,
        .rq_psn             = cmd->rq_psn & 0xffffff,
        .sq_psn             = cmd->sq_psn & 0xffffff,
        .dest_qp_num        = cmd->dest_qp_num,
        .qp_access_flags    = cmd->qp_access_flags,
        .pkey_index         = cmd->pkey_index,
        .max_rd_atomic      = cmd->max_rd_atomic,
        .max_dest_rd_atomic = cmd->max_dest_rd_atomic,
        .min_rnr_timer      = cmd->min_rnr_timer,
        .port_num           = cmd->port_num,
        .timeout            = cmd->timeout,
        .retry_cnt          = cmd->retry_cnt,
        .rnr_retry          = cmd->rnr_retry,
    };
    uverbs_dest_in(&cmd->dest, &attr->ah_attr);
}

/* Half of an RC QP: ib_uverbs' modify_qp_mask() takes out what is meant for
 * the other half, as programs treat both alike. */
static unsigned uverbs_modify_mask(enum hca_qp_type type, unsigned mask)
{
    switch (type) {
    case HCA_QP_XRC_SEND:
        return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    case HCA_QP_XRC_RECV:
        return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                        IBV_QP_RNR_RETRY);
    default:
        return mask;
    }
}

/* Whether an attribute is given and larger than the device can hold. */
static bool uverbs_exceeds(unsigned mask, unsigned bit, uint32_t value,
                           uint32_t max)
{
    return (mask & bit) && (value > max);
}

static int uverbs_modify_check(unsigned dev, const struct ibv_qp_attr *attr,
                               unsigned mask)
{
    if (mask & IBV_QP_ALT_PATH) {
        return -EOPNOTSUPP; /* one port, one path: nothing to migrate to */
    }
    if ((mask & IBV_QP_ACCESS_FLAGS) && hca_lacks(HCA_LACK_ATOMICS) &&
        (attr->qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC)) {
        return -EOPNOTSUPP; /* get_atomic_mode() of mlx5_ib */
    }
    if (((mask & IBV_QP_PORT) && (attr->port_num != 1)) ||
        ((mask & IBV_QP_AV) && (attr->ah_attr.port_num != 1)) ||
        ((mask & IBV_QP_PATH_MTU) && (attr->path_mtu < IBV_MTU_256))) {
        return -EINVAL;
    }
    if (uverbs_exceeds(mask, IBV_QP_STATE, attr->qp_state, IBV_QPS_ERR) ||
        uverbs_exceeds(mask, IBV_QP_CUR_STATE, attr->cur_qp_state,
                       IBV_QPS_ERR) ||
        uverbs_exceeds(mask, IBV_QP_PKEY_INDEX, attr->pkey_index,
                       hca_dev_num_pkeys(dev) - 1) ||
        uverbs_exceeds(mask, IBV_QP_PATH_MTU, attr->path_mtu, IBV_MTU_4096) ||
        uverbs_exceeds(mask, IBV_QP_DEST_QPN, attr->dest_qp_num, 0xffffff) ||
        uverbs_exceeds(mask, IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic,
                       UVERBS_MAX_RD_ATOMIC) ||
        uverbs_exceeds(mask, IBV_QP_MAX_DEST_RD_ATOMIC,
                       attr->max_dest_rd_atomic, UVERBS_MAX_RD_ATOMIC) ||
        uverbs_exceeds(mask, IBV_QP_TIMEOUT, attr->timeout, 31) ||
        uverbs_exceeds(mask, IBV_QP_RETRY_CNT, attr->retry_cnt, 7) ||
        uverbs_exceeds(mask, IBV_QP_RNR_RETRY, attr->rnr_retry, 7) ||
        uverbs_exceeds(mask, IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 31)) {
        return -EINVAL;
    }
    return 0;
}

/* Each attribute has a place in the attributes that QUERY_QP returns and one
 * where execution reads it. */
#define UVERBS_SET(_bit, _field, _hw_field) \
    do { \
        if (mask & (_bit)) { \
            hw->attr._field = attr->_field; \
            hw->_hw_field   = attr->_field; \
        } \
    } while (0)

/* Under both locks of the QP. */
static void uverbs_modify_set(struct hca_qp *hw, const struct ibv_qp_attr *attr,
                              unsigned mask, const struct hca_path *path)
{
    UVERBS_SET(IBV_QP_ACCESS_FLAGS, qp_access_flags, access);
    UVERBS_SET(IBV_QP_PKEY_INDEX, pkey_index, pkey_index);
    UVERBS_SET(IBV_QP_PORT, port_num, port);
    UVERBS_SET(IBV_QP_QKEY, qkey, qkey);
    UVERBS_SET(IBV_QP_PATH_MTU, path_mtu, mtu);
    UVERBS_SET(IBV_QP_TIMEOUT, timeout, timeout);
    UVERBS_SET(IBV_QP_RETRY_CNT, retry_cnt, retry_cnt);
    UVERBS_SET(IBV_QP_RNR_RETRY, rnr_retry, rnr_retry);
    UVERBS_SET(IBV_QP_RQ_PSN, rq_psn, rq_psn);
    UVERBS_SET(IBV_QP_SQ_PSN, sq_psn, sq_psn);
    UVERBS_SET(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
    UVERBS_SET(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic,
               max_dest_rd_atomic);
    UVERBS_SET(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer);
    UVERBS_SET(IBV_QP_DEST_QPN, dest_qp_num, dest_qpn);
    hw->pkey = hca_dev_pkey(hw->obj.dev, hw->pkey_index);
    if (mask & IBV_QP_AV) {
        hw->attr.ah_attr = attr->ah_attr;
        hw->path         = *path;
    }
    if (mask & IBV_QP_PATH_MIG_STATE) {
        hw->attr.path_mig_state = attr->path_mig_state;
    }
    if ((mask & IBV_QP_STATE) && (attr->qp_state == IBV_QPS_RESET)) {
        memset(&hw->attr, 0, sizeof(hw->attr));
    }
}

int uverbs_qp_modify_hw(struct hca_qp *hw, const struct ibv_qp_attr *attr,
                        unsigned mask, const struct hca_path *path)
{
    enum ibv_qp_state cur  = atomic_load(&hw->state);
    enum ibv_qp_state next = (mask & IBV_QP_STATE) ? attr->qp_state : cur;

    if (((mask & IBV_QP_CUR_STATE) && (attr->cur_qp_state != cur)) ||
        !uverbs_qp_modify_ok(hw->type, cur, next, mask)) {
        hca_info("qp 0x%x: no change from state %u to %u with attributes 0x%x",
                 hw->obj.num, cur, next, mask);
        return -EINVAL;
    }

    if (hca_qp_is_stuck(hw)) {
        return -ETIMEDOUT; /* as a command that the device does not answer */
    }
    hca_mutex_lock(&hw->sq_lock);
    hca_mutex_lock(&hw->obj.lock);
    uverbs_modify_set(hw, attr, mask, path);
    hca_mutex_unlock(&hw->obj.lock);
    hca_mutex_unlock(&hw->sq_lock);
    return (mask & IBV_QP_STATE) ? hca_qp_set_state(hw, cur, next) : 0;
}

static int uverbs_modify_hw(const struct uverbs_ctx *ctx, struct hca_qp *hw,
                            const struct ibv_qp_attr *attr, unsigned mask)
{
    struct hca_path path = {0};
    int ret              = 0;

    if (mask & IBV_QP_AV) {
        ret = uverbs_path(ctx, &attr->ah_attr, &path);
        /* the path of a DCI is its own end, the peer is in each WQE
         * (_ib_modify_qp() resolves for connected QPs only) */
        if ((ret == 0) && (hw->type != HCA_QP_DCI)) {
            ret = uverbs_path_resolve(ctx, &path);
        }
    }
    return (ret != 0) ? ret : uverbs_qp_modify_hw(hw, attr, mask, &path);
}

static int uverbs_modify(struct uverbs_req *req,
                         const struct ib_uverbs_modify_qp *cmd)
{
    struct ibv_qp_attr attr;
    struct uverbs_qp *qp;
    struct hca_qp *hw;
    int ret;

    qp = uverbs_obj_find(req->ctx, UVERBS_OBJECT_QP, cmd->qp_handle, &ret);
    if (qp == NULL) {
        return -EINVAL;
    }
    uverbs_modify_in(cmd, &attr);
    ret = uverbs_modify_check(req->ctx->dev, &attr, cmd->attr_mask);
    if (ret != 0) {
        return ret;
    }
    hw = uverbs_qp_hw(qp);
    if (hw == NULL) {
        return -EINVAL; /* OPEN_QP of one that is no more */
    }
    if (hw->type == HCA_QP_DCT) {
        return uverbs_dct_modify(req, qp, &attr, cmd->attr_mask);
    }
    if ((hw->type == HCA_QP_DCI) &&
        uverbs_exceeds(cmd->attr_mask, IBV_QP_MAX_QP_RD_ATOMIC,
                       attr.max_rd_atomic, uverbs_max_rd_atomic_dc())) {
        return -EINVAL;
    }
    uverbs_map_resolve(req->ctx);
    return uverbs_modify_hw(req->ctx, hw, &attr,
                            uverbs_modify_mask(hw->type, cmd->attr_mask));
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

/* The driver's part: congestion control and rate, neither of them offered. */
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
            (ucmd.burst_info.typical_pkt_sz != 0)) ? -EOPNOTSUPP : 0;
}

static int uverbs_modify_qp_ex(struct uverbs_req *req)
{
    struct ib_uverbs_ex_modify_qp_resp resp = {
        .response_length = sizeof(resp)
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

/* A second handle for an XRC target QP of the same domain, this process' or
 * another's. It does not keep the QP: its owner may destroy it. */
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
