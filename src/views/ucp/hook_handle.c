/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_handle.h"
#include "hook_real.h"
#include "hook_views.h"

static void hook_handle_unmap(hook_handle_t *handle, ucp_context_h context)
{
    if (handle->memh != NULL) {
        hook_real.ucp_mem_unmap(context, handle->memh);
        handle->memh = NULL;
    }
}

static void hook_handle_map(hook_handle_t *handle, ucp_context_h context,
                            const uct_dcx_view_t *view)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
        .address     = (void *)view->address,
        .length      = 1,
        .memory_type = (ucs_memory_type_t)view->memory_type};

    while (params.length < view->length) {
        params.length *= 2; /* powers of two: few views are mapped again */
    }

    if (hook_real.ucp_mem_map(context, &params, &handle->memh) == UCS_OK) {
        handle->length = params.length;
    } else {
        handle->memh = NULL;
    }
}

/* Maps the view with the worker's lock held: a context that is not made for
 * several threads (mt_workers_shared) has no lock of its own, and UCP uses its
 * registration cache with only the lock of a worker. */
ucp_mem_h hook_handle_get(hook_handles_t *handles, ucp_context_h context,
                          ucp_worker_h worker, const uct_dcx_view_t *view)
{
    hook_handle_t *handle = &handles->handles[view->index];

    if ((handle->memh == NULL) || (handle->length < view->length)) {
        hook_views()->ucp->worker_lock(worker);
        hook_handle_unmap(handle, context);
        hook_handle_map(handle, context, view);
        hook_views()->ucp->worker_unlock(worker);
    }

    return handle->memh;
}

void hook_handles_release(hook_handles_t *handles, ucp_context_h context)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_VIEW_OPS_MAX; ++i) {
        hook_handle_unmap(&handles->handles[i], context);
    }
}
