/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses of views (src/views), and the handle that each has in a memory
 * domain: it stands for the layout that begins at this address
 * (dcx_mem_layout.h), for whichever the view has at the time. So the memory of a
 * view is registered by looking it up, and the handle stays that of the view,
 * whatever its user does to it.
 *
 * An address is not canonical, on x86-64 and on others: no memory is there. Views
 * are of the process; handles are set before a view is given to its user and not
 * changed until it comes back, so that any thread may look them up.
 */
#ifndef UCT_DCX_MEM_VIEW_H
#define UCT_DCX_MEM_VIEW_H

#include "dcx_md.h"


#define UCT_DCX_MEM_VIEW_BASE   0x40dc000000000000ul
#define UCT_DCX_MEM_VIEW_LENGTH (1ul << 36)  /* of a view at most */


/* Whether it is the address of a view */
static inline int uct_dcx_mem_is_view(uint64_t address)
{
    return (address ^ UCT_DCX_MEM_VIEW_BASE) <
           (UCT_DCX_VIEW_MAX * UCT_DCX_MEM_VIEW_LENGTH);
}


static inline unsigned uct_dcx_mem_view_index(uint64_t address)
{
    return (address - UCT_DCX_MEM_VIEW_BASE) / UCT_DCX_MEM_VIEW_LENGTH;
}


static inline uint64_t uct_dcx_mem_view_address(unsigned index)
{
    return UCT_DCX_MEM_VIEW_BASE + (index * UCT_DCX_MEM_VIEW_LENGTH);
}


/* From now on domains that are asked say that they take memory of this type:
 * views. */
void uct_dcx_mem_view_enable(ucs_memory_type_t type);

/* ... or UCS_MEMORY_TYPE_UNKNOWN: there are none */
ucs_memory_type_t uct_dcx_mem_view_type(void);

/* Makes a view the layout of a handle, from now on in this domain. Its own
 * handle is always the same one, so that UCP may keep it in a cache. */
ucs_status_t uct_dcx_mem_view_set(uct_dcx_md_t *md, unsigned index,
                                  uct_dcx_mem_t *mem);

/* ... it is nothing: its handle, if it has one, has no key. */
void uct_dcx_mem_view_clear(uct_dcx_md_t *md, unsigned index);

/* The handle of 'length' bytes at an address of a view. Returns
 * UCS_ERR_INVALID_PARAM, logged unless 'flags' hide errors, if the view has no
 * layout here, or these bytes are not in its range of addresses. */
ucs_status_t
uct_dcx_mem_view_get(uct_dcx_md_t *md, uint64_t address, size_t length,
                     uint64_t flags, uct_mem_h *memh_p);

void uct_dcx_mem_view_cleanup(uct_dcx_md_t *md);

#endif
