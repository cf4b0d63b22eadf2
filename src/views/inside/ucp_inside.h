/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The border to UCP: all that is known of its own structures, each with its
 * source in UCX's tree. The functions below are for the loader, which has
 * public headers of UCX alone; ucp_inside.c has UCX's own headers, compares
 * these structures with them, and its functions are reached by the table of
 * views: it is compiled into libuct_dcx.so, which is opened only where UCX is
 * the one that dcx was built with.
 */
#ifndef UCP_INSIDE_H
#define UCP_INSIDE_H

#include <stdint.h>
#include <string.h>
#include <ucp/api/ucp.h>


/* --- structures ----------------------------------------------------------- */

/* A generic data type: ucp/dt/dt_generic.h, ucp_dt_generic_t */
typedef struct ucp_inside_generic {
    void                 *context;
    ucp_generic_dt_ops_t ops;
} ucp_inside_generic_t;


/* Returns the data type that a handle of the class UCP_DATATYPE_GENERIC points
 * to: the class is in the low bits (dt_generic.h, ucp_dt_to_generic()). */
static inline ucp_inside_generic_t *
ucp_inside_generic(ucp_datatype_t datatype)
{
    return (ucp_inside_generic_t*)(datatype & ~UCP_DATATYPE_CLASS_MASK);
}


/* An endpoint begins with its worker: ucp/core/ucp_ep.h, ucp_ep_t */
static inline ucp_worker_h ucp_inside_worker(ucp_ep_h ep)
{
    return *(ucp_worker_h*)ep;
}


/* A request begins @size bytes before its handle, by its status and its
 * flags: ucp/core/ucp_request.h, struct ucp_request. Another thread waits
 * for these. */
static inline uint64_t *ucp_inside_request_word(void *request, size_t size)
{
    return (uint64_t*)((char*)request - size);
}


/* Makes a request one that is neither completed nor anything else. */
static inline void ucp_inside_request_init(void *request, size_t size)
{
    __atomic_store_n(ucp_inside_request_word(request, size), 0,
                     __ATOMIC_RELAXED);
}


/* Makes a request what @from is, its first word last. */
static inline void
ucp_inside_request_copy(void *request, void *from, size_t size)
{
    uint64_t *to   = ucp_inside_request_word(request, size);
    uint64_t *word = ucp_inside_request_word(from, size);

    memcpy(to + 1, word + 1, size - sizeof(*word));
    __atomic_store_n(to, __atomic_load_n(word, __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
}


/* --- functions ------------------------------------------------------------ */

/* What ucp_ep_print_info() tells of an endpoint */
typedef struct ucp_inside_ep {
    int    has_dcx;   /* a lane of dcx, for RDMA */
    size_t max_short; /* bytes that UCP sends from the CPU, of any memory */
} ucp_inside_ep_t;

typedef struct ucp_inside_ops {
    /* Returns the index of an endpoint's configuration; by any thread. */
    unsigned        (*ep_config)(ucp_ep_h ep);

    /* Reads the text of ucp_ep_print_info(), which is changed. */
    ucp_inside_ep_t (*read_ep)(char *text);

    /* Take and release the lock that UCP's functions take of a worker, if any
     * thread may call it. A thread may have the lock already. */
    void            (*worker_lock)(ucp_worker_h worker);
    void            (*worker_unlock)(ucp_worker_h worker);

    /* Takes an interface that gets no messages off those that UCP counts as
     * active of a new worker: of more than one, UCP has the device match
     * tags only of senders that it has had messages of. Returns 0, and
     * leaves the worker as it is, if that has not the members it had where
     * dcx was built. */
    int             (*worker_discount)(ucp_worker_h worker);

    /* Returns 1 if UCP takes the type of memory from the handle that it is
     * given, and from nothing else with its newer protocols
     * (UCX_PROTO_ENABLE=y). */
    int             (*has_typed_handles)(void);
} ucp_inside_ops_t;


extern const ucp_inside_ops_t ucp_inside_ops;

#endif
