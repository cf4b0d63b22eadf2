/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses that can be registered; see dcx_view_maps.h.
 */
#include "dcx_view_maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucs/debug/memtrack_int.h>


/* Returns 0 if there is no memory for one more. */
static int uct_dcx_view_maps_add(uct_dcx_view_maps_t *maps, uint64_t begin,
                                 uint64_t end)
{
    size_t room = (maps->room == 0) ? 64 : (2 * maps->room);
    uct_dcx_view_range_t *ranges;

    if ((maps->num > 0) && (maps->ranges[maps->num - 1].end == begin)) {
        maps->ranges[maps->num - 1].end = end;
        return 1;
    }

    if (maps->num == maps->room) {
        ranges = ucs_realloc(maps->ranges, room * sizeof(*ranges),
                             "uct_dcx_view_maps");
        if (ranges == NULL) {
            return 0;
        }
        maps->ranges = ranges;
        maps->room   = room;
    }

    maps->ranges[maps->num++] = (uct_dcx_view_range_t){begin, end};
    return 1;
}


void uct_dcx_view_maps_read(uct_dcx_view_maps_t *maps, uint64_t begin,
                            uint64_t end, int is_written)
{
    FILE *file    = fopen("/proc/self/maps", "re");
    char *line    = NULL;
    size_t length = 0;
    uint64_t from = 0;
    uint64_t to;
    char read, write;

    *maps = (uct_dcx_view_maps_t){.num = 0};
    if (file == NULL) {
        return;
    }

    while ((from < end) && (getline(&line, &length, file) > 0)) {
        if ((sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &from, &to, &read,
                    &write) == 4) &&
            (from < end) && (to > begin) && (read == 'r') &&
            (!is_written || (write == 'w')) &&
            !uct_dcx_view_maps_add(maps, from, to)) {
            break;
        }
    }

    free(line);
    fclose(file);
}


void uct_dcx_view_maps_free(uct_dcx_view_maps_t *maps)
{
    ucs_free(maps->ranges);
}


int uct_dcx_view_maps_has(const uct_dcx_view_maps_t *maps, uint64_t begin,
                          uint64_t end)
{
    size_t low  = 0;
    size_t high = maps->num; /* the range is before this one */
    size_t middle;

    while (low < high) {
        middle = (low + high) / 2;
        if (maps->ranges[middle].begin > begin) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return (high > 0) && (end <= maps->ranges[high - 1].end);
}
