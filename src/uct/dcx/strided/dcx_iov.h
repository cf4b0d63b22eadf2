/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces of registered memory, as UCT's operations take them: uct_iov_t. Most
 * are plain, one piece each, and an operation posts them as they are. One with
 * blocks in it ('count' and 'stride'), and more of them than a WQE takes, are
 * made a layout of (dcx_sgl.h). Pure: nothing is posted here.
 */
#ifndef UCT_DCX_IOV_H
#define UCT_DCX_IOV_H

#include "dcx_sgl.h"
#include "uct/dcx/mem/dcx_mem.h"


enum {
    /* entries that operations take at most */
    UCT_DCX_IOV_MAX       = 1024,

    /* Entries that messages say they take: UCP has so many of them on its
     * stack, and from 30 on aborts (ucs_alloca() in proto_am.inl); it uses 16.
     * Of puts and gets it takes at most 16, whatever they say (UCP_MAX_IOV) */
    UCT_DCX_IOV_ANNOUNCED = 16
};


/* It has no bytes, and needs no handle. */
static inline int uct_dcx_iov_is_empty(const uct_iov_t *iov)
{
    return (iov->count == 0) || (iov->length == 0);
}


/* uct_dcx_iov_is_plain() of several */
static UCS_F_ALWAYS_INLINE int
uct_dcx_iov_are_plain(const uct_iov_t *iov, size_t iovcnt, size_t max,
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


/* Returns 1 if all are one piece each, and no more of them than @max, which is
 * at least one. Then they have so many bytes. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_iov_is_plain(const uct_iov_t *iov, size_t iovcnt, size_t max,
                     size_t *length_p)
{
    if (ucs_likely(iovcnt == 1)) {
        *length_p = iov->length;
        return iov->count == 1;
    }
    return uct_dcx_iov_are_plain(iov, iovcnt, max, length_p);
}


/* An operation that needs a layout of entries */
typedef struct uct_dcx_iov_user {
    const char   *name;  /* in what is logged */
    uint32_t     access; /* of the layout; with IBV_ACCESS_LOCAL_WRITE, blocks
                          * must not overlap */
    int          has_nests; /* repeated blocks may be over layouts */
    ucs_status_t (*func)(void *arg, const uct_dcx_sgl_t *layout,
                         unsigned depth);
    void         *arg;
} uct_dcx_iov_user_t;

/* Makes a layout of them, which lasts until 'func' returns, and returns what
 * that does. It is told how deep layouts are in each other at those with bytes;
 * 0: all addresses are of memory that the processor reaches, otherwise some are
 * offsets. Entries without bytes are left out; if no other is left, layout->num
 * is 0. What is wrong with an entry is logged: UCS_ERR_INVALID_PARAM. */
ucs_status_t uct_dcx_iov_use(const uct_iov_t *iov, size_t iovcnt,
                             const uct_dcx_iov_user_t *user);

#endif
