/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Contexts and workers of UCP that have views: what the device domains of a
 * context are, and which workers are of it. Others are not known here, and all
 * that they do goes by untouched.
 *
 * One lock of their own, under which nothing is called; a worker is found
 * without it.
 */
#ifndef HOOK_CONTEXT_H
#define HOOK_CONTEXT_H

#include "views/ucp/hook_handle.h"

#include <stdatomic.h>
#include <ucp/api/ucp.h>

enum {
    HOOK_CONTEXT_MAX_MDS    = 64,
    HOOK_WORKER_MAX_CONFIGS = 256 /* more than there are as a rule */
};


typedef struct hook_context {
    struct hook_context *next;
    ucp_context_h context;
    void *mds[HOOK_CONTEXT_MAX_MDS];
    unsigned num_mds;
    int is_for_views;
    int is_any_peer;   /* a receive by view takes whatever may come */
    int needs_handles; /* UCP wants one of each view */

    /* UCP goes by its newer protocols (proto v2). They copy what peers without
     * dcx announce by fragments that both sides agree on, and find no way to or
     * from memory of a type that they do not know, even if it is the peer's:
     * then all contexts know views. */
    int has_protocols;

    hook_handles_t handles;
} hook_context_t;


typedef struct hook_worker {
    struct hook_worker *next;
    _Atomic(ucp_worker_h) worker; /* NULL: it is no more */
    hook_context_t *context;

    /* what hook_ep.c keeps of each configuration of endpoints */
    atomic_size_t eps[HOOK_WORKER_MAX_CONFIGS];
} hook_worker_t;


extern atomic_int hook_context_any __attribute__((visibility("hidden")));

/* Whether there is a context that has views. Never becomes false again. */
static inline int hook_context_is_any(void)
{
    return atomic_load_explicit(&hook_context_any, memory_order_acquire);
}

/* As UCP's functions of these names */
ucs_status_t hook_context_create(unsigned major, unsigned minor,
                                 const ucp_params_t *params,
                                 const ucp_config_t *config,
                                 ucp_context_h *context_p);
void hook_context_destroy(ucp_context_h context);
ucs_status_t hook_worker_create(ucp_context_h context,
                                const ucp_worker_params_t *params,
                                ucp_worker_h *worker_p);

/* NULL: it has no views */
hook_worker_t *hook_worker_find(ucp_worker_h worker);

/* Forgets a worker that is about to be destroyed. Returns 0 if it has no
 * views. */
int hook_worker_remove(ucp_worker_h worker);

#endif
