/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Methods of event files; see uverbs_event.c. */
#include "uverbs_event.h"

/* Returns the newest async event file of the context; NULL: none. */
static struct uverbs_event *uverbs_async_default(struct uverbs_ctx *ctx)
{
    struct uverbs_event *event = ctx->events;

    while ((event != NULL) && (event->obj.type != UVERBS_OBJECT_ASYNC_EVENT)) {
        event = event->next;
    }
    return event;
}

struct uverbs_event *uverbs_async(struct uverbs_req *req, uint16_t id)
{
    return uverbs_has(req, id) ? uverbs_get_obj(req, id) :
                                 uverbs_async_default(req->ctx);
}

static const struct uverbs_attr_spec uverbs_async_alloc_attrs[] = {
    {UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0,
     0, 0},
};

int uverbs_event_alloc(struct uverbs_req *req, uint16_t type, uint16_t id)
{
    struct uverbs_event *event;
    int ret;

    ret = uverbs_event_new(req->ctx, type, &event);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_put_handle(req, id, event->fd);
    if (ret != 0) {
        uverbs_event_undo(event);
    }
    return ret;
}

static int uverbs_async_alloc(struct uverbs_req *req)
{
    return uverbs_event_alloc(req, UVERBS_OBJECT_ASYNC_EVENT,
                              UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
}

static int uverbs_create_comp_channel(struct uverbs_req *req)
{
    struct ib_uverbs_create_comp_channel_resp resp = {0};
    struct uverbs_event *event;
    int ret;

    ret = uverbs_event_new(req->ctx, UVERBS_OBJECT_COMP_CHANNEL, &event);
    if (ret != 0) {
        return ret;
    }
    resp.fd = event->fd;
    ret     = uverbs_core_out(req, &resp);
    if (ret != 0) {
        uverbs_event_undo(event);
    }
    return ret;
}

const struct uverbs_method uverbs_event_methods[] = {
    {.object  = UVERBS_OBJECT_ASYNC_EVENT,
     .id      = UVERBS_METHOD_ASYNC_EVENT_ALLOC,
     .name    = "alloc_async_fd",
     .handler = uverbs_async_alloc,
     UVERBS_ATTRS(uverbs_async_alloc_attrs)},
    {.handler = NULL},
};

const struct uverbs_write uverbs_event_writes[] = {
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "create_comp_channel",
     sizeof(struct ib_uverbs_create_comp_channel),
     sizeof(struct ib_uverbs_create_comp_channel_resp),
     uverbs_create_comp_channel},
    {.handler = NULL},
};
