/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCP's memory handles of views: its newer protocols (proto v2) take the type
 * of memory from nothing else. A view's range of addresses is mapped once in
 * each context, and again when a longer message comes. The transport's handle
 * of the range stays the same for all data that the view gets
 * (mem/dcx_mem_place.h).
 */
#ifndef HOOK_HANDLE_H
#define HOOK_HANDLE_H

#include "views/view/dcx_view_ops.h"

#include <ucp/api/ucp.h>


typedef struct hook_handle {
    ucp_mem_h memh; /* NULL: not mapped yet */
    size_t length;  /* bytes that @memh maps */
} hook_handle_t;


/* The handles of a context, initially zeroes. Most of them are never used, so
 * most pages of the array are never touched. */
typedef struct hook_handles {
    hook_handle_t handles[UCT_DCX_VIEW_OPS_MAX];
} hook_handles_t;


/* Returns the handle of an open view, valid until the view is closed; NULL: UCP
 * cannot map it. Takes the lock of @worker, a worker of the context, to map.
 * Called by the thread that has opened the view. */
ucp_mem_h hook_handle_get(hook_handles_t *handles, ucp_context_h context,
                          ucp_worker_h worker, const uct_dcx_view_t *view);

/* Unmaps all handles. No view of the context may be open. */
void hook_handles_release(hook_handles_t *handles, ucp_context_h context);

#endif
