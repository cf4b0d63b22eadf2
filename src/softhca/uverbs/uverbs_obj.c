/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Handles: each context has a table from numbers to typed objects. Also the
 * destruction of objects. The mutex of the context guards all of it.
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UVERBS_NO_OBJ UINT32_MAX

/* Most handles of a context */
#define UVERBS_LOG_HANDLES 21

/* A free entry is odd, unlike a pointer, and holds the index of the next free
 * one in its upper bits. */
static bool uverbs_entry_free(const struct uverbs_obj *entry)
{
    return (uintptr_t)entry & 1;
}

static struct uverbs_obj *uverbs_entry_link(uint32_t next)
{
    return (struct uverbs_obj *)(((uintptr_t)next << 1) | 1);
}

static int uverbs_table_grow(struct uverbs_ctx *ctx)
{
    uint32_t num = (ctx->num_objs == 0) ? 64 : ctx->num_objs * 2;
    struct uverbs_obj **objs;

    objs = realloc(ctx->objs, num * sizeof(*objs));
    if (objs == NULL) {
        return -ENOMEM;
    }

    for (uint32_t i = ctx->num_objs; i < num; i++) {
        objs[i] = uverbs_entry_link((i + 1 < num) ? i + 1 : UVERBS_NO_OBJ);
    }
    ctx->free_obj = ctx->num_objs;
    ctx->num_objs = num;
    ctx->objs     = objs;
    return 0;
}

int uverbs_obj_new(struct uverbs_ctx *ctx, uint16_t type, size_t size,
                   void *objp)
{
    struct uverbs_obj *obj;
    uint32_t index;

    if (((ctx->num_objs == 0) || (ctx->free_obj == UVERBS_NO_OBJ)) &&
        ((ctx->num_objs == 1u << UVERBS_LOG_HANDLES) ||
         (uverbs_table_grow(ctx) != 0))) {
        return -ENOMEM;
    }
    obj = calloc(1, size);
    if (obj == NULL) {
        return -ENOMEM;
    }

    index                       = ctx->free_obj;
    ctx->free_obj               = (uintptr_t)ctx->objs[index] >> 1;
    ctx->objs[index]            = obj;
    obj->type                   = type;
    obj->handle                 = index;
    obj->ctx                    = ctx;
    *(struct uverbs_obj **)objp = obj;
    return 0;
}

void uverbs_obj_delete(struct uverbs_obj *obj)
{
    struct uverbs_ctx *ctx = obj->ctx;
    uint32_t index         = obj->handle;

    ctx->objs[index] = uverbs_entry_link(ctx->free_obj);
    ctx->free_obj    = index;
    free(obj);
}

void *uverbs_obj_find(struct uverbs_ctx *ctx, uint16_t type, uint64_t handle,
                      int *err)
{
    struct uverbs_obj *obj;

    if ((int64_t)handle < 0) {
        *err = -EINVAL;
        return NULL;
    }
    if ((handle >= ctx->num_objs) || uverbs_entry_free(ctx->objs[handle])) {
        *err = -ENOENT;
        return NULL;
    }
    obj = ctx->objs[handle];
    if ((obj->type != type) && (type != UVERBS_ANY_TYPE)) {
        *err = -EINVAL;
        return NULL;
    }
    return obj;
}

void *uverbs_obj_search(struct uverbs_ctx *ctx, uint16_t type,
                        bool (*is)(const struct uverbs_obj *obj,
                                   uint32_t number),
                        uint32_t number)
{
    for (uint32_t i = 0; i < ctx->num_objs; i++) {
        struct uverbs_obj *obj = ctx->objs[i];

        if (!uverbs_entry_free(obj) && (obj->type == type) && is(obj, number)) {
            return obj;
        }
    }
    return NULL;
}

static const struct uverbs_type *uverbs_type_of(const struct uverbs_obj *obj)
{
    unsigned i = 0;

    while (obj->ctx->types[i]->id != obj->type) {
        i++;
    }
    return obj->ctx->types[i];
}

int uverbs_obj_destroy(struct uverbs_obj *obj, struct uverbs_events *events)
{
    int ret;

    if (obj->users != 0) {
        return -EBUSY;
    }
    ret = uverbs_type_of(obj)->release(obj, events);
    if (ret == 0) {
        uverbs_obj_delete(obj);
    }
    return ret;
}

/* Destroys the objects of a type that no other object uses. @return how
 * many. */
static unsigned uverbs_destroy_unused(struct uverbs_ctx *ctx,
                                      const struct uverbs_type *type)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < ctx->num_objs; i++) {
        struct uverbs_obj *obj = ctx->objs[i];

        if (!uverbs_entry_free(obj) && (obj->type == type->id) &&
            (obj->users == 0) && (type->release(obj, NULL) == 0)) {
            uverbs_obj_delete(obj);
            count++;
        }
    }
    return count;
}

/* Destroys all objects of a type, which may use each other (DEVX).
 * @return how many. */
static unsigned uverbs_destroy_type(struct uverbs_ctx *ctx,
                                    const struct uverbs_type *type)
{
    unsigned total = 0, count;

    do {
        count = uverbs_destroy_unused(ctx, type);
        total += count;
    } while (count != 0);
    return total;
}

void uverbs_obj_destroy_all(struct uverbs_ctx *ctx)
{
    for (unsigned i = 0; i < ctx->num_types; i++) {
        const struct uverbs_type *type = ctx->types[i];
        unsigned count                 = uverbs_destroy_type(ctx, type);

        if ((count != 0) && !type->is_closed) {
            hca_info("context: closed with %u %s left", count, type->name);
        }
    }
    free(ctx->objs);
    ctx->objs     = NULL;
    ctx->num_objs = 0;
}
