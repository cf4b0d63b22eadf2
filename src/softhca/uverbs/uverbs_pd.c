/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Protection domains. Their numbers are unique on the fabric. Parent and thread
 * domains exist only in libmlx5.
 */
#define _GNU_SOURCE
#include "uverbs_pd.h"
#include "softhca/obj/hca_domain.h"
#include "uverbs.h"

static int uverbs_pd_new(struct uverbs_ctx *ctx, struct uverbs_pd **pdp)
{
    struct uverbs_pd *pd;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_PD, sizeof(*pd), &pd);
    if (ret != 0) {
        return ret;
    }
    ret = hca_pd_create(ctx->dev, pd->obj.handle, &pd->hw);
    if (ret != 0) {
        uverbs_obj_delete(&pd->obj);
        return ret;
    }
    pd->pdn = pd->hw->obj.num;
    *pdp    = pd;
    return 0;
}

static int uverbs_alloc_pd(struct uverbs_req *req)
{
    struct ib_uverbs_alloc_pd_resp resp = {0};
    struct mlx5_ib_alloc_pd_resp drv    = {0};
    struct uverbs_pd *pd;
    int ret;

    ret = uverbs_pd_new(req->ctx, &pd);
    if (ret != 0) {
        return ret;
    }
    resp.pd_handle = pd->obj.handle;
    drv.pdn        = pd->pdn;
    ret            = uverbs_uhw_out(req, &drv);
    if (ret == 0) {
        ret = uverbs_core_out(req, &resp);
    }
    if (ret != 0) {
        uverbs_obj_destroy(&pd->obj, NULL);
    }
    return ret;
}

static int uverbs_pd_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    (void)events;
    hca_obj_free(HCA_KIND_PD, ((struct uverbs_pd *)obj)->hw);
    return 0;
}

const struct uverbs_type uverbs_pd_type = {
    UVERBS_OBJECT_PD,
    "protection domains",
    .release = uverbs_pd_release,
};

static const struct uverbs_attr_spec uverbs_dealloc_pd_attrs[] = {
    {UVERBS_ATTR_DESTROY_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
};

static const struct uverbs_attr_spec uverbs_query_pd_attrs[] = {
    {MLX5_IB_ATTR_QUERY_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
    {MLX5_IB_ATTR_QUERY_PD_RESP_PDN, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
};

static int uverbs_query_pd(struct uverbs_req *req)
{
    const struct uverbs_pd *pd = uverbs_get_obj(req,
                                                MLX5_IB_ATTR_QUERY_PD_HANDLE);

    return uverbs_put(req, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->pdn,
                      sizeof(pd->pdn));
}

const struct uverbs_method uverbs_pd_methods[] = {
    {.object  = UVERBS_OBJECT_PD,
     .id      = UVERBS_METHOD_PD_DESTROY,
     .name    = "dealloc_pd",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_dealloc_pd_attrs)},
    {.object  = UVERBS_OBJECT_PD,
     .id      = MLX5_IB_METHOD_PD_QUERY,
     .name    = "query_pd",
     .handler = uverbs_query_pd,
     UVERBS_ATTRS(uverbs_query_pd_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_pd_writes[] = {
    {IB_USER_VERBS_CMD_ALLOC_PD, "alloc_pd", sizeof(struct ib_uverbs_alloc_pd),
     sizeof(struct ib_uverbs_alloc_pd_resp), uverbs_alloc_pd},
    {.handler = NULL},
};
