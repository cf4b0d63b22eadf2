/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects of other processes. Several may have one device file: by fork(), or
 * by sending a descriptor. Each has a context for it, with the objects that it
 * makes, and handles of its own. Another process' object that it may ask for
 * (uverbs_import) is found on the fabric, and is in a list while it is in use
 * here.
 */
#include "uverbs.h"
#include "softhca/base/hca_log.h"

#include <errno.h>
#include <stdlib.h>

static const struct uverbs_type *uverbs_type_find(const struct uverbs_ctx *ctx,
                                                  uint16_t type)
{
    for (unsigned i = 0; i < ctx->num_types; i++) {
        if (ctx->types[i]->id == type) {
            return ctx->types[i];
        }
    }
    return NULL; /* UVERBS_ANY_TYPE */
}

const struct uverbs_type *uverbs_type_of(const struct uverbs_obj *obj)
{
    return uverbs_type_find(obj->ctx, obj->type);
}

/* Finds an object on the fabric, and puts it into the list. */
static struct uverbs_obj *uverbs_obj_import(struct uverbs_ctx *ctx,
                                            uint16_t type, uint32_t handle)
{
    const struct uverbs_type *row = uverbs_type_find(ctx, type);
    struct hca_name name          = {ctx->file, handle};
    struct uverbs_obj *obj;

    if ((row == NULL) || (row->import == NULL)) {
        return NULL;
    }
    obj = calloc(1, row->import->size);
    if ((obj == NULL) || !row->import->fill(obj, &name)) {
        free(obj);
        return NULL;
    }
    obj->type       = type;
    obj->handle     = handle;
    obj->is_foreign = true;
    obj->ctx        = ctx;
    obj->next       = ctx->foreign;
    ctx->foreign    = obj;
    return obj;
}

struct uverbs_obj *uverbs_foreign_find(struct uverbs_ctx *ctx, uint16_t type,
                                       uint32_t handle)
{
    struct uverbs_obj *obj = ctx->foreign;

    while ((obj != NULL) && ((obj->type != type) || (obj->handle != handle))) {
        obj = obj->next;
    }
    return (obj != NULL) ? obj : uverbs_obj_import(ctx, type, handle);
}

void uverbs_obj_end(struct uverbs_ctx *ctx)
{
    struct uverbs_obj **link = &ctx->foreign, *obj;

    while ((obj = *link) != NULL) {
        if (obj->users != 0) {
            link = &obj->next;
        } else {
            *link = obj->next;
            free(obj);
        }
    }
}

int uverbs_obj_check_own(const struct uverbs_obj *obj)
{
    if (!obj->is_foreign) {
        return 0;
    }
    hca_warn("context: one of the %s belongs to another process with this "
             "device file; change it there",
             uverbs_type_of(obj)->name);
    return -EIO;
}

/* A forked child may only use its parent's objects: otherwise it would destroy
 * them when it ends. */
int uverbs_obj_may_destroy(const struct uverbs_obj *obj)
{
    return uverbs_is_inherited(obj->ctx) ? uverbs_obj_check_own(obj) : 0;
}

int uverbs_foreign_give_up(const struct uverbs_obj *obj)
{
    const struct uverbs_import *import = uverbs_type_of(obj)->import;
    struct hca_name name               = {obj->ctx->file, obj->handle};

    return hca_obj_give_up(import->kind, import->hw(obj), &name);
}
