/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of views; see dcx_view_memory.h.
 */
#include "dcx_view_memory.h"
#include "dcx_view_maps.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/sys/sys.h>


enum {
    /* Limit of registered memory, which is locked: this many times the data, or
     * uct_dcx_view_memory_max, the larger of both */
    UCT_DCX_VIEW_MEMORY_RATIO = 64
};


/* UCX_DCX_TYPES_MAX_SPAN, in bytes */
static size_t uct_dcx_view_memory_max;


void uct_dcx_view_memory_allow(size_t bytes)
{
    uct_dcx_view_memory_max = bytes;
}


/* --- registration --------------------------------------------------------- */

void uct_dcx_view_memory_dereg(const uct_dcx_view_memory_t *memory, uct_md_h md,
                               unsigned num)
{
    unsigned i;

    for (i = 0; i < num; ++i) {
        uct_dcx_ext.dereg(md, memory->regions[i].region);
    }
}


/* Hides errors of registration: the data is then packed instead. */
int uct_dcx_view_memory_again(uct_dcx_view_memory_t *memory, uct_md_h md,
                              int *is_same_p)
{
    uint64_t flags = UCT_MD_MEM_FLAG_HIDE_ERRORS |
                     (memory->is_dest ? UCT_MD_MEM_ACCESS_ALL :
                                        (UCT_MD_MEM_ACCESS_LOCAL_READ |
                                         UCT_MD_MEM_ACCESS_REMOTE_GET));
    uct_dcx_view_region_t *region;
    uint32_t lkey;
    unsigned i;

    *is_same_p = 1;
    for (i = 0; i < memory->num; ++i) {
        region = &memory->regions[i];
        if (uct_dcx_ext.reg(md, (void *)(uintptr_t)region->begin,
                            region->end - region->begin, flags, &region->region,
                            &lkey) != UCS_OK) {
            uct_dcx_view_memory_dereg(memory, md, i);
            return 0;
        }
        *is_same_p &= (region->lkey == lkey);
        region->lkey = lkey;
    }
    return 1;
}


const uct_dcx_view_region_t *
uct_dcx_view_memory_find(const uct_dcx_view_memory_t *memory, uint64_t addr)
{
    const uct_dcx_view_region_t *region = memory->regions;

    while ((addr < region->begin) || (addr >= region->end)) {
        ++region;
    }
    return region;
}


/* --- several regions ------------------------------------------------------ */

/* The regions that blocks were joined to so far, in ascending order, with room
 * for one more than the limit. Each consists of whole pages, and can be
 * registered as a whole. */
typedef struct uct_dcx_view_clusters {
    size_t page;   /* bytes */
    int is_sparse; /* only adjacent regions are joined */
    uct_dcx_view_maps_t maps;
    unsigned num;
    uct_dcx_view_region_t regions[UCT_DCX_VIEW_MAX_REGIONS + 1];
} uct_dcx_view_clusters_t;


/* Returns the bytes from the end of region @index to the begin of the next;
 * negative if they overlap. */
static int64_t
uct_dcx_view_clusters_gap(const uct_dcx_view_clusters_t *clusters,
                          unsigned index)
{
    const uct_dcx_view_region_t *region = &clusters->regions[index];

    return (int64_t)(region[1].begin - region->end);
}


/* Returns 1 if memory between region @index and the next can be registered. */
static int
uct_dcx_view_clusters_has_gap(const uct_dcx_view_clusters_t *clusters,
                              unsigned index)
{
    const uct_dcx_view_region_t *region = &clusters->regions[index];

    return uct_dcx_view_maps_has(&clusters->maps, region->begin, region[1].end);
}


/* Joins region @index and the next. */
static void uct_dcx_view_clusters_join(uct_dcx_view_clusters_t *clusters,
                                       unsigned index)
{
    uct_dcx_view_region_t *region = &clusters->regions[index];

    region->end = ucs_max(region->end, region[1].end);
    clusters->num--;
    memmove(region + 1, region + 2,
            (clusters->num - index - 1) * sizeof(*region));
}


/* Joins region @index and the next, if they touch, or the data is not sparse
 * and the gap can be registered. Returns 0 if not. */
static int uct_dcx_view_clusters_close(uct_dcx_view_clusters_t *clusters,
                                       unsigned index)
{
    if ((index + 1 >= clusters->num) ||
        ((uct_dcx_view_clusters_gap(clusters, index) > 0) &&
         (clusters->is_sparse ||
          !uct_dcx_view_clusters_has_gap(clusters, index)))) {
        return 0;
    }

    uct_dcx_view_clusters_join(clusters, index);
    return 1;
}


/* Joins the two regions with the smallest gap, as there is one too many.
 * Returns 0 if there are holes between all. */
