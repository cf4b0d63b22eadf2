/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events of a device: changes of its ports and queues, which the
 * kernel reports (ibv_get_async_event(3)). Each is logged in one line and
 * acknowledged. Belongs to a memory domain, which has a context of its own, and
 * with it its own stream of events. Runs on UCX's async thread. Of an interface
 * it reads only the names and numbers of queues.
 */
#ifndef UCT_DCX_ASYNC_H
#define UCT_DCX_ASYNC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>


typedef struct uct_dcx_async {
    struct ibv_context *ctx;  /* NULL: no events are read */
    pthread_mutex_t lock;     /* held while an event is read and
                               * logged */
    uint8_t is_down[256 / 8]; /* bits of ports that are down */
} uct_dcx_async_t;


/* Starts reading events of @ctx, and makes its descriptor non-blocking. Logs a
 * failure, and then reads none. This includes a process whose parent has read
 * events before fork(). */
void uct_dcx_async_init(uct_dcx_async_t *async, struct ibv_context *ctx);

/* Stops reading events: none is being read, and none will be, when it returns.
 * The descriptor must not be closed before. Does nothing if async->ctx is
 * NULL. */
void uct_dcx_async_cleanup(uct_dcx_async_t *async);

#endif
