/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Pieces of registered memory; see dcx_iov.h.
 */
#include "dcx_iov.h"
#include "dcx_mem_layout.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


enum {
    /* entries of a layout on the stack; more are allocated */
    UCT_DCX_IOV_MAX_STACK = 16
};


/* Returns the entries of a piece: one for each UCT_DCX_SGL_MAX_PIECE begun.
 * Overflows of 64 bits are refused when it is added. */
static size_t uct_dcx_iov_entries_of(const uct_iov_t *iov)
{
    int is_one    = (iov->count == 1) || (iov->stride == iov->length);
    size_t length = is_one ? iov->length * iov->count : iov->length;
    size_t parts  = (length / UCT_DCX_SGL_MAX_PIECE) + 1;

    if (uct_dcx_iov_is_empty(iov)) {
        return 0;
    }

    parts = ucs_min(parts, UCT_DCX_SGL_MAX_ENTRIES);
    return is_one ? parts : parts * iov->count;
}


/* Returns the maximum of entries of a layout, at least one. A single run stays
 * one entry, see uct_dcx_sgl_add(). */
static size_t uct_dcx_iov_num_entries(const uct_iov_t *iov, size_t iovcnt,
                                      int is_list)
{
    const size_t max = UCT_DCX_SGL_MAX_ENTRIES;
    size_t num       = 0;
    size_t i;

    if (!is_list && (iovcnt == 1) && (iov->stride > iov->length) &&
        (iov->stride <= UCT_DCX_SGL_MAX_BLOCK)) {
        return 1;
    }

    for (i = 0; (i < iovcnt) && (num < max); ++i) {
        num += uct_dcx_iov_entries_of(&iov[i]);
    }
    return ucs_max(ucs_min(num, max), 1);
}


int uct_dcx_iov_is_device(const uct_iov_t *iov, size_t iovcnt)
{
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        if (!uct_dcx_iov_is_empty(&iov[i]) &&
            !uct_dcx_mem_is_plain(iov[i].memh) &&
            uct_dcx_mem_is_device(iov[i].memh)) {
            return 1;
        }
    }
    return 0;
}


static uct_dcx_iov_memory_t uct_dcx_iov_memory(const uct_iov_t *iov,
                                               size_t iovcnt)
{
    uct_dcx_iov_memory_t memory = {.is_pinned = 1};
    const uct_dcx_mem_t *mem;
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        mem = iov[i].memh;
        if (uct_dcx_iov_is_empty(&iov[i]) ||
            ucs_likely(uct_dcx_mem_is_plain(iov[i].memh))) {
            continue;
        }
        memory.depth     = ucs_max(memory.depth, uct_dcx_mem_depth(mem));
        memory.is_pinned = memory.is_pinned && uct_dcx_mem_is_pinned(mem);
        memory.is_device = memory.is_device || (!uct_dcx_mem_is_layout(mem) &&
                                                mem->region->is_device);
    }
    return memory;
}


static const char *uct_dcx_iov_add(const uct_iov_t *iov, uct_dcx_sgl_t *layout)
{
    const uct_dcx_sgl_run_t run = {
        .addr   = (uintptr_t)iov->buffer,
        .bytes  = iov->length,
        .stride = iov->stride,
        .count  = iov->count,
        .lkey   = uct_dcx_mem_strict_lkey(iov->memh),
    };

    return uct_dcx_sgl_add(layout, &run);
}


ucs_status_t uct_dcx_iov_pin(const uct_iov_t *iov, size_t iovcnt)
{
    ucs_status_t status = UCS_OK;
    size_t i;

    for (i = 0; (i < iovcnt) && (status == UCS_OK); ++i) {
        if (!uct_dcx_iov_is_empty(&iov[i])) {
            status = uct_dcx_mem_pin(iov[i].memh);
        }
    }
    return status;
}


static ucs_status_t uct_dcx_iov_no_memory(const char *name)
{
    ucs_error("%s: iov: out of memory for the layout", name);
    return UCS_ERR_NO_MEMORY;
}


/* Fills @layout, which has begun, and has room for the entries. */
static ucs_status_t uct_dcx_iov_layout(const uct_iov_t *iov, size_t iovcnt,
                                       const char *name, uct_dcx_sgl_t *layout)
{
    const char *fault = NULL;
    int overlaps      = 0;
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
        overlaps = uct_dcx_sgl_end(layout);
    }
    if (overlaps > 0) {
        ucs_error("%s: iov: blocks of the destination overlap", name);
        return UCS_ERR_INVALID_PARAM;
    }
    return (overlaps < 0) ? uct_dcx_iov_no_memory(name) : UCS_OK;
}


ucs_status_t uct_dcx_iov_use(const uct_iov_t *iov, size_t iovcnt,
                             const uct_dcx_iov_user_t *user)
{
    uct_dcx_iov_memory_t memory = uct_dcx_iov_memory(iov, iovcnt);
    int is_list                 = !user->has_nests && (memory.depth > 0);
    size_t num                  = uct_dcx_iov_num_entries(iov, iovcnt, is_list);
    union {
        uct_dcx_sgl_t layout;
        uint8_t space[sizeof(uct_dcx_sgl_t) +
                      (UCT_DCX_IOV_MAX_STACK * sizeof(uct_dcx_sgl_entry_t))];
    } few;
    uct_dcx_sgl_t *layout = &few.layout;
    ucs_status_t status;

    if (iovcnt > UCT_DCX_IOV_MAX) {
        ucs_error("%s: iovcnt is %zu, the maximum is %d", user->name, iovcnt,
                  UCT_DCX_IOV_MAX);
        return UCS_ERR_INVALID_PARAM;
    }

    if (num > UCT_DCX_IOV_MAX_STACK) {
        layout = ucs_malloc(uct_dcx_sgl_size(num), "uct_dcx_sgl");
        if (layout == NULL) {
            return uct_dcx_iov_no_memory(user->name);
        }
    }

    do {
        uct_dcx_sgl_begin(layout, num, user->access);
        layout->is_list = is_list;
        status          = uct_dcx_iov_layout(iov, iovcnt, user->name, layout);
        if (ucs_likely(memory.is_pinned) || (status != UCS_OK) ||
            !user->needs_key(user->arg, layout, &memory)) {
            break;
        }
        status           = uct_dcx_iov_pin(iov, iovcnt);
        memory.is_pinned = 1; /* again, with the new keys */
    } while (status == UCS_OK);

    if (status == UCS_OK) {
        status = user->func(user->arg, layout, &memory);
    }
    if (layout != &few.layout) {
        ucs_free(layout);
    }
    return status;
}
