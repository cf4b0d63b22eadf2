/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory windows: an mkey that gives access to nothing until a UMR WQE binds it
 * to a part of a region. A window of type 2 belongs to the QP that bound it,
 * and can be invalidated.
 */
#define _GNU_SOURCE
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_objs.h"
#include "uverbs.h"
#include "uverbs_mw.h"
#include "uverbs_pd.h"

#include <errno.h>

struct uverbs_mw {
    struct uverbs_obj obj;
    struct hca_mkey *mkey;
    struct uverbs_pd *pd;
};

static int uverbs_mw_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    struct uverbs_mw *mw = (struct uverbs_mw *)obj;

    (void)events;
    hca_mkey_destroy(mw->mkey);
    uverbs_drop(mw->pd);
    obj->ctx->num_windows--;
    return 0;
}

const struct uverbs_type uverbs_mw_type = {
    UVERBS_OBJECT_MW,
    "memory windows",
    .release = uverbs_mw_release,
};

static bool uverbs_mw_is_bound(const struct uverbs_obj *obj, uint32_t key)
{
    const struct hca_mkey *mkey = ((const struct uverbs_mw *)obj)->mkey;

    return !mkey->is_free && (mkey->base_key == key);
}

bool uverbs_mw_has(struct uverbs_ctx *ctx, uint32_t key)
{
    return (ctx->num_windows > 0) &&
           (uverbs_obj_search(ctx, UVERBS_OBJECT_MW, uverbs_mw_is_bound, key) !=
            NULL);
}

static int uverbs_mw_new(struct uverbs_ctx *ctx, struct uverbs_pd *pd,
                         uint8_t type, struct uverbs_mw **mwp)
{
    const struct hca_mkey_spec spec = {
        .dev           = ctx->dev,
        .type          = HCA_MKEY_MW,
        .is_free       = true,
        .has_umr       = true, /* to be bound */
        .local_inv_ok  = (type == IBV_MW_TYPE_2),
        .remote_inv_ok = (type == IBV_MW_TYPE_2),
        .qpn           = HCA_ANY_QPN,
        .pdn           = pd->pdn,
    };
    struct uverbs_mw *mw;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_MW, sizeof(*mw), &mw);
    if (ret != 0) {
        return ret;
    }
    ret = hca_mkey_create(&spec, &mw->mkey);
    if (ret != 0) {
        uverbs_obj_delete(&mw->obj);
        return ret;
    }
    ctx->num_windows++;
    mw->pd = pd;
    uverbs_hold(pd);
    *mwp = mw;
    return 0;
}

/* The driver's part of the request (struct mlx5_ib_alloc_mw) is optional. */
static int uverbs_mw_check(struct uverbs_req *req, uint8_t type)
{
    struct mlx5_ib_alloc_mw ucmd;
    int ret;

    if ((type != IBV_MW_TYPE_1) && (type != IBV_MW_TYPE_2)) {
        return -EINVAL;
    }
    ret = uverbs_uhw_in(req, &ucmd);
    if (ret != 0) {
        return ret;
    }
    return ((ucmd.comp_mask != 0) || (ucmd.reserved1 != 0) ||
            (ucmd.reserved2 != 0)) ?
               -EOPNOTSUPP :
               0;
}

static int uverbs_alloc_mw(struct uverbs_req *req)
{
    struct ib_uverbs_alloc_mw_resp resp = {0};
    struct ib_uverbs_alloc_mw cmd;
    struct uverbs_pd *pd;
    struct uverbs_mw *mw;
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret == 0) {
        ret = uverbs_mw_check(req, cmd.mw_type);
    }
    if (ret != 0) {
        return ret;
    }
    pd = uverbs_obj_find(req->ctx, UVERBS_OBJECT_PD, cmd.pd_handle, &ret);
    if (pd == NULL) {
        return -EINVAL;
    }

    ret = uverbs_mw_new(req->ctx, pd, cmd.mw_type, &mw);
    if (ret != 0) {
        return ret;
    }
    resp.mw_handle = mw->obj.handle;
    resp.rkey      = hca_key(mw->mkey);
    ret            = uverbs_core_out(req, &resp);
    if (ret != 0) {
        uverbs_obj_destroy(&mw->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_dealloc_mw_attrs[] = {
    {UVERBS_ATTR_DESTROY_MW_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_MW},
};

const struct uverbs_method uverbs_mw_methods[] = {
    {.object  = UVERBS_OBJECT_MW,
     .id      = UVERBS_METHOD_MW_DESTROY,
     .name    = "dealloc_mw",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_dealloc_mw_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_mw_writes[] = {
    {IB_USER_VERBS_CMD_ALLOC_MW, "alloc_mw", sizeof(struct ib_uverbs_alloc_mw),
     sizeof(struct ib_uverbs_alloc_mw_resp), uverbs_alloc_mw},
    {.handler = NULL},
};
