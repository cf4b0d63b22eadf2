/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shared receive queues: basic, XRC, and with tag matching. The ring holds a
 * linked list of WQEs; its size follows from max_wr and max_sge as in mlx5_ib's
 * srq.c.
 */
#define _GNU_SOURCE
#include "uverbs_srq.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/fabric/hca_fabric.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/obj/hca_srq.h"
#include "softhca/obj/hca_tm.h"
#include "uverbs.h"
#include "uverbs_cq.h"

#include <errno.h>

#define UVERBS_SRQ_NEXT_SEG 16u /* struct mlx5_wqe_srq_next_seg */

static int uverbs_srq_release(struct uverbs_obj *obj,
                              struct uverbs_events *events)
{
    struct uverbs_srq *srq = (struct uverbs_srq *)obj;
    uint32_t async;

    if (hca_srq_destroy(srq->srq, &async) != 0) {
        return -ETIMEDOUT;
    }
    if (events != NULL) {
        events->async = async;
    }
    uverbs_rings_unshare(&srq->rings);
    uverbs_drop(srq->pd);
    uverbs_drop(srq->cq);
    uverbs_drop(srq->xrcd);
    uverbs_drop(srq->async);
    return 0;
}

const struct uverbs_type uverbs_srq_type = {
    UVERBS_OBJECT_SRQ,
    "shared receive queues",
    .release = uverbs_srq_release,
};

