/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Objects made by DEVX commands, with handles like those of verbs. An object
 * names others by number; they cannot be destroyed before it (EBUSY), as with
 * the firmware.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/uverbs/uverbs_cq.h"
#include "softhca/uverbs/uverbs_pd.h"
#include "softhca/uverbs/uverbs_srq.h"

enum devx_status devx_obj_new(struct devx_call *call)
{
    if (uverbs_obj_new(call->ctx, MLX5_IB_OBJECT_DEVX_OBJ, sizeof(*call->obj),
                       &call->obj) != 0) {
        return DEVX_NO_RES;
    }
    call->obj->cmd = call->cmd;
    return DEVX_OK;
}

static void devx_obj_drop(struct devx_obj *obj)
{
    for (unsigned i = 0; i < DEVX_MAX_USES; i++) {
        uverbs_unref(obj->uses[i]);
    }
}

void devx_obj_undo(struct devx_call *call)
{
    devx_obj_drop(call->obj);
    uverbs_obj_delete(&call->obj->obj);
    call->obj = NULL;
}

void devx_obj_hold(struct devx_obj *obj, struct uverbs_obj *used)
{
    unsigned i = 0;

    while (obj->uses[i] != NULL) {
        i++;
    }
    obj->uses[i] = used;
    uverbs_ref(used);
}

static int devx_obj_release(struct uverbs_obj *obj,
                            struct uverbs_events *events)
{
    struct devx_obj *devx = (struct devx_obj *)obj;
    int ret               = devx->release(devx);

    (void)events;
    if (ret == 0) {
        devx_obj_drop(devx);
    }
    return ret;
}

const struct uverbs_type devx_obj_type = {
    MLX5_IB_OBJECT_DEVX_OBJ,
    "devx objects",
    .release = devx_obj_release,
};

static bool devx_is_cq(const struct uverbs_obj *obj, uint32_t number)
{
    return ((const struct uverbs_cq *)obj)->cq->obj.num == number;
}

static bool devx_is_devx_cq(const struct uverbs_obj *obj, uint32_t number)
{
    const struct devx_obj *devx = (const struct devx_obj *)obj;

    return (devx->cmd->opcode == DEVX_OP_CREATE_CQ) && (devx->number == number);
}

typedef bool (*devx_is_t)(const struct uverbs_obj *obj, uint32_t number);

/* Finds an object made by verbs, or else one made by a command. */
static struct uverbs_obj *devx_find(const struct devx_call *call,
                                    uint32_t number, uint16_t type,
                                    devx_is_t is_of_verbs, devx_is_t is_of_devx)
{
    struct uverbs_obj *obj;

    obj = uverbs_obj_search(call->ctx, type, is_of_verbs, number);
    return (obj != NULL) ? obj :
                           uverbs_obj_search(call->ctx, MLX5_IB_OBJECT_DEVX_OBJ,
                                             is_of_devx, number);
}

struct uverbs_obj *devx_find_cq(const struct devx_call *call, uint32_t cqn)
{
    return devx_find(call, cqn, UVERBS_OBJECT_CQ, devx_is_cq, devx_is_devx_cq);
}

static bool devx_is_srq(const struct uverbs_obj *obj, uint32_t number)
{
    return ((const struct uverbs_srq *)obj)->srq->obj.num == number;
}

static bool devx_is_rmp_or_xrq(const struct uverbs_obj *obj, uint32_t number)
{
    const struct devx_obj *devx = (const struct devx_obj *)obj;

    return ((devx->cmd->opcode == DEVX_OP_CREATE_RMP) ||
            (devx->cmd->opcode == DEVX_OP_CREATE_XRQ)) &&
           (devx->number == number);
}

struct uverbs_obj *devx_find_srq(const struct devx_call *call, uint32_t srqn)
{
    return devx_find(call, srqn, UVERBS_OBJECT_SRQ, devx_is_srq,
                     devx_is_rmp_or_xrq);
}

struct uverbs_pd *devx_find_pd(const struct devx_call *call, uint32_t pdn)
{
    const struct hca_pd *hw = hca_obj_peek(HCA_KIND_PD, pdn);
    struct uverbs_pd *pd    = NULL;
    int err;

    if (hw != NULL) {
        pd = uverbs_obj_find(call->ctx, UVERBS_OBJECT_PD, hw->obj.user_handle,
                             &err);
    }
    return ((pd != NULL) && (pd->hw == hw)) ? pd : NULL;
}
