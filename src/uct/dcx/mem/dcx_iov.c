/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces of registered memory; see dcx_iov.h.
 */
#include "dcx_iov.h"
#include "dcx_mem_layout.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


static inline int uct_dcx_iov_is_empty(const uct_iov_t *iov)
{
    return (iov->count == 0) || (iov->length == 0);
}


ucs_status_t uct_dcx_iov_as_one(const uct_iov_t *iov, size_t iovcnt,
                                const char *name, uct_iov_t *one)
{
    if (iovcnt == 0) {
        *one = (uct_iov_t){.count = 1};
        return UCS_OK;
    }

    if ((iovcnt > 1) || ((iov->count > 0) && (iov->stride != iov->length))) {
        ucs_error("%s: iovcnt is %zu, or iov[0] has blocks: it takes one piece",
                  name, iovcnt);
        return UCS_ERR_UNSUPPORTED;
    }

    *one         = *iov;
    one->length *= iov->count;
    one->count   = 1;
    return UCS_OK;
}


/* A piece takes an entry for each UCT_DCX_LAYOUT_MAX_PIECE begun. What does not
 * fit in 64 bits is refused when it is added. */
static size_t uct_dcx_iov_entries_of(const uct_iov_t *iov)
{
    int is_one    = (iov->count == 1) || (iov->stride == iov->length);
    size_t length = is_one ? iov->length * iov->count : iov->length;
    size_t parts  = (length / UCT_DCX_LAYOUT_MAX_PIECE) + 1;

    if (uct_dcx_iov_is_empty(iov)) {
        return 0;
    }

    parts = ucs_min(parts, UCT_DCX_LAYOUT_MAX_ENTRIES);
    return is_one ? parts : parts * iov->count;
}


/* A run alone stays one entry, see uct_dcx_layout_add(). */
size_t uct_dcx_iov_num_entries(const uct_iov_t *iov, size_t iovcnt)
{
    const size_t max = UCT_DCX_LAYOUT_MAX_ENTRIES;
    size_t num       = 0;
    size_t i;

    if ((iovcnt == 1) && (iov->stride > iov->length) &&
        (iov->stride <= UCT_DCX_LAYOUT_MAX_BLOCK)) {
        return 1;
    }

    for (i = 0; (i < iovcnt) && (num < max); ++i) {
        num += uct_dcx_iov_entries_of(&iov[i]);
    }
    return ucs_max(ucs_min(num, max), 1);
}


unsigned uct_dcx_iov_depth(const uct_iov_t *iov, size_t iovcnt)
{
    unsigned depth = 0;
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        if (!uct_dcx_iov_is_empty(&iov[i])) {
            depth = ucs_max(depth, uct_dcx_mem_depth(iov[i].memh));
        }
    }
    return depth;
}


static const char *
uct_dcx_iov_add(const uct_iov_t *iov, uct_dcx_layout_t *layout)
{
    const uct_dcx_layout_run_t run = {
        .addr   = (uintptr_t)iov->buffer,
        .bytes  = iov->length,
        .stride = iov->stride,
        .count  = iov->count,
        .lkey   = uct_dcx_mem_lkey(iov->memh)
    };

    return uct_dcx_layout_add(layout, &run);
}


ucs_status_t uct_dcx_iov_layout(const uct_iov_t *iov, size_t iovcnt,
                                const char *name, uct_dcx_layout_t *layout)
{
    const char *fault = NULL;
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        if (!uct_dcx_iov_is_empty(&iov[i])) {
            fault = uct_dcx_iov_add(&iov[i], layout);
        }

        if (fault != NULL) {
            ucs_error("%s: iov[%zu] (length %zu, stride %zu, count %u): %s",
                      name, i, iov[i].length, iov[i].stride, iov[i].count,
                      fault);
            return UCS_ERR_INVALID_PARAM;
        }
    }

    if (layout->num > 0) {
        uct_dcx_layout_end(layout);
    }
    return UCS_OK;
}
