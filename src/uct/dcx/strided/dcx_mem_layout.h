/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A layout as a handle of memory: a key key that is owned, with what it names.
 * What a user may do with it is said in <uct/dcx/dcx.h>, whose functions
 * (dcx.c) call this.
 *
 *     begin, add, add, ..., commit
 *
 * gives it a layout: what is added is checked, and nothing changes before
 * commit.
 *
 * When a handle of memory goes, the layouts that name it go from the device,
 * also where its region stays in the cache.
 */
#ifndef UCT_DCX_MEM_LAYOUT_H
#define UCT_DCX_MEM_LAYOUT_H

#include "dcx_key.h"
#include "uct/dcx/mem/dcx_md.h"


/* The blocks that the next layout is made of: room for 'max' of each */
typedef struct uct_dcx_mem_next {
    uct_dcx_sgl_run_t *runs;
    uct_dcx_mem_t     **mems; /* once for runs side by side */
    unsigned          num;    /* runs */
    unsigned          depth;  /* as below */
    uint64_t          length; /* bytes */
} uct_dcx_mem_next_t;


struct uct_dcx_mem_layout {
    uct_dcx_mem_t      *mem;    /* its handle */
    uct_dcx_key_t      *key;
    ucs_list_link_t    list;    /* of its domain */
    size_t             max;     /* pieces */
    int                is_view; /* built by a view: names no handle */

    /* of the one that was set last */
    unsigned           depth;   /* 1: it names memory alone */
    uint64_t           length;  /* bytes */
    uint64_t           start;   /* address of the first one */

    uct_dcx_mem_next_t next;
    uct_dcx_sgl_t      *layout;   /* room for the next one */
};


/* How deep layouts are in each other at this handle; memory: 0 */
static inline unsigned uct_dcx_mem_depth(const void *memh)
{
    return uct_dcx_mem_is_layout(memh) ?
           ((const uct_dcx_mem_t*)memh)->layout->depth : 0;
}


/* The layout of a handle, or NULL */
static inline uct_dcx_mem_layout_t *uct_dcx_mem_layout_of(uct_mem_h memh)
{
    const uct_dcx_mem_t *mem = memh;

    return ((mem != NULL) && (mem->md != NULL) && uct_dcx_mem_is_layout(mem)) ?
           mem->layout : NULL;
}


/* Makes one of up to 'max' pieces. Keys are open. Errors are logged. */
ucs_status_t uct_dcx_mem_layout_create(uct_dcx_md_t *md, size_t max,
                                       uct_dcx_mem_layout_t **layout_p);

/* When it returns, nobody reaches anything by it. */
void uct_dcx_mem_layout_destroy(uct_dcx_mem_layout_t *layout);

/* Takes layouts from the device when memory of a domain goes (dcx_md.h). */
extern const uct_dcx_md_hook_t uct_dcx_mem_layout_hook;

/* The next layout has nothing in it yet. */
void
uct_dcx_mem_layout_begin(uct_dcx_mem_layout_t *layout, uint32_t access);

/* Adds blocks in memory of 'memh', of which no more than 'max' are added. All
 * runs have the same count. Returns NULL, or what is wrong, beginning with the
 * name of the argument. */
const char *
uct_dcx_mem_layout_add(uct_dcx_mem_layout_t *layout, uct_mem_h memh,
                       const uct_dcx_sgl_run_t *run);

/* Gives what was added to the device. Returns UCS_ERR_INVALID_PARAM or
 * UCS_ERR_NO_MEMORY (logged), or as uct_dcx_keys_set(); then nothing has
 * changed. */
ucs_status_t uct_dcx_mem_layout_commit(uct_dcx_mem_layout_t *layout);


/* --- built by their user (dcx_ext.h)
 * --------------------------------------- */

/* Makes one that its user builds himself, by the functions of dcx_sgl.h. He
 * holds the memory while he uses it; when the region of it goes, so does the
 * layout. What keys_own() returns is not logged. */
ucs_status_t uct_dcx_mem_layout_make(uct_dcx_md_t *md, size_t max,
                                     uct_dcx_mem_layout_t **layout_p);

/* The layout that is to be built, with nothing in it yet: its first byte has
 * the address 'start'. */
uct_dcx_sgl_t *
uct_dcx_mem_layout_build(uct_dcx_mem_layout_t *layout, uint32_t access,
                         uint64_t start);

/* Gives it to the device, unless that has it. Nobody looks whether blocks
 * overlap. @depth: as in uct_dcx_mem_layout. Returns as uct_dcx_keys_set(). */
ucs_status_t
uct_dcx_mem_layout_give(uct_dcx_mem_layout_t *layout, unsigned depth);

/* Takes it from the device, so that nobody reaches anything by it any more;
 * waits for that. The number is another one with the next layout, if a peer has
 * it. */
void uct_dcx_mem_layout_revoke(uct_dcx_mem_layout_t *layout);

/* --- of both -------------------------------------------------------------- */

/* As uct_dcx_keys_test() */
ucs_status_t uct_dcx_mem_layout_test(uct_dcx_mem_layout_t *layout);

#endif
