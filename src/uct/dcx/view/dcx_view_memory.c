/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory of views; see dcx_view_memory.h.
 */
#include "dcx_view_memory.h"

#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


/* Registered memory is locked: no more than so many bytes, or so many times the
 * data. */
enum {
    UCT_DCX_VIEW_MEMORY_MIN   = 64 * UCS_MBYTE,
    UCT_DCX_VIEW_MEMORY_RATIO = 64
};


/* --- registration --------------------------------------------------------- */

/* That it cannot be is not an error: the data is packed then. */
static int
uct_dcx_view_region_reg(uct_dcx_view_region_t *region, uct_dcx_md_t *md)
{
    uct_mem_h memh;
    ucs_status_t status;

    status = uct_dcx_mem_reg(&md->super, (void*)(uintptr_t)region->begin,
                             region->end - region->begin,
                             UCT_MD_MEM_ACCESS_ALL |
                             UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
    if (status != UCS_OK) {
        return 0;
    }

    region->mem = memh;
    return 1;
}


/* Of the first 'num' */
static void uct_dcx_view_memory_dereg_first(uct_dcx_view_memory_t *memory,
                                            uct_dcx_md_t *md, unsigned num)
{
    uct_md_mem_dereg_params_t params = {
        .field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH
    };
    unsigned i;

    for (i = 0; i < num; ++i) {
        params.memh = memory->regions[i].mem;
        (void)uct_dcx_mem_dereg(&md->super, &params);
    }
}


int uct_dcx_view_memory_again(uct_dcx_view_memory_t *memory, uct_dcx_md_t *md,
                              int *is_same_p)
{
    uct_dcx_view_region_t *region;
    unsigned i;

    *is_same_p = 1;
    for (i = 0; i < memory->num; ++i) {
        region = &memory->regions[i];
        if (!uct_dcx_view_region_reg(region, md)) {
            uct_dcx_view_memory_dereg_first(memory, md, i);
            return 0;
        }
        *is_same_p  &= (region->lkey == region->mem->lkey);
        region->lkey = region->mem->lkey;
    }
    return 1;
}


void uct_dcx_view_memory_dereg(uct_dcx_view_memory_t *memory, uct_dcx_md_t *md)
{
    uct_dcx_view_memory_dereg_first(memory, md, memory->num);
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

/* What blocks were put together to so far, in order; one more than there may be
 * in the end. They are of whole pages. */
typedef struct uct_dcx_view_clusters {
    size_t                page;
    unsigned              num;
    uct_dcx_view_region_t regions[UCT_DCX_VIEW_MAX_REGIONS + 1];
} uct_dcx_view_clusters_t;


/* The two at 'index' and behind it become one. */
static void
uct_dcx_view_clusters_join(uct_dcx_view_clusters_t *clusters, unsigned index)
{
    uct_dcx_view_region_t *region = &clusters->regions[index];

    region->end = ucs_max(region->end, region[1].end);
    clusters->num--;
    memmove(region + 1, region + 2,
            (clusters->num - index - 1) * sizeof(*region));
}


/* There is one too many: those with the least between them become one, which is
 * least likely a hole. */
static void uct_dcx_view_clusters_reduce(uct_dcx_view_clusters_t *clusters)
{
    const uct_dcx_view_region_t *regions = clusters->regions;
    unsigned best                        = 0;
    unsigned i;

    for (i = 1; i + 1 < clusters->num; ++i) {
        if (regions[i + 1].begin - regions[i].end <
            regions[best + 1].begin - regions[best].end) {
            best = i;
        }
    }
    uct_dcx_view_clusters_join(clusters, best);
}


/* One that was made longer may reach others now. */
static void uct_dcx_view_clusters_close(uct_dcx_view_clusters_t *clusters,
                                        unsigned index)
{
    const uct_dcx_view_region_t *region = &clusters->regions[index];

    while ((index + 1 < clusters->num) &&
           (region[1].begin <= region->end)) {
        uct_dcx_view_clusters_join(clusters, index);
    }
}


static void uct_dcx_view_clusters_insert(uct_dcx_view_clusters_t *clusters,
                                         unsigned index, uint64_t begin,
                                         uint64_t end)
{
    uct_dcx_view_region_t *region = &clusters->regions[index];

    memmove(region + 1, region, (clusters->num - index) * sizeof(*region));
    region->begin = begin;
    region->end   = end;
    if (++clusters->num > UCT_DCX_VIEW_MAX_REGIONS) {
        uct_dcx_view_clusters_reduce(clusters);
    }
}


static int uct_dcx_view_clusters_add(void *arg, char *address, size_t bytes)
{
    uct_dcx_view_clusters_t *clusters = arg;
    uct_dcx_view_region_t *region;
    uint64_t begin = ucs_align_down_pow2((uintptr_t)address, clusters->page);
    uint64_t end   = ucs_align_up_pow2((uintptr_t)address + bytes,
                                       clusters->page);
    unsigned i;

    for (i = 0; i < clusters->num; ++i) {
        region = &clusters->regions[i];
        if (end < region->begin) {
            break;
        }
        if (begin <= region->end) {
            region->begin = ucs_min(region->begin, begin);
            region->end   = ucs_max(region->end, end);
            uct_dcx_view_clusters_close(clusters, i);
            return 0;
        }
    }

    uct_dcx_view_clusters_insert(clusters, i, begin, end);
    return 0;
}


static void uct_dcx_view_memory_clusters(uct_dcx_view_memory_t *memory,
                                         const shape_data_t *data)
{
    uct_dcx_view_clusters_t clusters = {.page = ucs_get_page_size()};

    shape_for_each(data, uct_dcx_view_clusters_add, &clusters);
    memory->num = clusters.num;
    memcpy(memory->regions, clusters.regions, sizeof(memory->regions));
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


/* Whether it is no more than may be locked for so much data */
static int uct_dcx_view_memory_is_fair(const uct_dcx_view_memory_t *memory,
                                       const shape_data_t *data)
{
    size_t bytes = 0;
    unsigned i;

    for (i = 0; i < memory->num; ++i) {
        bytes += memory->regions[i].end - memory->regions[i].begin;
    }
    return (bytes <= UCT_DCX_VIEW_MEMORY_MIN) ||
           (bytes / UCT_DCX_VIEW_MEMORY_RATIO <= shape_length(data));
}


static int uct_dcx_view_memory_try(uct_dcx_view_memory_t *memory,
                                   uct_dcx_md_t *md, const shape_data_t *data)
{
    int is_same;

    return uct_dcx_view_memory_is_fair(memory, data) &&
           uct_dcx_view_memory_again(memory, md, &is_same);
}


int uct_dcx_view_memory_reg(uct_dcx_view_memory_t *memory, uct_dcx_md_t *md,
                            const shape_data_t *data)
{
    uct_dcx_view_memory_span(memory, data);
    if (uct_dcx_view_memory_try(memory, md, data)) {
        return 1;
    }

    uct_dcx_view_memory_clusters(memory, data);
    return (memory->num > 1) && uct_dcx_view_memory_try(memory, md, data);
}
