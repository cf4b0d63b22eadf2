/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion channels and async event files.
 */
#ifndef UVERBS_EVENT_H
#define UVERBS_EVENT_H

#include "uverbs.h"

/* A completion channel or an async event file. The program closes its
 * descriptor without an ioctl; the inode shows that. */
struct uverbs_event {
    struct uverbs_obj obj;
    int fd;
    uint64_t st_dev, st_ino;
    uint32_t chan;             /* HCA_KIND_CHAN */
    struct uverbs_event *next; /* of the context */
};

static inline uint32_t uverbs_chan(const struct uverbs_event *event)
{
    return (event != NULL) ? event->chan : 0;
}

/* Returns the async event file given in attribute @id, or the context's own. */
struct uverbs_event *uverbs_async(struct uverbs_req *req, uint16_t id);

/* Handler of a method that makes a channel and answers with its descriptor in
 * attribute @id. */
int uverbs_event_alloc(struct uverbs_req *req, uint16_t type, uint16_t id);

/* Makes a channel. @return 0 or -errno. */
int uverbs_event_new(struct uverbs_ctx *ctx, uint16_t type,
                     struct uverbs_event **eventp);

/* Undoes uverbs_event_new(): the answer did not reach the program, which will
 * not close the descriptor. */
void uverbs_event_undo(struct uverbs_event *event);

/* Releases a channel, of any type. */
void uverbs_event_release(struct uverbs_obj *obj, struct uverbs_events *events);

/* Finds the channel of a descriptor. @return NULL with *err = -EBADF. */
struct uverbs_event *uverbs_event_find(struct uverbs_ctx *ctx, uint16_t type,
                                       int64_t fd, int *err);

#endif
