/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The border to UCP: all knowledge of its internal structures, each with its
 * source in UCX's tree. The inline functions are for the loader, which has only
 * public headers of UCX. ucp_inside.c includes UCX's internal headers and
 * compares these structures with them. That file is part of libuct_dcx.so,
 * which is opened only with the UCX that dcx was built with; the loader reaches
 * its functions through the table of views (dcx_view_ops.h).
 */
#ifndef UCP_INSIDE_H
#define UCP_INSIDE_H

#include <stdint.h>
#include <string.h>
#include <ucp/api/ucp.h>


/* --- structures ----------------------------------------------------------- */

/* A generic data type: ucp/dt/dt_generic.h, ucp_dt_generic_t */
typedef struct ucp_inside_generic {
    void *context;
    ucp_generic_dt_ops_t ops;
} ucp_inside_generic_t;


/* Returns the data type that a handle of the class UCP_DATATYPE_GENERIC points
 * to: the class is in the low bits (dt_generic.h, ucp_dt_to_generic()). */
static inline ucp_inside_generic_t *ucp_inside_generic(ucp_datatype_t datatype)
{
    return (ucp_inside_generic_t *)(datatype & ~UCP_DATATYPE_CLASS_MASK);
}


/* Returns the worker, the first member of an endpoint: ucp/core/ucp_ep.h,
 * ucp_ep_t */
static inline ucp_worker_h ucp_inside_worker(ucp_ep_h ep)
{
    return *(ucp_worker_h *)ep;
}


/* Returns the first word of a request, with its status and flags, @size bytes
 * before its handle: ucp/core/ucp_request.h, struct ucp_request. Another thread
 * may poll them. */
static inline uint64_t *ucp_inside_request_word(void *request, size_t size)
{
    return (uint64_t *)((char *)request - size);
}


/* Initializes a request: it is not completed, and has no flags. */
static inline void ucp_inside_request_init(void *request, size_t size)
{
    __atomic_store_n(ucp_inside_request_word(request, size), 0,
                     __ATOMIC_RELAXED);
}


/* Copies the @size bytes of UCP before @from to a request, the first word
 * last. */
static inline void ucp_inside_request_copy(void *request, void *from,
                                           size_t size)
{
    uint64_t *to   = ucp_inside_request_word(request, size);
    uint64_t *word = ucp_inside_request_word(from, size);

    memcpy(to + 1, word + 1, size - sizeof(*word));
    __atomic_store_n(to, __atomic_load_n(word, __ATOMIC_RELAXED),
                     __ATOMIC_RELEASE);
}


/* --- functions ------------------------------------------------------------ */

/* Properties of an endpoint, as ucp_ep_print_info() prints them */
typedef struct ucp_inside_ep {
    int has_dcx;      /* it has a lane of dcx for RDMA */
    size_t max_short; /* bytes of the longest message that UCP may copy inline,
                       * from memory of any type */
} ucp_inside_ep_t;

typedef struct ucp_inside_ops {
    /* Returns the index of an endpoint's configuration. Any thread may call
     * it. */
    unsigned (*ep_config)(ucp_ep_h ep);

    /* Parses the text of ucp_ep_print_info(), and modifies it. */
    ucp_inside_ep_t (*read_ep)(char *text);

    /* Take and release the worker's lock, as UCP's functions do, if several
     * threads may call the worker. A thread may have the lock already. */
    void (*worker_lock)(ucp_worker_h worker);
    void (*worker_unlock)(ucp_worker_h worker);

    /* Subtracts the interface of the copy transport, which gets no messages,
     * from the number of active interfaces of a new worker. With more than one,
     * UCP lets the device match tags only of senders from which it has had
     * messages. Returns 0, and leaves the worker as it is, if its members are
     * not at the offsets that dcx was built with. */
    int (*worker_discount)(ucp_worker_h worker);

    /* Returns 1 if UCP reads the type of memory from the memory handle that a
     * call passes: since UCX 1.15. With newer protocols (UCX_PROTO_ENABLE=y),
     * UCP then reads it from nothing else. */
    int (*has_typed_handles)(void);
} ucp_inside_ops_t;


extern const ucp_inside_ops_t ucp_inside_ops;

#endif
