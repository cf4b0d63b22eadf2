/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Device memory (MEMIC) and regions on it. Its pages are in the arena; libmlx5
 * maps them a second time through the device file (uverbs_mmap.c), at an offset
 * that it computes from the page index. The index is unique on the fabric.
 */
#define _GNU_SOURCE
#include "uverbs_dm.h"
#include "softhca/obj/hca_domain.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_dev.h"
#include "uverbs.h"
#include "uverbs_mmap.h"
#include "uverbs_mr.h"

#include <assert.h>
#include <errno.h>

static_assert(HCA_LOG_MAX_DMS <= 16, "an index has 16 bits");

/* Returns the offset at which libmlx5 maps a page index. In pages, bits 7..0
 * and 23..16 are the index, 15..8 the command (set_command(),
 * set_extended_index() in its mlx5.h). */
static uint64_t uverbs_dm_offset(unsigned index)
{
    return (((uint64_t)(index >> 8) << 16) | (MLX5_IB_MMAP_DEVICE_MEM << 8) |
            (index & 0xff))
           << 12;
}

/* Returns the bytes of whole pages, which count against the device's memory. */
static size_t uverbs_dm_size(const struct uverbs_dm *dm)
{
    return (dm->length + 4095) & ~4095ul;
}

static int uverbs_dm_expect(struct uverbs_dm *dm)
{
    unsigned index = hca_dm_index(dm->hw);

    return uverbs_map_expect(dm->obj.ctx, &(struct uverbs_map_plan){
                                              .kind   = UVERBS_MAP_DM,
                                              .id     = index,
                                              .offset = uverbs_dm_offset(index),
                                              .mem    = dm->mem,
                                              .size   = uverbs_dm_size(dm)});
}

static int uverbs_dm_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    struct uverbs_dm *dm = (struct uverbs_dm *)obj;

    (void)events;
    uverbs_map_forget(obj->ctx, UVERBS_MAP_DM, hca_dm_index(dm->hw));
    hca_arena_free(dm->mem);
    hca_obj_free(HCA_KIND_DM, dm->hw);
    hca_dev_give_memory(obj->ctx->dev, uverbs_dm_size(dm));
    return 0;
}

const struct uverbs_type uverbs_dm_type = {
    UVERBS_OBJECT_DM,
    "pieces of device memory",
    .release = uverbs_dm_release,
};

/* Allocates the memory, publishes it on the fabric and announces its
 * mapping. */
static int uverbs_dm_fill(struct uverbs_dm *dm)
{
    int ret;

    dm->mem = hca_arena_alloc(uverbs_dm_size(dm));
    if (dm->mem == NULL) {
        return -ENOMEM;
    }
    ret = hca_dm_create(dm->obj.ctx->dev, &dm->hw);
    if (ret != 0) {
        goto err_free;
    }
    ret = uverbs_dm_expect(dm);
    if (ret == 0) {
        return 0;
    }
    hca_obj_free(HCA_KIND_DM, dm->hw);

err_free:
    hca_arena_free(dm->mem);
    return ret;
}

static int uverbs_dm_new(struct uverbs_ctx *ctx, size_t length,
                         struct uverbs_dm **dmp)
{
    struct uverbs_dm *dm;
    int ret;

    ret = uverbs_obj_new(ctx, UVERBS_OBJECT_DM, sizeof(*dm), &dm);
    if (ret != 0) {
        return ret;
    }
    dm->length = length;
    if (!hca_dev_take_memory(ctx->dev, uverbs_dm_size(dm), uverbs_max_dm())) {
        ret = -ENOMEM;
        goto err_delete;
    }
    ret = uverbs_dm_fill(dm);
    if (ret == 0) {
        *dmp = dm;
        return 0;
    }
    hca_dev_give_memory(ctx->dev, uverbs_dm_size(dm));

err_delete:
    uverbs_obj_delete(&dm->obj);
    return ret;
}

static const struct uverbs_attr_spec uverbs_alloc_dm_attrs[] = {
    {UVERBS_ATTR_ALLOC_DM_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_ALLOC_DM_LENGTH, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_ALLOC_DM_ALIGNMENT, UVERBS_IN, UVERBS_MANDATORY, 4, 4, 0},
    {MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, UVERBS_OUT, UVERBS_MANDATORY, 8,
     8, 0},
    {MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, UVERBS_OUT, 0, 2, 2, 0},
    {MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, UVERBS_IN, 0, 8, 8, 0},
};

static int uverbs_dm_respond(struct uverbs_req *req, const struct uverbs_dm *dm)
{
    uint64_t start = 0;
    uint16_t index = hca_dm_index(dm->hw);
    int ret;

    ret = uverbs_put(req, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, &start,
                     sizeof(start));
    if (ret == 0) {
        ret = uverbs_put(req, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, &index,
                         sizeof(index));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, UVERBS_ATTR_ALLOC_DM_HANDLE,
                                dm->obj.handle);
    }
    return ret;
}

