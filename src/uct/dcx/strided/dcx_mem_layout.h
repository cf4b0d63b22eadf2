/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A layout as a handle of memory, with an owned key. <uct/dcx/dcx.h> says how a
 * user sets and uses it; its functions (dcx.c) call this.
 *
 *     begin, add, add, ..., commit
 *
 * sets a layout: added blocks are checked, and nothing changes before commit.
 *
 * When a memory handle is deregistered, the layouts that name it are
 * invalidated, even if its region stays in the cache.
 */
#ifndef UCT_DCX_MEM_LAYOUT_H
#define UCT_DCX_MEM_LAYOUT_H

#include "dcx_key.h"
#include "uct/dcx/mem/dcx_md.h"


/* The blocks of the next layout: arrays of @max elements, 1 if @is_view */
typedef struct uct_dcx_mem_next {
    uct_dcx_sgl_run_t *runs;
    uct_dcx_mem_t **mems; /* one entry for adjacent runs with the same
                           * handle */
    unsigned num;         /* runs */
    int is_plain;         /* names pinned host memory only, no layouts */
    unsigned depth;       /* nesting, as below */
    uint64_t length;      /* bytes */
} uct_dcx_mem_next_t;


struct uct_dcx_mem_layout {
    uct_dcx_mem_t *mem; /* its handle */
    uct_dcx_key_t *key;
    ucs_list_link_t list; /* entry of its domain's list */
    size_t max;           /* pieces */
    int is_view;          /* made by uct_dcx_mem_layout_make() */

    /* the layout that was set last */
    unsigned depth;  /* nesting; 1: names only memory */
    uint64_t length; /* bytes */
    uint64_t start;  /* address of the first byte */

    uct_dcx_mem_next_t next;
    uct_dcx_sgl_t *layout; /* room for the next one */
};


/* Returns the nesting of layouts at this handle; 0 for memory. */
static inline unsigned uct_dcx_mem_depth(const void *memh)
{
    return uct_dcx_mem_is_layout(memh) ?
               ((const uct_dcx_mem_t *)memh)->layout->depth :
               0;
}


/* Returns 1 for memory that the processor must not touch, and for layouts that
 * name such memory at any depth. */
int uct_dcx_mem_is_device(const uct_dcx_mem_t *mem);


/* Returns the layout of a handle, or NULL. */
static inline uct_dcx_mem_layout_t *uct_dcx_mem_layout_of(uct_mem_h memh)
{
    const uct_dcx_mem_t *mem = memh;

    return ((mem != NULL) && (mem->md != NULL) && uct_dcx_mem_is_layout(mem)) ?
               mem->layout :
               NULL;
}


/* Makes a layout of up to @max pieces, not set yet. Keys are open. Logs
 * errors. */
ucs_status_t uct_dcx_mem_layout_create(uct_dcx_md_t *md, size_t max,
                                       uct_dcx_mem_layout_t **layout_p);

/* Destroys a layout and its handle. Peers have lost access when it returns. */
void uct_dcx_mem_layout_destroy(uct_dcx_mem_layout_t *layout);

/* Opens and closes the keys of a domain, and invalidates layouts when its
 * memory is deregistered (dcx_md.h). */
extern const uct_dcx_md_hook_t uct_dcx_mem_layout_hook;

/* Begins the next layout, which is empty. @access: as in uct_dcx_sgl_t */
void uct_dcx_mem_layout_begin(uct_dcx_mem_layout_t *layout, uint32_t access);

/* Adds a run of blocks in memory of @memh. The caller adds at most @max runs,
 * all with the same count. Returns NULL, or an error text that begins with the
 * name of the argument. */
const char *uct_dcx_mem_layout_add(uct_dcx_mem_layout_t *layout, uct_mem_h memh,
                                   const uct_dcx_sgl_run_t *run);

/* Checks the added blocks, pins their memory, and gives them to the device.
 * Returns UCS_ERR_INVALID_PARAM or UCS_ERR_NO_MEMORY (logged), as
 * uct_dcx_mem_pin(), or as uct_dcx_keys_set(). On an error the device
 * keeps the previous layout. If that was lost, the handle may have another
 * number. */
ucs_status_t uct_dcx_mem_layout_commit(uct_dcx_mem_layout_t *layout);


/* --- built by the caller (dcx_ext.h) -------------------------------------- */

/* Makes a layout that its caller builds with the functions of dcx_sgl.h. The
 * caller keeps the memory registered while it uses the layout; when the region
 * is deregistered, the layout is invalidated. Returns as uct_dcx_keys_own(), or
 * UCS_ERR_NO_MEMORY, which is logged. */
ucs_status_t uct_dcx_mem_layout_make(uct_dcx_md_t *md, size_t max,
                                     uct_dcx_mem_layout_t **layout_p);

/* Returns the layout to build, which is empty: its first byte has the address
 * @start. */
uct_dcx_sgl_t *uct_dcx_mem_layout_build(uct_dcx_mem_layout_t *layout,
                                        uint32_t access, uint64_t start);

/* Gives the layout to the device, unless the device has it. Does not check for
 * overlap. @depth: as in uct_dcx_mem_layout. Returns as uct_dcx_keys_set(). */
ucs_status_t uct_dcx_mem_layout_give(uct_dcx_mem_layout_t *layout,
                                     unsigned depth);

/* Invalidates the layout on the device: peers lose access. Waits for that. If a
 * peer has its number, the next layout gets another. */
void uct_dcx_mem_layout_revoke(uct_dcx_mem_layout_t *layout);

/* --- both kinds ----------------------------------------------------------- */

/* Returns as uct_dcx_keys_test(). */
static inline ucs_status_t uct_dcx_mem_layout_test(uct_dcx_mem_layout_t *layout)
{
    return uct_dcx_keys_test(layout->mem->md->keys, layout->key);
}

#endif
