/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events of a device: changes of its ports and queues, which the
 * kernel reports (ibv_get_async_event(3)), and errors of objects by DEVX, which
 * it reports on a channel of their own (mlx5dv_devx_create_event_channel(3)).
 * Each is logged in one line and acknowledged. Belongs to a memory domain,
 * which has a context of its own, and with it its own streams of events. Runs
 * on UCX's async thread, which marks a queue that has failed. The owner of the
 * queue finds the mark in its own thread; an interface is notified
 * (iface/dcx_fatal.c).
 */
#ifndef UCT_DCX_ASYNC_H
#define UCT_DCX_ASYNC_H

#include "dcx_devx.h"

#include <pthread.h>
#include <ucs/datastruct/list.h>


typedef struct uct_dcx_async_user uct_dcx_async_user_t;

/* Called for each event that says that a queue or the device has stopped, with
 * async->lock held. The end of the events is a DEVICE_FATAL. */
typedef void (*uct_dcx_async_fatal_t)(uct_dcx_async_user_t *user,
                                      const struct ibv_async_event *event);

/* A receiver of errors; the caller sets @fatal. */
struct uct_dcx_async_user {
    ucs_list_link_t list;
    uct_dcx_async_fatal_t fatal;
};


/* An object by DEVX whose error is reported */
typedef struct uct_dcx_async_watch {
    ucs_list_link_t list;
    const uct_dcx_devx_obj_t *obj; /* NULL: not watched */
    enum ibv_event_type type;      /* the event of verbs with this meaning */
    uint64_t cookie;
    int has_failed; /* set by the thread of events */
} uct_dcx_async_watch_t;


typedef struct uct_dcx_async {
    struct ibv_context *ctx;  /* NULL: no events are read */
    pthread_mutex_t lock;     /* held while an event is read and
                                * logged */
    ucs_list_link_t users;    /* uct_dcx_async_user_t */
    uint8_t is_down[256 / 8]; /* bits of ports that are down */
    ucs_list_link_t watches;  /* uct_dcx_async_watch_t */
    uint64_t num_watches;     /* counts all, for cookies */
    struct mlx5dv_devx_event_channel *channel; /* NULL: none yet */
} uct_dcx_async_t;


/* Starts reading events of @ctx, and makes its descriptor non-blocking. Logs a
 * failure, and then reads none. This includes a process whose parent has read
 * events before fork(). */
void uct_dcx_async_init(uct_dcx_async_t *async, struct ibv_context *ctx);

/* Add and remove a receiver of errors; it is not called any longer when the
 * second returns. Do nothing if no events are read. */
void uct_dcx_async_add(uct_dcx_async_t *async, uct_dcx_async_user_t *user);
void uct_dcx_async_remove(uct_dcx_async_t *async, uct_dcx_async_user_t *user);

/* Start and stop reporting the error of @obj: a QP (@type is
 * IBV_EVENT_QP_FATAL) or an XRQ (IBV_EVENT_SRQ_ERR). If the device cannot
 * report it, log that with level diag. Stopped before @obj is destroyed. */
void uct_dcx_async_watch_obj(uct_dcx_async_t *async,
                             uct_dcx_async_watch_t *watch,
                             const uct_dcx_devx_obj_t *obj,
                             enum ibv_event_type type);
void uct_dcx_async_unwatch_obj(uct_dcx_async_t *async,
                               uct_dcx_async_watch_t *watch);

/* Marks a queue as failed, tells if it is, and takes the mark away; used by
 * different threads. */
static inline void uct_dcx_async_mark(int *has_failed)
{
    __atomic_store_n(has_failed, 1, __ATOMIC_RELAXED);
}

static inline int uct_dcx_async_is_marked(const int *has_failed)
{
    return __atomic_load_n(has_failed, __ATOMIC_RELAXED);
}

static inline void uct_dcx_async_unmark(int *has_failed)
{
    __atomic_store_n(has_failed, 0, __ATOMIC_RELAXED);
}

/* Stops reading events: none is being read, and none will be, when it returns.
 * The descriptor must not be closed before. Does nothing if async->ctx is
 * NULL. */
void uct_dcx_async_cleanup(uct_dcx_async_t *async);

#endif
