/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Address vectors: conversion from and to commands, the check that CREATE_AH
 * and MODIFY_QP share, and CREATE_AH. libmlx5 calls CREATE_AH on RoCE only, to
 * learn the MAC of the destination.
 */
#define _GNU_SOURCE
#include "uverbs_ah.h"
#include "softhca/fabric/hca_dev.h"
#include "uverbs.h"
#include "uverbs_pd.h"

#include <errno.h>
#include <string.h>

struct uverbs_ah {
    struct uverbs_obj obj;
    struct uverbs_pd *pd;
};

/* The kernel resolves the MAC by a neighbour lookup; here the fabric's table of
 * devices has it. That of a multicast group follows from the GID (IBTA
 * A16.5.1.5). */
int uverbs_path_resolve(const struct uverbs_ctx *ctx, struct hca_path *path)
{
    int dev;

    if (!hca_dev_is_roce(ctx->dev)) {
        return 0;
    }
    if (path->dgid[0] == 0xff) {
        path->dmac[0] = path->dmac[1] = 0x33;
        memcpy(path->dmac + 2, path->dgid + 12, 4);
        return 0;
    }
    dev = hca_dev_by_gid(path->dgid);
    if (dev < 0) {
        return -EHOSTUNREACH;
    }
    hca_dev_mac(dev, path->dmac);
    return 0;
}

/* CREATE_AH and MODIFY_QP have the same field names, but CREATE_AH has those of
 * the route in a struct of their own. */
/* clang-format off */
#define UVERBS_AH_ATTR(_in, _route) \
    (struct ibv_ah_attr) \
    { \
        .grh = { \
            .flow_label    = (_route)->flow_label, \
            .sgid_index    = (_route)->sgid_index, \
            .hop_limit     = (_route)->hop_limit, \
            .traffic_class = (_route)->traffic_class, \
        }, \
        .dlid          = (_in)->dlid, \
        .sl            = (_in)->sl, \
        .src_path_bits = (_in)->src_path_bits, \
        .static_rate   = (_in)->static_rate, \
        .is_global     = (_in)->is_global, \
        .port_num      = (_in)->port_num, \
    }
/* clang-format on */

static void uverbs_ah_in(const struct ib_uverbs_ah_attr *in,
                         struct ibv_ah_attr *out)
{
    *out = UVERBS_AH_ATTR(in, &in->grh);
    memcpy(out->grh.dgid.raw, in->grh.dgid, sizeof(in->grh.dgid));
}

void uverbs_dest_in(const struct ib_uverbs_qp_dest *in, struct ibv_ah_attr *out)
{
    *out = UVERBS_AH_ATTR(in, in);
    memcpy(out->grh.dgid.raw, in->dgid, sizeof(in->dgid));
}

void uverbs_dest_out(const struct hca_path *in, uint8_t port,
                     struct ib_uverbs_qp_dest *out)
{
    *out = (struct ib_uverbs_qp_dest){
        .flow_label    = in->flow_label,
        .dlid          = in->dlid,
        .sgid_index    = in->sgid_index,
        .hop_limit     = in->hop_limit,
        .traffic_class = in->tclass,
        .sl            = in->sl,
        .src_path_bits = in->src_path_bits,
        .static_rate   = in->stat_rate,
        .is_global     = in->grh,
        .port_num      = port,
    };
    memcpy(out->dgid, in->dgid, sizeof(out->dgid));
}

int uverbs_path(const struct uverbs_ctx *ctx, const struct ibv_ah_attr *attr,
                struct hca_path *path)
{
    bool roce = hca_dev_is_roce(ctx->dev);
    uint8_t gid[16];

    /* rdma_check_ah_attr() of ib_core: on RoCE a path needs a GRH. Therefore
     * ibv_create_srq_ex(IBV_SRQT_TM) fails on RoCE: create_cmd_qp() of libmlx5
     * connects its queue pair to itself by LID, without a GRH */
    if ((attr->port_num != 1) || (attr->sl > 15) ||
        (roce && !attr->is_global)) {
        return -EINVAL;
    }
    if (attr->is_global &&
        (hca_dev_gid(ctx->dev, attr->grh.sgid_index, gid) == HCA_GID_NONE)) {
        return -EINVAL;
    }

    *path = (struct hca_path){
        .dlid          = attr->dlid,
        .sl            = attr->sl,
        .reverse_sl    = attr->sl,
        .grh           = attr->is_global != 0,
        .sgid_index    = attr->grh.sgid_index,
        .hop_limit     = attr->grh.hop_limit,
        .tclass        = attr->grh.traffic_class,
        .stat_rate     = attr->static_rate,
        .src_path_bits = attr->src_path_bits,
        .flow_label    = attr->grh.flow_label,
    };
    if (attr->is_global) {
        memcpy(path->dgid, attr->grh.dgid.raw, sizeof(path->dgid));
    }
    return 0;
}

static int uverbs_ah_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    (void)events;
    uverbs_drop(((struct uverbs_ah *)obj)->pd);
    return 0;
}

const struct uverbs_type uverbs_ah_type = {
    UVERBS_OBJECT_AH,
    "address handles",
    .release = uverbs_ah_release,
};

static int uverbs_ah_respond(struct uverbs_req *req, const struct uverbs_ah *ah,
                             const struct hca_path *path)
{
    struct mlx5_ib_create_ah_resp drv = {
        .response_length = offsetof(typeof(drv), reserved),
    };
    struct ib_uverbs_create_ah_resp resp = {.ah_handle = ah->obj.handle};
    int ret;

    memcpy(drv.dmac, path->dmac, sizeof(drv.dmac));
    ret = uverbs_uhw_out(req, &drv);
    return (ret != 0) ? ret : uverbs_core_out(req, &resp);
}

static int uverbs_create_ah(struct uverbs_req *req)
{
    struct ib_uverbs_create_ah cmd;
    struct ibv_ah_attr attr;
    struct hca_path path;
    struct uverbs_pd *pd;
    struct uverbs_ah *ah;
    size_t outlen = uverbs_len(req, UVERBS_ATTR_UHW_OUT);
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    pd = uverbs_obj_find(req->ctx, UVERBS_OBJECT_PD, cmd.pd_handle, &ret);
    if ((pd == NULL) ||
        ((outlen != 0) &&
         (outlen < offsetof(struct mlx5_ib_create_ah_resp, reserved)))) {
        return -EINVAL;
    }
    uverbs_ah_in(&cmd.attr, &attr);
    ret = uverbs_path(req->ctx, &attr, &path);
    if (ret == 0) {
        ret = uverbs_path_resolve(req->ctx, &path);
    }
    if (ret != 0) {
        return ret;
    }

    ret = uverbs_obj_new(req->ctx, UVERBS_OBJECT_AH, sizeof(*ah), &ah);
    if (ret != 0) {
        return ret;
    }
    ah->pd = pd;
    uverbs_hold(pd);
    ret = uverbs_ah_respond(req, ah, &path);
    if (ret != 0) {
        uverbs_obj_destroy(&ah->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_destroy_ah_attrs[] = {
    {UVERBS_ATTR_DESTROY_AH_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_AH},
};

const struct uverbs_method uverbs_ah_methods[] = {
    {.object  = UVERBS_OBJECT_AH,
     .id      = UVERBS_METHOD_AH_DESTROY,
     .name    = "destroy_ah",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_destroy_ah_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_ah_writes[] = {
    {IB_USER_VERBS_CMD_CREATE_AH, "create_ah",
     sizeof(struct ib_uverbs_create_ah),
     sizeof(struct ib_uverbs_create_ah_resp), uverbs_create_ah},
    {.handler = NULL},
};
