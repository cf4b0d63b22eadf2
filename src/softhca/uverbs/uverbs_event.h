/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion channels, async event files, and event channels of DEVX.
 */
#ifndef UVERBS_EVENT_H
#define UVERBS_EVENT_H

#include "uverbs.h"

/* An event channel of any type. The program closes the descriptor without an
 * ioctl: then @fd no longer has the inode of the pipe. */
struct uverbs_event {
    struct uverbs_obj obj;
    int fd;
    uint64_t st_dev, st_ino;
    uint32_t chan;             /* number of its hca_chan */
    struct uverbs_event *next; /* in uverbs_ctx.events */
};

/* Returns the number of the channel; 0 for NULL. */
static inline uint32_t uverbs_chan(const struct uverbs_event *event)
{
    return (event != NULL) ? event->chan : 0;
}

/* Returns the async event file in attribute @id; if that was not given, the
 * newest of the context; NULL: there is none. */
struct uverbs_event *uverbs_async(struct uverbs_req *req, uint16_t id);

/* Handles a method that makes a channel of @type: puts its descriptor into
 * attribute @id. @return 0 or -errno. */
int uverbs_event_alloc(struct uverbs_req *req, uint16_t type, uint16_t id);

/* Makes a channel of @type. Releases unused ones that the program has closed.
 * @return 0 or -errno. */
int uverbs_event_new(struct uverbs_ctx *ctx, uint16_t type,
                     struct uverbs_event **eventp);

/* Undoes uverbs_event_new() and closes the descriptor, which did not reach the
 * program. */
void uverbs_event_undo(struct uverbs_event *event);

/* Releases a channel of any type; leaves @events unchanged. */
int uverbs_event_release(struct uverbs_obj *obj, struct uverbs_events *events);

/* Finds the channel of @type whose open descriptor is @fd. @return NULL, with
 * *err = -EBADF, if there is none. */
struct uverbs_event *uverbs_event_find(struct uverbs_ctx *ctx, uint16_t type,
                                       int64_t fd, int *err);

#endif
