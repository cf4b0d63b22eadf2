/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory of a view's data, registered in a memory domain while the view is
 * open. It is one region, the span from the first byte to the last; or several,
 * if the span has holes that cannot be registered, or is much longer than the
 * data.
 */
#ifndef UCT_DCX_VIEW_MEMORY_H
#define UCT_DCX_VIEW_MEMORY_H

#include "dcx_view_ops.h"
#include "uct/dcx/dcx_ext.h"


enum { UCT_DCX_VIEW_MAX_REGIONS = 16 };


typedef struct uct_dcx_view_region {
    uint64_t begin;
    uint64_t end;
    uint32_t lkey;
    uct_dcx_ext_region_t *region; /* while it is registered */
} uct_dcx_view_region_t;


/* The regions stay known after they are deregistered. */
typedef struct uct_dcx_view_memory {
    int is_dest; /* the device writes; 0: it only reads */
    unsigned num;
    uct_dcx_view_region_t regions[UCT_DCX_VIEW_MAX_REGIONS];
} uct_dcx_view_memory_t;


/* Sets the bytes that may be registered for any data, however short. Called
 * once, before the others. */
void uct_dcx_view_memory_allow(size_t bytes);

/* Registers the memory of @data; @is_dest: for writing. Returns 0, not logged,
 * if it cannot be registered: then none of it is. */
int uct_dcx_view_memory_reg(uct_dcx_view_memory_t *memory, uct_md_h md,
                            const shape_data_t *data, int is_dest);

/* Registers the same regions again. Stores 1 in @is_same_p if all keys are as
 * they were, else 0. Returns 0, not logged, if they cannot be registered: then
 * none of them is. */
int uct_dcx_view_memory_again(uct_dcx_view_memory_t *memory, uct_md_h md,
                              int *is_same_p);

/* Deregisters the first @num regions. */
void uct_dcx_view_memory_dereg(const uct_dcx_view_memory_t *memory, uct_md_h md,
                               unsigned num);

/* Returns the region of @addr, which must have one. */
const uct_dcx_view_region_t *
uct_dcx_view_memory_find(const uct_dcx_view_memory_t *memory, uint64_t addr);

#endif