static const struct uverbs_attr_spec uverbs_create_srq_attrs[] = {
    {UVERBS_ATTR_CREATE_SRQ_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
    {UVERBS_ATTR_CREATE_SRQ_TYPE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_CREATE_SRQ_MAX_WR, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_SRQ_MAX_SGE, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_SRQ_LIMIT, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, UVERBS_IDR, 0, 0, 0,
     UVERBS_OBJECT_XRCD},
    {UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, UVERBS_IDR, 0, 0, 0, UVERBS_OBJECT_CQ},
    {UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, UVERBS_IN, 0, 4, 4, 0},
    {UVERBS_ATTR_CREATE_SRQ_EVENT_FD, UVERBS_FD, 0, 0, 0,
     UVERBS_OBJECT_ASYNC_EVENT},
    {UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
    {UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, UVERBS_OUT, 0, 4, 4, 0},
};

/* The parameters of CREATE_SRQ, checked. */
struct uverbs_srq_params {
    struct mlx5_ib_create_srq ucmd;
    bool xrc, tm;
    uint32_t log_tags; /* log2 of the entries of the matching list */
    uint32_t max_wr, max_sge;
    uint32_t log_cnt, log_stride;
};

static uint32_t uverbs_log2_up(uint32_t value)
{
    return (value <= 1) ? 0 : 32 - __builtin_clz(value - 1);
}

uint32_t uverbs_max_tags(void)
{
    return hca_limit(HCA_LIMIT_TAGS, (1u << HCA_TM_LOG_MAX) - 1);
}

/* Fills in log_tags. The matching list has at least one entry more than tags,
 * as libmlx5 expects. */
static int uverbs_srq_check_tm(const struct uverbs_req *req,
                               struct uverbs_srq_params *params)
{
    uint32_t tags = uverbs_get_const(req, UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS);

    if (hca_lacks(HCA_LACK_TM)) {
        return -EOPNOTSUPP;
    }
    if (!uverbs_has(req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE)) {
        return -ENOENT;
    }
    if ((tags == 0) || (tags > uverbs_max_tags())) {
        return -EINVAL;
    }
    params->tm       = true;
    params->log_tags = uverbs_log2_up(tags + 1);
    return 0;
}

static int uverbs_srq_check_type(const struct uverbs_req *req,
                                 struct uverbs_srq_params *params)
{
    switch (uverbs_get_const(req, UVERBS_ATTR_CREATE_SRQ_TYPE)) {
    case IB_UVERBS_SRQT_BASIC:
        return 0;
    case IB_UVERBS_SRQT_XRC:
        params->xrc = true;
        return (uverbs_has(req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE) &&
                uverbs_has(req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE)) ?
                   0 :
                   -ENOENT;
    case IB_UVERBS_SRQT_TM:
        return uverbs_srq_check_tm(req, params);
    default:
        return -EINVAL;
    }
}

static int uverbs_srq_check_ucmd(struct uverbs_req *req,
                                 struct uverbs_srq_params *params)
{
    const struct mlx5_ib_create_srq *ucmd = &params->ucmd;
    int ret;

    if (uverbs_len(req, UVERBS_ATTR_UHW_IN) < offsetof(typeof(*ucmd), uidx)) {
        return -EINVAL;
    }
    ret = uverbs_uhw_in(req, &params->ucmd);
    if (ret != 0) {
        return (ret == -EOPNOTSUPP) ? -EINVAL : ret;
    }
    /* flags: signed WQEs, not supported; libmlx5 asks for them only if
     * MLX5_SRQ_SIGNATURE is in its environment */
    if ((ucmd->reserved0 != 0) || (ucmd->reserved1 != 0) ||
        (ucmd->flags != 0)) {
        return -EINVAL;
    }
    return ((params->xrc || params->tm) && (ucmd->uidx >= UVERBS_UIDX_MASK)) ?
               -EINVAL :
               0;
}

static int uverbs_srq_share(struct uverbs_srq *srq,
                            const struct uverbs_srq_params *params)
{
    const struct uverbs_place place = {
        .what       = "srq",
        .variable   = "MLX_SRQ_ALLOC_TYPE",
        .ring       = params->ucmd.buf_addr,
        .ring_size  = (size_t)1 << (params->log_cnt + params->log_stride),
        .dbrec      = params->ucmd.db_addr,
        .dbrec_size = 4,
    };

    return uverbs_rings_share(&srq->rings, &place);
}

static int uverbs_srq_check(struct uverbs_req *req,
                            struct uverbs_srq_params *params)
{
    uint32_t stride;
    int ret;

    ret = uverbs_srq_check_type(req, params);
    if (ret != 0) {
        return ret;
    }
    params->max_wr  = uverbs_get_const(req, UVERBS_ATTR_CREATE_SRQ_MAX_WR);
    params->max_sge = uverbs_get_const(req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE);
    if ((params->max_wr > hca_limit(HCA_LIMIT_SRQ_WR, UVERBS_MAX_WR - 1)) ||
        (params->max_sge > UVERBS_MAX_RQ_DESC / 16 - 1)) {
        return -EINVAL;
    }

    stride             = UVERBS_SRQ_NEXT_SEG + params->max_sge * 16;
    params->log_stride = uverbs_log2_up((stride < 32) ? 32 : stride);
    params->log_cnt    = uverbs_log2_up(params->max_wr + 1);
    return uverbs_srq_check_ucmd(req, params);
}

/* Shares the memory, and creates the device's SRQ. A limit at creation is
 * ignored, as by mlx5_ib_create_srq(): only MODIFY_SRQ arms one. */
static int uverbs_srq_make(struct uverbs_req *req, struct uverbs_srq *srq,
                           const struct uverbs_srq_params *params)
{
    struct hca_srq_spec spec = {
        .dev             = req->ctx->dev,
        .ring.log_cnt    = params->log_cnt,
        .ring.log_stride = params->log_stride,
        .pdn             = srq->pd->pdn,
        .cqn             = (srq->cq != NULL) ? srq->cq->cq->obj.num : 0,
        .xrcdn           = (srq->xrcd != NULL) ? srq->xrcd->xrcdn : 0,
        .uidx            = params->ucmd.uidx,
        .async_chan      = uverbs_chan(srq->async),
        .user_handle     = uverbs_get_const(req,
                                            UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
        .is_xrc          = params->xrc,
        .has_tm          = params->tm,
        .log_tags        = params->log_tags,
        .has_rndv        = params->tm, /* create_xrq_cmd() of mlx5_ib */
    };
    int ret;

    ret = uverbs_srq_share(srq, params);
    if (ret != 0) {
        return ret;
    }
    spec.ring.buf = hca_off(srq->rings.ring.mem);
    spec.dbrec    = hca_off(srq->rings.dbrec.mem);
    ret           = hca_srq_create(&spec, &srq->srq);
    if (ret != 0) {
        uverbs_rings_unshare(&srq->rings);
    }
    return ret;
}

static int uverbs_srq_new(struct uverbs_req *req,
                          const struct uverbs_srq_params *params,
                          struct uverbs_srq **srqp)
{
    struct uverbs_srq *srq;
    int ret;

    ret = uverbs_obj_new(req->ctx, UVERBS_OBJECT_SRQ, sizeof(*srq), &srq);
    if (ret != 0) {
        return ret;
    }
    srq->max_sge = ((1u << params->log_stride) - UVERBS_SRQ_NEXT_SEG) / 16;
    srq->pd      = uverbs_get_obj(req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
    srq->async   = uverbs_async(req, UVERBS_ATTR_CREATE_SRQ_EVENT_FD);
    if (params->xrc || params->tm) {
        srq->cq = uverbs_get_obj(req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE);
    }
    if (params->xrc) {
        srq->xrcd = uverbs_get_obj(req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE);
    }
    ret = uverbs_srq_make(req, srq, params);
    if (ret != 0) {
        uverbs_obj_delete(&srq->obj);
        return ret;
    }
    uverbs_hold(srq->pd);
    uverbs_hold(srq->cq);
    uverbs_hold(srq->xrcd);
    uverbs_hold(srq->async);
    *srqp = srq;
    return 0;
}

static int uverbs_srq_respond(struct uverbs_req *req,
                              const struct uverbs_srq *srq)
{
    struct mlx5_ib_create_srq_resp drv = {.srqn = srq->srq->obj.num};
    uint32_t max_wr                    = (1u << srq->srq->ring.log_cnt) - 1;
    uint32_t max_sge = uverbs_get_const(req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE);
    int ret;

    ret = uverbs_uhw_out(req, &drv);
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &max_wr,
                         sizeof(max_wr));
    }
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &max_sge,
                         sizeof(max_sge));
    }
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &drv.srqn,
                         sizeof(drv.srqn));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, UVERBS_ATTR_CREATE_SRQ_HANDLE,
                                srq->obj.handle);
    }
    return ret;
}

