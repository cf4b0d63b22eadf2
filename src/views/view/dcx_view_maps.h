/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which addresses of this process can be registered: those that it may read,
 * and write if the device shall. As the kernel says (proc(5), maps) at one
 * moment; who reads them does it seldom, as all of them are text.
 */
#ifndef UCT_DCX_VIEW_MAPS_H
#define UCT_DCX_VIEW_MAPS_H

#include <stddef.h>
#include <stdint.h>


/* All can be registered, and nothing right before or behind it. */
typedef struct uct_dcx_view_range {
    uint64_t begin;
    uint64_t end;
} uct_dcx_view_range_t;


/* In order */
typedef struct uct_dcx_view_maps {
    size_t               num;
    size_t               room;
    uct_dcx_view_range_t *ranges;
} uct_dcx_view_maps_t;


/* What is within these addresses, to be written or not. If that cannot be had,
 * nothing is. */
void uct_dcx_view_maps_read(uct_dcx_view_maps_t *maps, uint64_t begin,
                            uint64_t end, int is_written);

void uct_dcx_view_maps_free(uct_dcx_view_maps_t *maps);

/* Whether all of it is in one range */
int uct_dcx_view_maps_has(const uct_dcx_view_maps_t *maps, uint64_t begin,
                          uint64_t end);

#endif
