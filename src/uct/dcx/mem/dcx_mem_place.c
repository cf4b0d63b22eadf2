/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Places and their handles; see dcx_mem_place.h.
 */
#include "dcx_mem_place.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


uct_dcx_mem_places_t uct_dcx_mem_places = {.type = UCS_MEMORY_TYPE_UNKNOWN};


void uct_dcx_mem_places_enable(ucs_memory_type_t type, uint64_t base,
                               uint64_t length, unsigned max)
{
    uct_dcx_mem_places.base   = base;
    uct_dcx_mem_places.length = length;
    __atomic_store_n(&uct_dcx_mem_places.total, length * max, __ATOMIC_RELEASE);
    __atomic_store_n(&uct_dcx_mem_places.type, type, __ATOMIC_RELEASE);
}


static size_t uct_dcx_mem_places_num(void)
{
    return uct_dcx_mem_places.total / uct_dcx_mem_places.length;
}


/* Returns the table of a domain; makes it for the first handle. Its pages
 * without a handle are never touched. */
static uct_dcx_mem_t **uct_dcx_mem_places_table(uct_dcx_md_t *md)
{
    uct_dcx_mem_t **places = __atomic_load_n(&md->places, __ATOMIC_ACQUIRE);
    uct_dcx_mem_t **fresh;

    if (places != NULL) {
        return places;
    }

    fresh = ucs_calloc(uct_dcx_mem_places_num(), sizeof(*fresh),
                       "uct_dcx_places");
    if ((fresh != NULL) &&
        !__atomic_compare_exchange_n(&md->places, &places, fresh, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        ucs_free(fresh);
        return places;
    }
    return fresh;
}


/* Returns the handle, or NULL for a place that never stood for a layout
 * here. */
static uct_dcx_mem_t *uct_dcx_mem_place_find(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t **places = __atomic_load_n(&md->places, __ATOMIC_ACQUIRE);

    return (places == NULL) ? NULL :
                              __atomic_load_n(&places[index], __ATOMIC_ACQUIRE);
}


/* Creates the handle of a place; returns NULL if memory is short. */
static uct_dcx_mem_t *uct_dcx_mem_place_new(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t **places = uct_dcx_mem_places_table(md);
    uct_dcx_mem_t *place   = (places == NULL) ? NULL : uct_dcx_mem_alloc(md);

    if (place != NULL) {
        __atomic_store_n(&places[index], place, __ATOMIC_RELEASE);
    }
    return place;
}


ucs_status_t uct_dcx_mem_place_set(uct_dcx_md_t *md, unsigned index,
                                   uct_dcx_mem_t *mem)
{
    uct_dcx_mem_t *place = uct_dcx_mem_place_find(md, index);

    if (place == NULL) {
        place = uct_dcx_mem_place_new(md, index);
    }
    if (place == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    place->lkey   = mem->lkey;
    place->rkey   = mem->rkey;
    place->origin = mem;
    place->layout = mem->layout;
    return UCS_OK;
}


void uct_dcx_mem_place_clear(uct_dcx_md_t *md, unsigned index)
{
    uct_dcx_mem_t *place = uct_dcx_mem_place_find(md, index);

    if (place != NULL) {
        *place = (uct_dcx_mem_t){.md = md, .origin = place};
    }
}


/* Does not compare @length with the layout's: the device checks it, and UCP
 * registers some bytes more. */
ucs_status_t uct_dcx_mem_place_get(uct_dcx_md_t *md, uint64_t address,
                                   size_t length, uint64_t flags,
                                   uct_mem_h *memh_p)
{
    uint64_t size        = uct_dcx_mem_places.length;
    uint64_t offset      = address - uct_dcx_mem_places.base;
    uct_dcx_mem_t *place = uct_dcx_mem_place_find(md, offset / size);

    if ((place == NULL) || (place->layout == NULL) ||
        (length > size - (offset % size))) {
        ucs_log((flags & UCT_MD_MEM_FLAG_HIDE_ERRORS) ? UCS_LOG_LEVEL_DEBUG :
                                                        UCS_LOG_LEVEL_ERROR,
                "%s: %zu bytes at 0x%lx are not in a view",
                uct_dcx_device_name(&md->dev), length, address);
        return UCS_ERR_INVALID_PARAM;
    }

    *memh_p = place;
    return UCS_OK;
}


/* Frees the table. The memory of handles belongs to the domain. */
void uct_dcx_mem_places_cleanup(uct_dcx_md_t *md)
{
    size_t i;

    for (i = 0; (md->places != NULL) && (i < uct_dcx_mem_places_num()); ++i) {
        if (md->places[i] != NULL) {
            uct_dcx_mem_free(md, md->places[i]);
        }
    }
    ucs_free(md->places);
}
