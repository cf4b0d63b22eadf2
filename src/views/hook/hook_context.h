/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Contexts and workers of UCP that have views: the memory domains of a context,
 * and the workers that belong to it. A context without views reaches UCP
 * unchanged, unless UCP uses its newer protocols (@has_protocols), or would use
 * them if devices did not match tags.
 *
 * One lock protects the lists of both. No function of UCP or of the transport
 * is called while it is held. A worker is found, and removed, without the lock.
 */
#ifndef HOOK_CONTEXT_H
#define HOOK_CONTEXT_H

#include "views/ucp/hook_handle.h"

#include <stdatomic.h>
#include <ucp/api/ucp.h>

enum {
    HOOK_CONTEXT_MAX_MDS    = 64,
    HOOK_WORKER_MAX_CONFIGS = 256 /* usually more than a worker has */
};


typedef struct hook_context {
    struct hook_context *next;
    ucp_context_h context;
    void *mds[HOOK_CONTEXT_MAX_MDS];
    unsigned num_mds;
    int is_for_views;  /* its messages may use views */
    int is_any_peer;   /* a receive with a view works with any peer */
    int needs_handles; /* UCP requires a memory handle of each view */

    /* UCP uses its newer protocols (proto v2). If a peer without dcx announces
     * data, both sides agree on the fragments that copy it. UCP refuses memory
     * of a type that the context does not know, even if only the peer has such
     * memory: so every context has to know views. */
    int has_protocols;

    hook_handles_t handles;
} hook_context_t;


typedef struct hook_worker {
    struct hook_worker *next;
    _Atomic(ucp_worker_h) worker; /* NULL: destroyed, to be reused */
    uint64_t number;              /* unique in this process; never 0 */
    hook_context_t *context;

    /* properties of endpoints by index of their configuration (hook_ep.c) */
    atomic_size_t eps[HOOK_WORKER_MAX_CONFIGS];
} hook_worker_t;


extern atomic_int hook_context_any __attribute__((visibility("hidden")));

/* Returns 1 if there was ever a context that has views. */
static inline int hook_context_is_any(void)
{
    return atomic_load_explicit(&hook_context_any, memory_order_acquire);
}

/* Replace ucp_init_version(), ucp_cleanup() and ucp_worker_create(). */
ucs_status_t hook_context_create(unsigned major, unsigned minor,
                                 const ucp_params_t *params,
                                 const ucp_config_t *config,
                                 ucp_context_h *context_p);
void hook_context_destroy(ucp_context_h context);
ucs_status_t hook_worker_create(ucp_context_h context,
                                const ucp_worker_params_t *params,
                                ucp_worker_h *worker_p);

/* Returns the worker's record, which is never freed; NULL: it has no views. */
hook_worker_t *hook_worker_find(ucp_worker_h worker);

/* Forgets a worker that is about to be destroyed. Returns its number, 0 if it
 * has no views. */
uint64_t hook_worker_remove(ucp_worker_h worker);

#endif
