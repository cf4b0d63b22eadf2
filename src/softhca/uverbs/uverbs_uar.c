/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UAR pages: the registers that a program writes to ring doorbells. ALLOC
 * returns an mmap offset; the program maps the device file there, and
 * uverbs_mmap.c finds the mapping by that offset. Page numbers are unique in
 * the process; uverbs_uar_lock guards the numbers and the serial.
 */
#define _GNU_SOURCE
#include "uverbs_uar.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/exec/hca_uar.h"
#include "uverbs.h"
#include "uverbs_mmap.h"

#include <errno.h>

/* First mmap offset, in pages. Each allocation adds a new serial number: no
 * offset is used twice, so that a mapping which the program kept after it freed
 * the page is never mistaken for that of a new page. */
#define UVERBS_UAR_COOKIE 0x5ca00000000ull

struct uverbs_uar {
    struct uverbs_obj obj;
    uint32_t page_id;
    struct uverbs_uar *next; /* of the context */
};

static uint64_t uverbs_uar_used[(UVERBS_MAX_UAR + 1) / 64];
static uint32_t uverbs_uar_serial;
static pthread_mutex_t uverbs_uar_lock = PTHREAD_MUTEX_INITIALIZER;

void uverbs_uar_forked(void)
{
    pthread_mutex_init(&uverbs_uar_lock, NULL);
}

/* Takes a free page number. Never takes 0, which the context of a CQ or QP
 * holds if the program named no page. @serial was never used before in this
 * process. @return 0, or -ENOMEM if all numbers are in use. */
static int uverbs_uar_take(uint32_t *page_id, uint32_t *serial)
{
    int ret = -ENOMEM;

    pthread_mutex_lock(&uverbs_uar_lock);
    uverbs_uar_used[0] |= 1;
    for (unsigned i = 0; i < (UVERBS_MAX_UAR + 1) / 64; i++) {
        if (uverbs_uar_used[i] != UINT64_MAX) {
            unsigned bit = __builtin_ctzll(~uverbs_uar_used[i]);

            uverbs_uar_used[i] |= 1ull << bit;
            *page_id = i * 64 + bit;
            *serial  = ++uverbs_uar_serial;
            ret      = 0;
            break;
        }
    }
    pthread_mutex_unlock(&uverbs_uar_lock);
    return ret;
}

static void uverbs_uar_give(uint32_t page_id)
{
    pthread_mutex_lock(&uverbs_uar_lock);
    uverbs_uar_used[page_id / 64] &= ~(1ull << (page_id % 64));
    pthread_mutex_unlock(&uverbs_uar_lock);
}

bool uverbs_uar_valid(const struct uverbs_ctx *ctx, uint32_t page_id)
{
    const struct uverbs_uar *uar = ctx->uars;

    while ((uar != NULL) && (uar->page_id != page_id)) {
        uar = uar->next;
    }
    return uar != NULL;
}

static int uverbs_uar_release(struct uverbs_obj *obj,
                              struct uverbs_events *events)
{
    struct uverbs_uar *uar   = (struct uverbs_uar *)obj;
    struct uverbs_uar **link = &obj->ctx->uars;

    (void)events;
    while (*link != uar) {
        link = &(*link)->next;
    }
    *link = uar->next;
    uverbs_map_forget(obj->ctx, UVERBS_MAP_UAR, uar->page_id);
    hca_uar_del(uar->page_id);
    uverbs_uar_give(uar->page_id);
    return 0;
}

const struct uverbs_type uverbs_uar_type = {
    MLX5_IB_OBJECT_UAR,
    "UAR pages",
    .release = uverbs_uar_release,
};

static int uverbs_uar_new(struct uverbs_ctx *ctx, bool is_wc,
                          struct uverbs_uar **uarp, uint64_t *offset)
{
    struct uverbs_map_plan plan = {.kind = UVERBS_MAP_UAR, .size = 4096};
    struct uverbs_uar *uar;
    uint32_t serial;
    int ret;

    ret = uverbs_obj_new(ctx, MLX5_IB_OBJECT_UAR, sizeof(*uar), &uar);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_uar_take(&uar->page_id, &serial);
    if (ret != 0) {
        goto err_delete;
    }
    ret = hca_uar_init(uar->page_id, is_wc);
    if (ret != 0) {
        goto err_give;
    }
    *offset     = (UVERBS_UAR_COOKIE + serial) << 12;
    plan.id     = uar->page_id;
    plan.offset = *offset;
    ret         = uverbs_map_expect(ctx, &plan);
    if (ret != 0) {
        goto err_give;
    }
    uar->next = ctx->uars;
    ctx->uars = uar;
    *uarp     = uar;
    return 0;

err_give:
    uverbs_uar_give(uar->page_id);
err_delete:
    uverbs_obj_delete(&uar->obj);
    return ret;
}

static const struct uverbs_attr_spec uverbs_uar_alloc_attrs[] = {
    {MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, UVERBS_OUT, UVERBS_MANDATORY, 8, 8,
     0},
    {MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, UVERBS_OUT, UVERBS_MANDATORY, 4, 4,
     0},
    {MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
};

static int uverbs_uar_alloc(struct uverbs_req *req)
{
    uint64_t type   = uverbs_get_const(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE);
    bool is_wc      = (type == MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
    uint32_t length = 4096;
    struct uverbs_uar *uar;
    uint64_t offset;
    int ret;

    if (!is_wc && (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)) {
        return -EOPNOTSUPP;
    }
    if (is_wc && hca_lacks(HCA_LACK_WC)) {
        return -EOPNOTSUPP;
    }
    ret = uverbs_uar_new(req->ctx, is_wc, &uar, &offset);
    if (ret != 0) {
        return ret;
    }

    ret = uverbs_put(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset,
                     sizeof(offset));
    if (ret == 0) {
        ret = uverbs_put(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length,
                         sizeof(length));
    }
    if (ret == 0) {
        ret = uverbs_put(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page_id,
                         sizeof(uar->page_id));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE,
                                uar->obj.handle);
    }
    if (ret != 0) {
        uverbs_obj_destroy(&uar->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_uar_destroy_attrs[] = {
    {MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     MLX5_IB_OBJECT_UAR},
};

const struct uverbs_method uverbs_uar_methods[] = {
    {.object  = MLX5_IB_OBJECT_UAR,
     .id      = MLX5_IB_METHOD_UAR_OBJ_ALLOC,
     .name    = "alloc_uar",
     .handler = uverbs_uar_alloc,
     UVERBS_ATTRS(uverbs_uar_alloc_attrs)},
    {.object  = MLX5_IB_OBJECT_UAR,
     .id      = MLX5_IB_METHOD_UAR_OBJ_DESTROY,
     .name    = "destroy_uar",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(uverbs_uar_destroy_attrs)},
    {.handler = NULL},
};
