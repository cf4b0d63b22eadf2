/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Access to UCP's internal structures, in any version of UCX; see ucp_inside.h.
 */
#include "ucp_inside.h"

#include <ucp/core/ucp_ep.h>
#include <ucp/core/ucp_request.h>
#include <ucp/core/ucp_worker.h>
#include <ucp/dt/dt_generic.h>
#include <uct/api/version.h>


_Static_assert((ucs_offsetof(ucp_dt_generic_t, context) ==
                ucs_offsetof(ucp_inside_generic_t, context)) &&
                   (ucs_offsetof(ucp_dt_generic_t, ops) ==
                    ucs_offsetof(ucp_inside_generic_t, ops)),
               "a generic type");
_Static_assert(ucs_offsetof(ucp_ep_t, worker) == 0, "an endpoint");
_Static_assert((ucs_offsetof(ucp_request_t, status) == 0) &&
                   (ucs_offsetof(ucp_request_t, flags) +
                        sizeof(((ucp_request_t *)NULL)->flags) <=
                    sizeof(uint64_t)),
               "the first word of a request");


/* --- endpoints ------------------------------------------------------------ */

static unsigned ucp_inside_ep_config(ucp_ep_h ep)
{
    return __atomic_load_n(&ep->cfg_index, __ATOMIC_RELAXED);
}


/* Returns the bytes of the longest short message that a line names, or 0. */
static size_t ucp_inside_read_short(const char *line)
{
    static const char before[] = "short>..";
    const char *at             = strstr(line, before);
    const char *range          = strstr(line, " 0..");

    if (at != NULL) {
        return strtoull(at + strlen(before), NULL, 10);
    }

    return ((range != NULL) && (strstr(range, "short ") != NULL)) ?
               strtoull(range + strlen(" 0.."), NULL, 10) :
               0;
}


/* Reads lines such as
 *   lane[0]:  0:dcx/mlx5_0:1.0 md[0] -> md[0]/dcx/sysdev[255] rma_bw#0 am
 *   tag_send: 0..<egr/short>..179..<egr/bcopy>..1201..<egr/zcopy>..17907..
 * or, with UCP's newer protocols, instead of the second
 *   |           0..179 | eager short               | dcx/mlx5_0:1     |
 */
static ucp_inside_ep_t ucp_inside_read_ep(char *text)
{
    ucp_inside_ep_t ep = {0};
    char *line;

    while ((line = strsep(&text, "\n")) != NULL) {
        ep.has_dcx |= (strstr(line, "lane[") != NULL) &&
                      (strstr(line, ":dcx/") != NULL) &&
                      (strstr(line, " rma_bw#") != NULL);
        ep.max_short = ucs_max(ep.max_short, ucp_inside_read_short(line));
    }
    return ep;
}


/* --- workers -------------------------------------------------------------- */

/* ucp_worker.h: UCP_WORKER_THREAD_CS_ENTER_CONDITIONAL() */
static void ucp_inside_worker_lock(ucp_worker_h worker)
{
    if (worker->flags & UCP_WORKER_FLAG_THREAD_MULTI) {
        UCS_ASYNC_BLOCK(&worker->async);
    }
}


static void ucp_inside_worker_unlock(ucp_worker_h worker)
{
    if (worker->flags & UCP_WORKER_FLAG_THREAD_MULTI) {
        UCS_ASYNC_UNBLOCK(&worker->async);
    }
}


/* Decrements the number, which tag/offload.c uses. UCP does not read it when
 * the interface is closed, with the worker. The member behind it is a queue,
 * which points to itself while it is empty, as in a new worker. If it does not,
 * the members are at other offsets. */
static int ucp_inside_worker_discount(ucp_worker_h worker)
{
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


/* Source: dt/datatype_iter.inl, since UCX 1.15 */
static int ucp_inside_has_typed_handles(void)
{
    return UCT_VERNO_MINOR >= 15;
}


const ucp_inside_ops_t ucp_inside_ops = {
    .ep_config         = ucp_inside_ep_config,
    .read_ep           = ucp_inside_read_ep,
    .worker_lock       = ucp_inside_worker_lock,
    .worker_unlock     = ucp_inside_worker_unlock,
    .worker_discount   = ucp_inside_worker_discount,
    .has_typed_handles = ucp_inside_has_typed_handles,
};
