/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What is to be known of an endpoint before a view is sent by it, as UCP itself
 * tells: read once, forgotten when the endpoint is closed.
 */
#ifndef HOOK_EP_H
#define HOOK_EP_H

#include "hook_context.h"


typedef struct hook_ep {
    ucp_ep_h ep;
    int has_dcx;      /* for RDMA */
    size_t max_short; /* what UCP sends from the CPU, of whatever memory */
} hook_ep_t;


/* The worker of an endpoint, NULL: it has no views */
hook_worker_t *hook_ep_worker(ucp_ep_h ep);

hook_ep_t hook_ep_get(hook_worker_t *worker, ucp_ep_h ep);

/* It is about to be closed. */
void hook_ep_forget(ucp_ep_h ep);

/* The worker's are closed. */
void hook_ep_forget_all(hook_worker_t *worker);

#endif
