/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events of a device: changes of its ports and queues, which the
 * kernel reports (ibv_get_async_event(3)). Each is logged in one line and
 * acknowledged. Belongs to a memory domain, which has a context of its own, and
 * with it its own stream of events. Runs on UCX's async thread. Of an interface
 * it reads only the names and numbers of queues. An interface is notified of
 * errors in that thread, and acts on them in its own (iface/dcx_fatal.c).
 */
#ifndef UCT_DCX_ASYNC_H
#define UCT_DCX_ASYNC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
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


typedef struct uct_dcx_async {
    struct ibv_context *ctx;  /* NULL: no events are read */
    pthread_mutex_t lock;     /* held while an event is read and
                               * logged */
    ucs_list_link_t users;    /* uct_dcx_async_user_t */
    uint8_t is_down[256 / 8]; /* bits of ports that are down */
} uct_dcx_async_t;


/* Starts reading events of @ctx, and makes its descriptor non-blocking. Logs a
 * failure, and then reads none. This includes a process whose parent has read
 * events before fork(). */
void uct_dcx_async_init(uct_dcx_async_t *async, struct ibv_context *ctx);

/* Add and remove a receiver of errors; it is not called any longer when the
 * second returns. Do nothing if no events are read. */
void uct_dcx_async_add(uct_dcx_async_t *async, uct_dcx_async_user_t *user);
void uct_dcx_async_remove(uct_dcx_async_t *async, uct_dcx_async_user_t *user);

/* Stops reading events: none is being read, and none will be, when it returns.
 * The descriptor must not be closed before. Does nothing if async->ctx is
 * NULL. */
void uct_dcx_async_cleanup(uct_dcx_async_t *async);

#endif
