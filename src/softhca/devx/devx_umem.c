/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMEM_REG and UMEM_DEREG: memory of the program for rings and doorbell
 * records of DEVX objects, which name it by its id. It cannot be deregistered
 * while one of them lives (EBUSY).
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_umem.h"
#include "softhca/uverbs/uverbs_mr.h"
#include "softhca/uverbs/uverbs_pin.h"

#include <errno.h>
#include <string.h>

#define UMEM_ACCESS \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct devx_umem {
    struct uverbs_obj obj;
    struct hca_umem umem;
    uint64_t addr, length;
    uint64_t pinned; /* pages */
};

static const struct uverbs_attr_spec devx_umem_reg_attrs[] = {
    {MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, UVERBS_IN, UVERBS_MANDATORY, 4, 8, 0},
    {MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
    {MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, UVERBS_IN, 0, 8, 8, 0},
};

/* Returns the id, unique in the context. 0 is no id: an empty field of a
 * mailbox names no umem. */
static uint32_t devx_umem_id(const struct devx_umem *umem)
{
    return umem->obj.handle + 1;
}

/* Checks as the kernel's devx_umem_get() does. */
static int devx_umem_check(struct uverbs_req *req, uint64_t addr,
                           uint64_t length)
{
    uint64_t access = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS);
    uint64_t pages  = uverbs_get_const(req,
                                       MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP);

    if ((access & ~(uint64_t)UMEM_ACCESS) ||
        (uverbs_check_access(access) != 0) || (length == 0) ||
        (addr + length < addr) || (addr + length > UINT64_MAX - 4095)) {
        return -EINVAL;
    }
    return (uverbs_has(req, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) &&
            ((pages & ~4095ull) == 0)) ?
               -EINVAL :
               0;
}

static int devx_umem_new(struct uverbs_req *req, uint64_t addr, uint64_t length,
                         struct devx_umem **umemp)
{
    bool writes = (uverbs_get_const(req, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS) &
                   IBV_ACCESS_LOCAL_WRITE) != 0;
    struct devx_umem *umem;
    int ret;

    ret = uverbs_obj_new(req->ctx, MLX5_IB_OBJECT_DEVX_UMEM, sizeof(*umem),
                         &umem);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_pin(addr, length, &umem->pinned);
    if (ret != 0) {
        uverbs_obj_delete(&umem->obj);
        return ret;
    }
    ret = hca_umem_share(&umem->umem, addr, length, writes);
    if (ret != 0) {
        hca_warn("umem: %lu bytes at 0x%lx: %s", (unsigned long)length,
                 (unsigned long)addr, hca_umem_error(-ret));
        uverbs_unpin(umem->pinned);
        uverbs_obj_delete(&umem->obj);
        return ret;
    }
    umem->addr   = addr;
    umem->length = length;
    *umemp       = umem;
    return 0;
}

static int devx_umem_reg(struct uverbs_req *req)
{
    uint64_t addr   = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
    uint64_t length = uverbs_get_const(req, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);
    struct devx_umem *umem;
    uint32_t id;
    int ret;

    ret = devx_umem_check(req, addr, length);
    if (ret == 0) {
        ret = devx_umem_new(req, addr, length, &umem);
    }
    if (ret != 0) {
        return ret;
    }
    id  = devx_umem_id(umem);
    ret = uverbs_put(req, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &id, sizeof(id));
    if (ret == 0) {
        ret = uverbs_put_handle(req, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE,
                                umem->obj.handle);
    }
    if (ret != 0) {
        uverbs_obj_destroy(&umem->obj, NULL);
    }
    return ret;
}

static int devx_umem_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    (void)events;
    uverbs_unpin(((struct devx_umem *)obj)->pinned);
    hca_umem_unshare(&((struct devx_umem *)obj)->umem);
    return 0;
}

const struct uverbs_type devx_umem_type = {
    MLX5_IB_OBJECT_DEVX_UMEM,
    "umems",
    .release = devx_umem_release,
};

static enum devx_status devx_find_umem(struct devx_call *call,
                                       struct devx_umem_use *use,
                                       unsigned align)
{
    struct devx_umem *umem;
    int err;

    umem = uverbs_obj_find(call->ctx, MLX5_IB_OBJECT_DEVX_UMEM, use->id - 1ull,
                           &err);
    if (umem == NULL) {
        return devx_refuse(call, DEVX_BAD_RES, use->field, "umem id", use->id);
    }
    if ((use->offset > umem->length) ||
        (use->size > umem->length - use->offset) ||
        ((umem->addr + use->offset) % align != 0)) {
        return devx_refuse(call, DEVX_BAD_PARAM, use->field,
                           "end of a queue in its umem",
                           use->offset + use->size);
    }
    use->off = hca_off(umem->umem.mem + use->offset);
    devx_obj_use(call, &umem->obj);
    return DEVX_OK;
}

enum devx_status devx_find_ring(struct devx_call *call,
                                struct devx_umem_use *ring,
                                struct devx_umem_use *dbrec)
{
    enum devx_status status = devx_find_umem(call, ring, 64);

    dbrec->size = 8;
    return (status == DEVX_OK) ? devx_find_umem(call, dbrec, 8) : status;
}

static const struct uverbs_attr_spec devx_umem_dereg_attrs[] = {
    {MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     MLX5_IB_OBJECT_DEVX_UMEM},
};

const struct uverbs_method devx_umem_methods[] = {
    {.object  = MLX5_IB_OBJECT_DEVX_UMEM,
     .id      = MLX5_IB_METHOD_DEVX_UMEM_REG,
     .name    = "devx_umem_reg",
     .handler = devx_umem_reg,
     UVERBS_ATTRS(devx_umem_reg_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX_UMEM,
     .id      = MLX5_IB_METHOD_DEVX_UMEM_DEREG,
     .name    = "devx_umem_dereg",
     .is_end  = true,
     .handler = uverbs_destroy,
     UVERBS_ATTRS(devx_umem_dereg_attrs)},
    {.handler = NULL},
};