static int uverbs_alloc_dm(struct uverbs_req *req)
{
    uint64_t length = uverbs_get_const(req, UVERBS_ATTR_ALLOC_DM_LENGTH);
    struct uverbs_dm *dm;
    int ret;

    if (hca_lacks(HCA_LACK_DM) ||
        (uverbs_get_const(req, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE) !=
         MLX5_IB_UAPI_DM_TYPE_MEMIC)) {
        return -EOPNOTSUPP; /* others are memory for steering */
    }
    if ((length == 0) || (length > uverbs_max_dm()) ||
        (uverbs_get_const(req, UVERBS_ATTR_ALLOC_DM_ALIGNMENT) >
         UVERBS_DM_LOG_ALIGN)) {
        return -EINVAL;
    }

    ret = uverbs_dm_new(req->ctx, length, &dm);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_dm_respond(req, dm);
    if (ret != 0) {
        uverbs_obj_destroy(&dm->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_query_dm_attrs[] = {
    {MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_DM},
    {MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, UVERBS_OUT, UVERBS_MANDATORY, 8,
     8, 0},
    {MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, UVERBS_OUT, UVERBS_MANDATORY, 2, 2,
     0},
    {MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, UVERBS_OUT, UVERBS_MANDATORY, 8, 8, 0},
};

/* QUERY_DM: ibv_import_dm() then maps the memory once more, at the same
 * offset. */
static int uverbs_query_dm(struct uverbs_req *req)
{
    struct uverbs_dm *dm = uverbs_get_obj(req,
                                          MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE);
    uint64_t start = 0, length = dm->length;
    uint16_t index = hca_dm_index(dm->hw);
    int ret;

    uverbs_map_resolve(req->ctx); /* finds the existing mapping */
    ret = uverbs_map_is_expected(req->ctx, UVERBS_MAP_DM, index) ?
              0 :
              uverbs_dm_expect(dm);
    if (ret == 0) {
        ret = uverbs_put(req, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, &start,
                         sizeof(start));
    }
    if (ret == 0) {
        ret = uverbs_put(req, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, &index,
                         sizeof(index));
    }
    return (ret != 0) ? ret :
                        uverbs_put(req, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH,
                                   &length, sizeof(length));
}

static const struct uverbs_attr_spec uverbs_free_dm_attrs[] = {
    {UVERBS_ATTR_FREE_DM_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_DM},
};

static const struct uverbs_attr_spec uverbs_reg_dm_mr_attrs[] = {
    {UVERBS_ATTR_REG_DM_MR_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_REG_DM_MR_OFFSET, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_REG_DM_MR_LENGTH, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_REG_DM_MR_PD_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_PD},
    {UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, UVERBS_IN, UVERBS_MANDATORY, 4, 8, 0},
    {UVERBS_ATTR_REG_DM_MR_DM_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_DM},
    {UVERBS_ATTR_REG_DM_MR_RESP_LKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {UVERBS_ATTR_REG_DM_MR_RESP_RKEY, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
};

static int uverbs_dm_mr_respond(struct uverbs_req *req,
                                const struct uverbs_mr *mr)
{
    uint32_t key = hca_key(mr->mkey);
    int ret;

    ret = uverbs_put(req, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &key, sizeof(key));
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &key,
                         sizeof(key));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, UVERBS_ATTR_REG_DM_MR_HANDLE,
                                mr->obj.handle);
    }
    return ret;
}

/* MLX5_IB_DM_MEMIC_ALLOWED_ACCESS of mlx5_ib */
#define UVERBS_DM_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
     IBV_ACCESS_ZERO_BASED)

static int uverbs_reg_dm_mr(struct uverbs_req *req)
{
    struct uverbs_dm *dm = uverbs_get_obj(req, UVERBS_ATTR_REG_DM_MR_DM_HANDLE);
    struct uverbs_pd *pd = uverbs_get_obj(req, UVERBS_ATTR_REG_DM_MR_PD_HANDLE);
    uint64_t offset      = uverbs_get_const(req, UVERBS_ATTR_REG_DM_MR_OFFSET);
    struct uverbs_region region = {
        .start  = (uintptr_t)dm->mem + offset,
        .length = uverbs_get_const(req, UVERBS_ATTR_REG_DM_MR_LENGTH),
        .access = uverbs_get_const(req, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS),
    };
    struct uverbs_mr *mr;
    int ret;

    ret = uverbs_check_access(region.access);
    if (ret != 0) {
        return ret;
    }
    if (!(region.access & IBV_ACCESS_ZERO_BASED) ||
        (region.access & ~UVERBS_DM_ACCESS) || (offset > dm->length) ||
        (region.length > dm->length - offset)) {
        return -EINVAL;
    }

    uverbs_map_resolve(req->ctx);
    ret = uverbs_mr_new(req->ctx, pd, &region, &mr);
    if (ret != 0) {
        return ret;
    }
    mr->dm = dm;
    uverbs_hold(dm);
    ret = uverbs_dm_mr_respond(req, mr);
    if (ret != 0) {
        uverbs_obj_destroy(&mr->obj, NULL);
    }
    return ret;
}

const struct uverbs_method uverbs_dm_methods[] = {
    {.object  = UVERBS_OBJECT_DM,
     .id      = UVERBS_METHOD_DM_ALLOC,
     .name    = "alloc_dm",
     .handler = uverbs_alloc_dm,
     UVERBS_ATTRS(uverbs_alloc_dm_attrs)},
    {.object  = UVERBS_OBJECT_DM,
     .id      = MLX5_IB_METHOD_DM_QUERY,
     .name    = "query_dm",
     .handler = uverbs_query_dm,
     UVERBS_ATTRS(uverbs_query_dm_attrs)},
    {.object  = UVERBS_OBJECT_DM,
     .id      = UVERBS_METHOD_DM_FREE,
     .name    = "free_dm",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_free_dm_attrs)},
    {.object  = UVERBS_OBJECT_MR,
     .id      = UVERBS_METHOD_DM_MR_REG,
     .name    = "reg_dm_mr",
     .handler = uverbs_reg_dm_mr,
     UVERBS_ATTRS(uverbs_reg_dm_mr_attrs)},
    {.handler = NULL},
};