static int uct_dcx_view_clusters_reduce(uct_dcx_view_clusters_t *clusters)
{
    int64_t least = INT64_MAX;
    unsigned best = 0;
    int64_t gap;
    unsigned i;

    for (i = 0; i + 1 < clusters->num; ++i) {
        gap = uct_dcx_view_clusters_gap(clusters, i);
        if ((gap < least) && uct_dcx_view_clusters_has_gap(clusters, i)) {
            least = gap;
            best  = i;
        }
    }
    if (least == INT64_MAX) {
        return 0;
    }

    uct_dcx_view_clusters_join(clusters, best);
    return 1;
}


/* Inserts a region at @index, and joins it with its neighbors where possible.
 * Returns 0 if there are too many now. */
static int uct_dcx_view_clusters_insert(uct_dcx_view_clusters_t *clusters,
                                        unsigned index, uint64_t begin,
                                        uint64_t end)
{
    uct_dcx_view_region_t *region = &clusters->regions[index];

    memmove(region + 1, region, (clusters->num - index) * sizeof(*region));
    region->begin = begin;
    region->end   = end;
    clusters->num++;

    if ((index > 0) && uct_dcx_view_clusters_close(clusters, index - 1)) {
        --index;
    }
    while (uct_dcx_view_clusters_close(clusters, index)) {
    }
    return (clusters->num <= UCT_DCX_VIEW_MAX_REGIONS) ||
           uct_dcx_view_clusters_reduce(clusters);
}


/* Adds a block, as of shape_add_t. Returns non-zero if it cannot be
 * registered. */
static int uct_dcx_view_clusters_add(void *arg, char *address, size_t bytes)
{
    uct_dcx_view_clusters_t *clusters = arg;
    uint64_t begin = ucs_align_down_pow2((uintptr_t)address, clusters->page);
    uint64_t end   = ucs_align_up_pow2((uintptr_t)address + bytes,
                                       clusters->page);
    unsigned i     = 0;

    while ((i < clusters->num) && (clusters->regions[i].begin <= begin)) {
        ++i;
    }
    if ((i > 0) && (end <= clusters->regions[i - 1].end)) {
        return 0;
    }
    return !uct_dcx_view_maps_has(&clusters->maps, begin, end) ||
           !uct_dcx_view_clusters_insert(clusters, i, begin, end);
}


/* Cuts the span at holes that cannot be registered; if @is_sparse (the span is
 * too long for the data), also at the largest gaps between blocks. Returns 0 if
 * there are too many regions, or still only one. */
static int uct_dcx_view_memory_cut(uct_dcx_view_memory_t *memory,
                                   const shape_data_t *data, int is_sparse)
{
    uct_dcx_view_clusters_t clusters = {
        .page      = ucs_get_page_size(),
        .is_sparse = is_sparse,
    };
    int is_failed;

    uct_dcx_view_maps_read(&clusters.maps, memory->regions[0].begin,
                           memory->regions[0].end, memory->is_dest);
    is_failed = shape_for_each(data, uct_dcx_view_clusters_add, &clusters);
    uct_dcx_view_maps_free(&clusters.maps);

    memory->num = clusters.num;
    memcpy(memory->regions, clusters.regions, sizeof(memory->regions));
    return !is_failed && (memory->num > 1);
}


static void uct_dcx_view_memory_span(uct_dcx_view_memory_t *memory,
                                     const shape_data_t *data)
{
    char *begin, *end;

    shape_span(data, &begin, &end);
    memory->num              = 1;
    memory->regions[0].begin = (uintptr_t)begin;
    memory->regions[0].end   = (uintptr_t)end;
}


/* Returns 1 if so much memory may be locked for this data. */
static int uct_dcx_view_memory_is_fair(const uct_dcx_view_memory_t *memory,
                                       const shape_data_t *data)
{
    size_t bytes = 0;
    unsigned i;

    for (i = 0; i < memory->num; ++i) {
        bytes += memory->regions[i].end - memory->regions[i].begin;
    }
    return (bytes <= uct_dcx_view_memory_max) ||
           (bytes / UCT_DCX_VIEW_MEMORY_RATIO <= shape_length(data));
}


int uct_dcx_view_memory_reg(uct_dcx_view_memory_t *memory, uct_md_h md,
                            const shape_data_t *data, int is_dest)
{
    int is_fair, is_same;

    memory->is_dest = is_dest;
    uct_dcx_view_memory_span(memory, data);
    is_fair = uct_dcx_view_memory_is_fair(memory, data);
    if (is_fair && uct_dcx_view_memory_again(memory, md, &is_same)) {
        return 1;
    }

    return uct_dcx_view_memory_cut(memory, data, !is_fair) &&
           uct_dcx_view_memory_is_fair(memory, data) &&
           uct_dcx_view_memory_again(memory, md, &is_same);
}
