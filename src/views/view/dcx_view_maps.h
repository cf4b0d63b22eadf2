/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses of this process that can be registered: readable, and writable if
 * the device is to write. Source: /proc/self/maps (proc(5)), as it was when it
 * was read. Read it seldom: it is text, of all mappings.
 */
#ifndef UCT_DCX_VIEW_MAPS_H
#define UCT_DCX_VIEW_MAPS_H

#include <stddef.h>
#include <stdint.h>


/* Adjacent mappings, which can be registered as a whole */
typedef struct uct_dcx_view_range {
    uint64_t begin;
    uint64_t end;
} uct_dcx_view_range_t;


/* Ranges in ascending order */
typedef struct uct_dcx_view_maps {
    size_t num;
    size_t room; /* ranges that are allocated */
    uct_dcx_view_range_t *ranges;
} uct_dcx_view_maps_t;


/* Reads the ranges of mappings that intersect @begin to @end; only writable
 * ones if @is_written. If the file cannot be opened, there are no ranges;
 * without memory, later ones are missing. uct_dcx_view_maps_free() frees
 * them. */
void uct_dcx_view_maps_read(uct_dcx_view_maps_t *maps, uint64_t begin,
                            uint64_t end, int is_written);

void uct_dcx_view_maps_free(uct_dcx_view_maps_t *maps);

/* Returns 1 if one range covers @begin to @end. */
int uct_dcx_view_maps_has(const uct_dcx_view_maps_t *maps, uint64_t begin,
                          uint64_t end);

#endif