static int uverbs_create_srq(struct uverbs_req *req)
{
    struct uverbs_srq_params params = {0};
    struct uverbs_srq *srq;
    int ret;

    ret = uverbs_srq_check(req, &params);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_srq_new(req, &params, &srq);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_srq_respond(req, srq);
    if (ret != 0) {
        uverbs_obj_destroy(&srq->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_destroy_srq_attrs[] = {
    {UVERBS_ATTR_DESTROY_SRQ_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_SRQ},
    {UVERBS_ATTR_DESTROY_SRQ_RESP, UVERBS_OUT, UVERBS_MANDATORY,
     sizeof(struct ib_uverbs_destroy_srq_resp),
     sizeof(struct ib_uverbs_destroy_srq_resp), 0},
};

/* MODIFY_SRQ: arms the limit event. mlx5 cannot resize an SRQ. */
static int uverbs_modify_srq(struct uverbs_req *req)
{
    struct ib_uverbs_modify_srq cmd;
    struct uverbs_srq *srq;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    srq = uverbs_obj_find(req->ctx, UVERBS_OBJECT_SRQ, cmd.srq_handle, &ret);
    if ((srq == NULL) || (cmd.attr_mask & ~IBV_SRQ_LIMIT)) {
        return -EINVAL;
    }
    if (cmd.attr_mask & IBV_SRQ_LIMIT) {
        if (cmd.srq_limit >= 1u << srq->srq->ring.log_cnt) {
            return -EINVAL;
        }
        return hca_srq_modify(srq->srq->obj.num, cmd.srq_limit);
    }
    return 0;
}

/* QUERY_SRQ: also logs the counts of a matching list (SOFTHCA_LOG=info), as no
 * command of a NIC returns them. */
static int uverbs_query_srq(struct uverbs_req *req)
{
    struct ib_uverbs_query_srq_resp resp = {0};
    struct ib_uverbs_query_srq cmd;
    const struct uverbs_srq *srq;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    srq = uverbs_obj_find(req->ctx, UVERBS_OBJECT_SRQ, cmd.srq_handle, &ret);
    if (srq == NULL) {
        return -EINVAL;
    }
    resp.max_wr    = (1u << srq->srq->ring.log_cnt) - 1;
    resp.max_sge   = srq->max_sge;
    resp.srq_limit = srq->srq->limit;
    if (srq->srq->tm != 0) {
        hca_tm_log_counts(srq->srq->obj.num, hca_srq_tm(srq->srq));
    }
    return uverbs_core_out(req, &resp);
}

const struct uverbs_method uverbs_srq_methods[] = {
    {.object  = UVERBS_OBJECT_SRQ,
     .id      = UVERBS_METHOD_SRQ_CREATE,
     .uhw     = true,
     .name    = "create_srq",
     .handler = uverbs_create_srq,
     UVERBS_ATTRS(uverbs_create_srq_attrs)},
    {.object  = UVERBS_OBJECT_SRQ,
     .id      = UVERBS_METHOD_SRQ_DESTROY,
     .name    = "destroy_srq",
     .is_end  = true,
     .handler = uverbs_destroy_counted,
     UVERBS_ATTRS(uverbs_destroy_srq_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_srq_writes[] = {
    {IB_USER_VERBS_CMD_MODIFY_SRQ, "modify_srq",
     sizeof(struct ib_uverbs_modify_srq), 0, uverbs_modify_srq},
    {IB_USER_VERBS_CMD_QUERY_SRQ, "query_srq",
     sizeof(struct ib_uverbs_query_srq),
     sizeof(struct ib_uverbs_query_srq_resp), uverbs_query_srq},
    {.handler = NULL},
};
