/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Events of DEVX objects. For each event the program reads from a channel the
 * cookie of the subscription, and nothing else: only channels with OMIT_DATA
 * are supported. An object has at most one subscription, to any event types.
 */
#define _GNU_SOURCE
#include "devx.h"
#include "softhca/obj/hca_async.h"
#include "softhca/uverbs/uverbs_event.h"

#include <errno.h>

#define DEVX_MAX_EVENTS 16u /* types in one call, as in the kernel */

static const struct uverbs_attr_spec devx_event_fd_attrs[] = {
    {MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, UVERBS_NEW,
     UVERBS_MANDATORY, 0, 0, 0},
    {MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, UVERBS_IN, UVERBS_MANDATORY,
     4, 8, 0},
};

static int devx_event_fd_alloc(struct uverbs_req *req)
{
    uint64_t flags =
        uverbs_get_const(req, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);

    if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA) {
        return -EINVAL;
    }
    if (flags == 0) {
        return -EOPNOTSUPP; /* reads would return the EQE, too */
    }
    return uverbs_event_alloc(req, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
                              MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE);
}

const struct uverbs_type devx_event_type = {
    MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
    "devx event files",
    .release   = uverbs_event_release,
    .is_closed = true,
};

static const struct uverbs_attr_spec devx_subscribe_attrs[] = {
    {MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, UVERBS_FD, UVERBS_MANDATORY,
     0, 0, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD},
    {MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, UVERBS_IDR, 0, 0, 0,
     MLX5_IB_OBJECT_DEVX_OBJ},
    {MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, UVERBS_IN,
     UVERBS_MANDATORY, 2, DEVX_MAX_EVENTS * 2, 0},
    {MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, UVERBS_IN, 0, 8, 8, 0},
};

/* Event types that may be subscribed to with an object and without one (the
 * kernel's is_legacy_obj_event_num(), is_legacy_unaffiliated_event_num()); the
 * latter is PORT_CHANGE. */
#define DEVX_EVENTS_OBJ \
    (HCA_EQE_BIT(0x00) | HCA_EQE_BIT(0x01) | HCA_EQE_BIT(0x02) | \
     HCA_EQE_BIT(0x03) | HCA_EQE_BIT(HCA_EQE_CQ_ERROR) | \
     HCA_EQE_BIT(HCA_EQE_WQ_CATAS) | HCA_EQE_BIT(0x07) | \
     HCA_EQE_BIT(HCA_EQE_WQ_INVAL) | HCA_EQE_BIT(HCA_EQE_WQ_ACCESS) | \
     HCA_EQE_BIT(HCA_EQE_SRQ_CATAS) | HCA_EQE_BIT(HCA_EQE_SRQ_LAST_WQE) | \
     HCA_EQE_BIT(HCA_EQE_SRQ_LIMIT) | HCA_EQE_BIT(HCA_EQE_XRQ_ERROR) | \
     HCA_EQE_BIT(0x1c) | HCA_EQE_BIT(0x1d))
#define DEVX_EVENTS_PORT HCA_EQE_BIT(0x09)

static int devx_event_mask(struct uverbs_req *req, uint64_t *mask)
{
    const uint16_t id = MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST;
    unsigned num      = uverbs_len(req, id) / 2;
    uint64_t allowed;
    uint16_t types[DEVX_MAX_EVENTS];
    int ret;

    allowed = uverbs_has(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE) ?
                  DEVX_EVENTS_OBJ :
                  DEVX_EVENTS_PORT;
    ret     = uverbs_get(req, id, types, sizeof(types));
    if (ret != 0) {
        return ret;
    }
    *mask = 0;
    for (unsigned i = 0; i < num; i++) {
        if ((types[i] >= 64) || !(allowed & HCA_EQE_BIT(types[i]))) {
            return -EINVAL;
        }
        *mask |= HCA_EQE_BIT(types[i]);
    }
    return 0;
}

/* Subscribes to the events of an object. Without one (events of the port), the
 * subscription is accepted but never fires. */
static int devx_subscribe(struct uverbs_req *req)
{
    struct devx_obj *obj =
        uverbs_get_obj(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
    struct uverbs_event *event =
        uverbs_get_obj(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
    struct hca_subscription subscription = {
        .chan   = event->chan,
        .cookie = uverbs_get_const(req,
                                   MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE),
    };
    int ret;

    ret = devx_event_mask(req, &subscription.mask);
    if ((ret != 0) || (obj == NULL)) {
        return ret;
    }
    ret = hca_async_subscribe(obj->hw, &subscription);
    if (ret == 0) {
        devx_obj_hold(obj, &event->obj);
    }
    return ret;
}

const struct uverbs_method devx_event_methods[] = {
    {.object  = MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD,
     .id      = MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
     .name    = "devx_alloc_event_fd",
     .handler = devx_event_fd_alloc,
     UVERBS_ATTRS(devx_event_fd_attrs)},
    {.object  = MLX5_IB_OBJECT_DEVX,
     .id      = MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT,
     .name    = "devx_subscribe_event",
     .handler = devx_subscribe,
     UVERBS_ATTRS(devx_subscribe_attrs)},
    {.handler = NULL},
};
