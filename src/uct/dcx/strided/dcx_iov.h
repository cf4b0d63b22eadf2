/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces of registered memory in UCT's operations: uct_iov_t. Most are plain,
 * one piece each, and an operation posts them as they are. Entries with blocks
 * (@count and @stride), and more entries than a WQE takes, are converted to a
 * layout (dcx_sgl.h). Pure code: nothing is posted here.
 */
#ifndef UCT_DCX_IOV_H
#define UCT_DCX_IOV_H

#include "dcx_sgl.h"
#include "uct/dcx/mem/dcx_mem.h"


enum {
    /* maximum of entries of an operation */
    UCT_DCX_IOV_MAX = 1024,

    /* Maximum of entries that the attributes report for messages. UCP allocates
     * as many on its stack, and aborts from 30 on (ucs_alloca() in
     * proto_am.inl). For puts and gets it uses at most 16 anyway
     * (UCP_MAX_IOV). */
    UCT_DCX_IOV_ANNOUNCED = 16
};


/* Returns 1 for an entry without bytes, which needs no handle. */
static inline int uct_dcx_iov_is_empty(const uct_iov_t *iov)
{
    return (iov->count == 0) || (iov->length == 0);
}


/* uct_dcx_iov_is_plain() of several entries */
static UCS_F_ALWAYS_INLINE int uct_dcx_iov_are_plain(const uct_iov_t *iov,
                                                     size_t iovcnt, size_t max,
                                                     size_t *length_p)
{
    const uct_iov_t *end = iov + iovcnt;

    *length_p = 0;
    if (iovcnt > max) {
        return 0;
    }

    for (; iov < end; ++iov) {
        if (iov->count != 1) {
            return 0;
        }
        *length_p += iov->length;
    }
    return 1;
}


/* Returns 1 if each entry is one piece, and @iovcnt is at most @max, which is
 * at least one. Then stores the bytes of all in @length_p. */
static UCS_F_ALWAYS_INLINE int uct_dcx_iov_is_plain(const uct_iov_t *iov,
                                                    size_t iovcnt, size_t max,
                                                    size_t *length_p)
{
    if (ucs_likely(iovcnt == 1)) {
        *length_p = iov->length;
        return iov->count == 1;
    }
    return uct_dcx_iov_are_plain(iov, iovcnt, max, length_p);
}


/* Pins the memory of the entries that is registered on demand. Logs errors. */
ucs_status_t uct_dcx_iov_pin(const uct_iov_t *iov, size_t iovcnt);


/* The memory of entries */
typedef struct uct_dcx_iov_memory {
    unsigned depth; /* deepest nesting of layouts; 0: all addresses are virtual,
                     * otherwise some are in the space of a strided mkey */
    int is_pinned;  /* all of it */
    int is_device;  /* some of it is device memory; layouts are not searched,
                     * as they are never copied */
} uct_dcx_iov_memory_t;

/* Returns 1 if some memory of the entries is device memory, also by layouts. */
int uct_dcx_iov_is_device(const uct_iov_t *iov, size_t iovcnt);

/* An operation that needs a layout of its entries */
typedef struct uct_dcx_iov_user {
    const char *name; /* name in messages */
    uint32_t access;  /* access of the layout; with IBV_ACCESS_LOCAL_WRITE,
                       * blocks must not overlap */
    int has_nests;    /* the device repeats blocks over other layouts */
    ucs_status_t (*func)(void *arg, const uct_dcx_sgl_t *layout,
                         const uct_dcx_iov_memory_t *memory);

    /* Returns 1 if @func gives the layout to the device as an mkey, for which
     * its memory has to be pinned. Called if some memory is not. */
    int (*needs_key)(void *arg, const uct_dcx_sgl_t *layout,
                     const uct_dcx_iov_memory_t *memory);
    void *arg;
} uct_dcx_iov_user_t;

/* Makes a layout of the entries and calls @func with it; returns the result.
 * The layout is valid until @func returns. Entries without bytes are left out;
 * if no others exist, layout->num is 0. Memory that is registered on demand is
 * pinned if @needs_key says so. Returns UCS_ERR_INVALID_PARAM for a wrong
 * entry, UCS_ERR_NO_MEMORY, or UCS_ERR_IO_ERROR, without a call of @func; all
 * are logged. */
ucs_status_t uct_dcx_iov_use(const uct_iov_t *iov, size_t iovcnt,
                             const uct_dcx_iov_user_t *user);

#endif
