/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCP's insides; see ucp_inside.h.
 */
#include "ucp_inside.h"

#include <ucp/core/ucp_ep.h>
#include <ucp/core/ucp_worker.h>
#include <uct/api/version.h>


unsigned ucp_inside_ep_config(const void *ucp_ep)
{
    return __atomic_load_n(&((const ucp_ep_t*)ucp_ep)->cfg_index,
                           __ATOMIC_RELAXED);
}


/* ucp_worker.h: UCP_WORKER_THREAD_CS_ENTER_CONDITIONAL() */
void ucp_inside_worker_lock(void *ucp_worker)
{
    ucp_worker_h worker = ucp_worker;

    if (worker->flags & UCP_WORKER_FLAG_THREAD_MULTI) {
        UCS_ASYNC_BLOCK(&worker->async);
    }
}


void ucp_inside_worker_unlock(void *ucp_worker)
{
    ucp_worker_h worker = ucp_worker;

    if (worker->flags & UCP_WORKER_FLAG_THREAD_MULTI) {
        UCS_ASYNC_UNBLOCK(&worker->async);
    }
}


/* tag/offload.c: what the number is for. It is not looked at where the
 * interface ends, with the worker. Behind it is a queue, which points to itself
 * while it is empty, as in a new worker: where it does not, the members are in
 * other places. */
int ucp_inside_worker_discount(void *ucp_worker)
{
    ucp_worker_h worker = ucp_worker;

    if (!ucs_queue_is_empty(&worker->rkey_ptr_reqs)) {
        return 0;
    }

    UCS_ASYNC_BLOCK(&worker->async);
    if (worker->num_active_ifaces > 0) {
        --worker->num_active_ifaces;
    }
    UCS_ASYNC_UNBLOCK(&worker->async);
    return 1;
}


/* dt/datatype_iter.inl, of 1.15 on */
int ucp_inside_has_typed_handles(void)
{
    return UCT_VERNO_MINOR >= 15;
}
