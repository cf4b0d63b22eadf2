/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Places: ranges of addresses that stand for layouts (dcx_mem_layout.h), and
 * the handle that each has in a memory domain. So a layout is registered by
 * looking up its address, and a place keeps its handle when its layout changes.
 *
 * Places belong to the process, and no memory is mapped at their addresses: the
 * caller that enables them ensures this (dcx_ext.h). A place is only set while
 * it is not in use, so any thread may look it up.
 */
#ifndef UCT_DCX_MEM_PLACE_H
#define UCT_DCX_MEM_PLACE_H

#include "dcx_md.h"


/* All places; no type, and no bytes, until they are enabled */
typedef struct uct_dcx_mem_places {
    ucs_memory_type_t type; /* memory type of their addresses in UCP */
    uint64_t base;          /* address of the first one */
    uint64_t length;        /* bytes of a place */
    uint64_t total;         /* bytes of all places; written after @base and
                             * @length */
} uct_dcx_mem_places_t;

extern uct_dcx_mem_places_t uct_dcx_mem_places;


/* Returns 1 if the address is in a place. */
static inline int uct_dcx_mem_is_place(uint64_t address)
{
    uint64_t total = __atomic_load_n(&uct_dcx_mem_places.total,
                                     __ATOMIC_ACQUIRE);

    return (address ^ uct_dcx_mem_places.base) < total;
}


/* Enables @max places of @length bytes from @base on. Called once. Domains that
 * are opened from now on register memory of @type. */
void uct_dcx_mem_places_enable(ucs_memory_type_t type, uint64_t base,
                               uint64_t length, unsigned max);

/* Returns the type of places, UCS_MEMORY_TYPE_UNKNOWN if there are none. */
static inline ucs_memory_type_t uct_dcx_mem_places_type(void)
{
    return __atomic_load_n(&uct_dcx_mem_places.type, __ATOMIC_ACQUIRE);
}

/* Makes place @index stand for the layout of @mem in this domain, with its
 * current key. The place's own handle is always the same one, so that UCP may
 * cache it. Returns UCS_ERR_NO_MEMORY, not logged, if it cannot be made. */
ucs_status_t uct_dcx_mem_place_set(uct_dcx_md_t *md, unsigned index,
                                   uct_dcx_mem_t *mem);

/* Makes a place stand for nothing: its handle, if it has one, has no key.
 * Called before the layout is destroyed. */
void uct_dcx_mem_place_clear(uct_dcx_md_t *md, unsigned index);

/* Finds the handle of @length bytes at an address in a place. Returns
 * UCS_ERR_INVALID_PARAM if the place stands for nothing here, or ends before
 * these bytes do; logs it unless @flags hide errors. The device checks the
 * length of the layout. */
ucs_status_t uct_dcx_mem_place_get(uct_dcx_md_t *md, uint64_t address,
                                   size_t length, uint64_t flags,
                                   uct_mem_h *memh_p);

void uct_dcx_mem_places_cleanup(uct_dcx_md_t *md);

#endif
