/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory that data lies in, registered in a memory domain for as long as a
 * view of it is open: one region from the first byte to the last, or where that
 * has holes that cannot be registered, or is by far longer than the data,
 * several with those between them.
 */
#ifndef UCT_DCX_VIEW_MEMORY_H
#define UCT_DCX_VIEW_MEMORY_H

#include "dcx_view_ops.h"
#include "uct/dcx/dcx_ext.h"


enum {
    UCT_DCX_VIEW_MAX_REGIONS = 16
};


typedef struct uct_dcx_view_region {
    uint64_t             begin;
    uint64_t             end;
    uint32_t             lkey;
    uct_dcx_ext_region_t *region; /* while it is registered */
} uct_dcx_view_region_t;


/* Those of what was registered last stay known when it is not any more. */
typedef struct uct_dcx_view_memory {
    int                   is_dest; /* else it is read alone */
    unsigned              num;
    uct_dcx_view_region_t regions[UCT_DCX_VIEW_MAX_REGIONS];
} uct_dcx_view_memory_t;


/* What may be registered for any data, in bytes. Called once, before the
 * others. */
void uct_dcx_view_memory_allow(size_t bytes);

/* Registers it, to be written or to be read alone. Returns 0 if it cannot be:
 * nothing is registered then. */
int uct_dcx_view_memory_reg(uct_dcx_view_memory_t *memory, uct_md_h md,
                            const shape_data_t *data, int is_dest);

/* Registers what was registered before. Returns 0 if it cannot be.
 * '*is_same_p': the keys are those of before. */
int uct_dcx_view_memory_again(uct_dcx_view_memory_t *memory, uct_md_h md,
                              int *is_same_p);

/* Deregisters the first 'num' regions. */
void uct_dcx_view_memory_dereg(const uct_dcx_view_memory_t *memory,
                               uct_md_h md, unsigned num);

/* The region of a block, which has one */
const uct_dcx_view_region_t *
uct_dcx_view_memory_find(const uct_dcx_view_memory_t *memory, uint64_t addr);

#endif
