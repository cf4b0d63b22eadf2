/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Handles of views; see dcx_mem_view.h.
 */
#include "dcx_mem_view.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


static ucs_memory_type_t uct_dcx_mem_view_known = UCS_MEMORY_TYPE_UNKNOWN;


void uct_dcx_mem_view_enable(ucs_memory_type_t type)
{
    __atomic_store_n(&uct_dcx_mem_view_known, type, __ATOMIC_RELEASE);
}


ucs_memory_type_t uct_dcx_mem_view_type(void)
{
    return __atomic_load_n(&uct_dcx_mem_view_known, __ATOMIC_ACQUIRE);
}


/* The table of a domain, made with the first handle in it. Pages of it that have
 * none are never touched. */
static uct_dcx_mem_t **uct_dcx_mem_views(uct_dcx_md_t *md)
{
    uct_dcx_mem_t **views = __atomic_load_n(&md->views, __ATOMIC_ACQUIRE);
    uct_dcx_mem_t **fresh;

    if (views != NULL) {
        return views;
    }

    fresh = ucs_calloc(UCT_DCX_VIEW_MAX, sizeof(*fresh), "uct_dcx_views");
    if ((fresh != NULL) &&
        !__atomic_compare_exchange_n(&md->views, &views, fresh, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        ucs_free(fresh);
        return views;
    }
    return fresh;
}


/* Of a view that never had a layout here: NULL */
static uct_dcx_mem_t *uct_dcx_mem_view_find(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t **views = __atomic_load_n(&md->views, __ATOMIC_ACQUIRE);

    return (views == NULL) ? NULL :
                             __atomic_load_n(&views[index], __ATOMIC_ACQUIRE);
}


/* ... one, or NULL: memory is short */
static uct_dcx_mem_t *uct_dcx_mem_view_new(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t **views = uct_dcx_mem_views(md);
    uct_dcx_mem_t *view   = (views == NULL) ? NULL : uct_dcx_mem_alloc(md);

    if (view != NULL) {
        __atomic_store_n(&views[index], view, __ATOMIC_RELEASE);
    }
    return view;
}


ucs_status_t uct_dcx_mem_view_set(uct_dcx_md_t *md, unsigned index,
                                  uct_dcx_mem_t *mem)
{
    uct_dcx_mem_t *view = uct_dcx_mem_view_find(md, index);

    if (view == NULL) {
        view = uct_dcx_mem_view_new(md, index);
    }
    if (view == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    view->lkey   = mem->lkey;
    view->rkey   = mem->rkey;
    view->origin = mem;
    view->layout = mem->layout;
    return UCS_OK;
}


void uct_dcx_mem_view_clear(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t *view = uct_dcx_mem_view_find(md, index);

    if (view != NULL) {
        *view = (uct_dcx_mem_t){.md = md, .origin = view};
    }
}


/* Bytes are not counted: the device does, and UCP registers some more. */
ucs_status_t
uct_dcx_mem_view_get(uct_dcx_md_t *md, uint64_t address, size_t length,
                     uint64_t flags, uct_mem_h *memh_p)
{
    unsigned index      = uct_dcx_mem_view_index(address);
    uint64_t offset     = address - uct_dcx_mem_view_address(index);
    uct_dcx_mem_t *view = uct_dcx_mem_view_find(md, index);

    if ((view == NULL) || (view->layout == NULL) ||
        (length > UCT_DCX_MEM_VIEW_LENGTH - offset)) {
        ucs_log((flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) ? UCS_LOG_LEVEL_DEBUG :
                                                        UCS_LOG_LEVEL_ERROR,
                "%s: %zu bytes at 0x%lx are not in a view",
                uct_dcx_device_name(&md->dev), length, address);
        return UCS_ERR_INVALID_PARAM;
    }

    *memh_p = view;
    return UCS_OK;
}


/* Their memory is the domain's, as that of all handles. */
void uct_dcx_mem_view_cleanup(uct_dcx_md_t *md)
{
    unsigned i;

    for (i = 0; (md->views != NULL) && (i < UCT_DCX_VIEW_MAX); ++i) {
        if (md->views[i] != NULL) {
            uct_dcx_mem_free(md->views[i]);
        }
    }
    ucs_free(md->views);
}
