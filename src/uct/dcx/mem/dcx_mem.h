/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registered memory: the handle that UCT passes around, its registration with
 * and without a cache, and the key that travels to the peer. Called by UCT
 * through the operations of the memory domain, from any thread (the cache has
 * its own lock).
 *
 * Each registration has a handle of its own; handles share a region if it comes
 * from the cache. A handle that is packed to be invalidated gets an indirect
 * key (dcx_mkey.h) which no other handle has: invalidating it completes at once
 * and takes nothing from those who exported the same region, or hold it. When
 * such a handle is only deregistered, its key waits with the region for the
 * next one, unless many wait already. A handle without such a key is
 * invalidated with its region: out of the cache, and complete when the last
 * holder lets go.
 *
 * With relaxed ordering of PCIe a region is registered twice: peers and
 * indirect keys use the strict registration, local data of an operation the
 * relaxed one. The completion that tells of local data is written behind them,
 * in order (PCIe: a write without the attribute passes none). A peer that
 * writes sees no such completion, so only a strict key keeps the order that it
 * asks for.
 *
 * A handle may also be that of a layout (dcx_mem_layout.h).
 *
 * Handles are used again by their domain, and freed with it: one that was
 * deregistered, and is named all the same, is known by its 'md'.
 */
#ifndef UCT_DCX_MEM_H
#define UCT_DCX_MEM_H

#include "dcx_mkey.h"
#include "uct/dcx/ucx/dcx_ucx.h"

typedef struct uct_dcx_md uct_dcx_md_t;
typedef struct uct_dcx_mem_layout uct_dcx_mem_layout_t;


/* Memory that the device knows; of one handle, or in the cache */
typedef struct uct_dcx_region {
    ucs_rcache_region_t super;    /* in the cache */
    struct ibv_mr       *mr;
    struct ibv_mr       *relaxed; /* the same with relaxed ordering, or 'mr' */
    uint32_t            access;   /* IBV_ACCESS_* of 'mr' */
    uct_dcx_mkey_t      *idle;    /* indirect keys that no handle has now */
    unsigned            num_idle; /* of them, UCT_DCX_MEM_MAX_IDLE at most */
} uct_dcx_region_t;


/* uct_mem_h of this transport */
typedef struct uct_dcx_mem {
    uint32_t         lkey;      /* of local data, maybe relaxed */
    uint32_t         rkey;      /* given to peers */
    uct_dcx_region_t *region;
    uct_dcx_mkey_t   *mkey;     /* to be invalidated, or NULL */
    struct uct_dcx_mem *origin; /* itself, or whose keys these are */
    int              is_bare;   /* the region's own key was packed */
    int              was_named; /* a layout named it: the device may have one
                                 * yet */
    uct_dcx_md_t     *md;       /* NULL: it was deregistered */
    union {
        uct_dcx_mem_layout_t *layout; /* in place of a region, or NULL */
        struct uct_dcx_mem   *next;   /* deregistered: that was before it */
    };
} uct_dcx_mem_t;


enum {
    UCT_DCX_RKEY_PACKED_SIZE = 8,

    /* as many as UCX has handles of a region in ordinary use; more are left by
     * a burst, and the device's keys are limited */
    UCT_DCX_MEM_MAX_IDLE     = 16
};


/* Addresses in it are offsets. */
static inline int uct_dcx_mem_is_layout(const void *memh)
{
    return ((const uct_dcx_mem_t*)memh)->region == NULL;
}


static UCS_F_ALWAYS_INLINE uint32_t uct_dcx_mem_lkey(uct_mem_h memh)
{
    return ((const uct_dcx_mem_t*)memh)->lkey;
}


/* The region's own key: a peer that gets it keeps access for as long as the
 * region is registered. */
static inline uint32_t uct_dcx_mem_give_rkey(uct_mem_h memh)
{
    uct_dcx_mem_t *mem = memh;

    mem->origin->is_bare = 1;
    return mem->rkey;
}


/* Names it in an indirect key, by which peers may write. */
static inline uint32_t uct_dcx_mem_strict_lkey(const uct_dcx_mem_t *mem)
{
    return uct_dcx_mem_is_layout(mem) ? mem->lkey : mem->region->mr->lkey;
}


/* A handle, all zero but for its domain; NULL: memory is short */
uct_dcx_mem_t *uct_dcx_mem_alloc(uct_dcx_md_t *md);
void uct_dcx_mem_free(uct_dcx_mem_t *mem);

/* The domain goes: so does the memory of handles that were freed. */
void uct_dcx_mem_cleanup(uct_dcx_md_t *md);

/* Registers memory without a handle: finds a region in the cache of the domain,
 * or makes one. */
ucs_status_t
uct_dcx_region_get(uct_dcx_md_t *md, void *address, size_t length,
                   uint64_t flags, uct_dcx_region_t **region_p);
ucs_status_t uct_dcx_region_put(uct_dcx_md_t *md, uct_dcx_region_t *region);

/* UCT's uct_md_mem_reg() of memory: by the cache of the domain if it has one,
 * else each call registers. */
ucs_status_t uct_dcx_mem_reg(uct_md_h md, void *address, size_t length,
                             uint64_t flags, uct_mem_h *memh_p);

/* Lets go of a handle of memory that no layout names any more. If 'comp' is not
 * NULL, nobody reaches the memory by it when that is invoked. */
ucs_status_t uct_dcx_mem_release(uct_dcx_md_t *md, uct_dcx_mem_t *mem,
                                 uct_completion_t *comp);

/* Of the cache of a domain, which is their context: regions are
 * uct_dcx_region_t. */
extern const ucs_rcache_ops_t uct_dcx_mem_rcache_ops;

/* Remote keys: UCT_DCX_RKEY_PACKED_SIZE bytes, checked on arrival. */
ucs_status_t
uct_dcx_mem_pack(uct_md_h md, uct_mem_h memh, int invalidate, void *buffer);
void uct_dcx_mem_pack_rkey(uint32_t rkey, void *buffer);
ucs_status_t
uct_dcx_rkey_unpack(uct_component_t *component, const void *buffer,
                    UCT_DCX_UCX_RKEY_UNPACK_ARG uct_rkey_t *rkey_p,
                    void **handle_p);

#endif
