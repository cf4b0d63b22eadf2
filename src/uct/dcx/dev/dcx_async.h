/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Asynchronous events of a device: what happens to its ports and queues,
 * reported by the kernel unasked (ibv_get_async_event(3)). Each is logged in
 * one line and acknowledged. Belongs to a memory domain, which has a context,
 * and with it a stream of events, of its own. Read on UCX's async thread;
 * nothing that an interface owns is looked at.
 */
#ifndef UCT_DCX_ASYNC_H
#define UCT_DCX_ASYNC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>


typedef struct uct_dcx_async {
    struct ibv_context *ctx;         /* NULL: no events are read */
    pthread_mutex_t    lock;         /* while an event is read and logged */
    uint8_t            is_down[256 / 8]; /* ports, a bit for each */
} uct_dcx_async_t;


/* Begins to read events of 'ctx', whose descriptor no longer blocks then. Where
 * that cannot be done it is logged, and the domain goes without; so does, in
 * silence, a child that was forked by a process that reads events. */
void uct_dcx_async_init(uct_dcx_async_t *async, struct ibv_context *ctx);

/* No event is being read, and none will be, when it returns. Before that, the
 * descriptor must not be closed. Does nothing if 'async' is zero: the user
 * did not want events. */
void uct_dcx_async_cleanup(uct_dcx_async_t *async);

#endif
