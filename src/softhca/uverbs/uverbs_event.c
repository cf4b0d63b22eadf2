/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Event files: completion channels, async event files, and those of DEVX. Each
 * is a pipe of this process (hca_chan.c), with the records that the kernel
 * would return. The program closes it without an ioctl: creating the next event
 * file releases those whose descriptor no longer is the pipe.
 */
#define _GNU_SOURCE
#include "uverbs_event.h"
#include "softhca/base/hca_sys.h"
#include "softhca/fabric/hca_chan.h"
#include "uverbs.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns true if the descriptor still is the pipe. */
static bool uverbs_event_alive(const struct uverbs_event *event)
{
    struct stat st;

    return (hca_sys()->fstat(event->fd, &st) == 0) &&
           (st.st_dev == event->st_dev) && (st.st_ino == event->st_ino);
}

struct uverbs_event *uverbs_event_find(struct uverbs_ctx *ctx, uint16_t type,
                                       int64_t fd, int *err)
{
    struct uverbs_event *event = ctx->events;

    while ((event != NULL) && ((event->obj.type != type) || (event->fd != fd) ||
                               !uverbs_event_alive(event))) {
        event = event->next;
    }
    if (event == NULL) {
        *err = -EBADF;
    }
    return event;
}

static void uverbs_event_sweep(struct uverbs_ctx *ctx)
{
    struct uverbs_event *event, *next;

    for (event = ctx->events; event != NULL; event = next) {
        next = event->next;
        if (!uverbs_event_alive(event)) {
            uverbs_obj_destroy(&event->obj, NULL); /* unless it has users */
        }
    }
}

int uverbs_event_new(struct uverbs_ctx *ctx, uint16_t type,
                     struct uverbs_event **eventp)
{
    struct uverbs_event *event;
    struct stat st;
    int64_t chan;
    int ret;

    uverbs_event_sweep(ctx);
    ret = uverbs_obj_new(ctx, type, sizeof(*event), &event);
    if (ret != 0) {
        return ret;
    }
    chan = hca_chan_create(ctx->dev, type == UVERBS_OBJECT_ASYNC_EVENT,
                           &event->fd);
    if (chan < 0) {
        uverbs_obj_delete(&event->obj);
        return chan;
    }

    event->chan = chan;
    hca_sys()->fstat(event->fd, &st);
    event->st_dev = st.st_dev;
    event->st_ino = st.st_ino;
    event->next   = ctx->events;
    ctx->events   = event;
    *eventp       = event;
    return 0;
}

void uverbs_event_undo(struct uverbs_event *event)
{
    syscall(SYS_close, event->fd); /* no cancellation point */
    uverbs_obj_destroy(&event->obj, NULL);
}

int uverbs_event_release(struct uverbs_obj *obj, struct uverbs_events *events)
{
    struct uverbs_event *event = (struct uverbs_event *)obj;
    struct uverbs_event **link = &obj->ctx->events;

    (void)events;
    while (*link != event) {
        link = &(*link)->next;
    }
    *link = event->next;
    hca_chan_destroy(event->chan);
    return 0;
}

const struct uverbs_type uverbs_event_type = {
    UVERBS_OBJECT_COMP_CHANNEL,
    "completion channels",
    .release   = uverbs_event_release,
    .is_closed = true,
};

const struct uverbs_type uverbs_async_type = {
    UVERBS_OBJECT_ASYNC_EVENT,
    "async event files",
    .release   = uverbs_event_release,
    .is_closed = true,
};
