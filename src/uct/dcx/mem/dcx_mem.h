/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registered memory: the handle that UCT passes around, its registration with
 * and without a cache, and the key that is sent to a peer. Called by UCT
 * through the operations of the memory domain, from any thread (the cache has
 * its own lock).
 *
 * Each registration of UCT has its own handle; handles share a region if it
 * comes from the cache. Views have regions without handles. A handle that is
 * packed for invalidation gets an indirect key (dcx_mkey.h) that no other
 * handle has. Invalidating it completes at once, and does not affect other
 * handles of the region, nor their peers. When such a handle is only
 * deregistered, its key stays with the region for the next handle, up to a
 * limit. A handle that has no such key, or that also packed its region's own
 * key, is invalidated with its region. A region of the cache is removed from
 * it; the invalidation completes when the last holder releases the region. Any
 * other region has one handle, and is deregistered at once.
 *
 * A region with local write access is registered twice if the domain uses
 * relaxed ordering of PCIe (md->dev.relaxed): peers and indirect keys use the
 * strict registration, local data of an operation the relaxed one. If the
 * second registration fails, the strict one serves both. The completion is
 * written after local data, in order (PCIe: a write without the attribute
 * passes no other). A peer that writes sees no such completion, so only a
 * strict key keeps the order that it requests.
 *
 * A region that is registered on demand (UCT_MD_MEM_FLAG_NONBLOCK) is not
 * pinned, and is not in the cache. Mlx5 devices do not page through indirect
 * keys (MLNX_OFED User Manual, On-Demand-Paging), and the kernel cannot resolve
 * a fault of a queue that DEVX has created. So the first layout, indirect key
 * or tagged receive that needs such a region registers it a second time,
 * pinned (uct_dcx_mem_pin()).
 *
 * Memory of a GPU is registered as a dma-buf if UCX passes one, otherwise like
 * host memory, which takes peer memory (dcx_gpu.h). Its region is marked, as
 * the processor must not touch it: operations on it are never copied. Regions
 * of dma-bufs are not in the cache, which finds memory by its address.
 *
 * A handle may also be that of a layout (dcx_mem_layout.h).
 *
 * A domain reuses handles, and frees their memory when it closes. So the use of
 * a deregistered handle is recognised by its @md.
 */
#ifndef UCT_DCX_MEM_H
#define UCT_DCX_MEM_H

#include "dcx_mkey.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/datastruct/queue_types.h>

typedef struct uct_dcx_md uct_dcx_md_t;
typedef struct uct_dcx_mem_layout uct_dcx_mem_layout_t;


/* Work deferred until after a call of the cache: a region to deregister, or an
 * invalidation to complete */
typedef struct uct_dcx_mem_rest {
    ucs_queue_elem_t queue;
    uct_dcx_md_t *md;
    struct ibv_mr *mr;
    struct ibv_mr *relaxed;
    uct_completion_t *comp; /* NULL: deregister the region */
} uct_dcx_mem_rest_t;


/* Registered memory; of one handle, or in the cache */
typedef struct uct_dcx_region {
    ucs_rcache_region_t super; /* the cache's own data */
    struct ibv_mr *mr;
    struct ibv_mr *relaxed;   /* registered with relaxed ordering, or @mr */
    struct ibv_mr *pinned;    /* @mr; on demand: the pinned registration, NULL
                               * until it is needed */
    uint32_t access;          /* IBV_ACCESS_* of @mr */
    int is_device;            /* the processor must not touch this memory */
    uct_dcx_mkey_t *idle;     /* indirect keys without a handle */
    unsigned num_idle;        /* number of these, UCT_DCX_MEM_MAX_IDLE at
                               * most */
    uct_dcx_mem_rest_t *rest; /* its deregistration; NULL: not in the cache */
} uct_dcx_region_t;


/* uct_mem_h of this transport */
typedef struct uct_dcx_mem {
    uint32_t lkey; /* for local data, may be relaxed */
    uint32_t rkey; /* for peers */
    uct_dcx_region_t *region;
    uct_dcx_mkey_t *mkey;       /* indirect key, or NULL */
    struct uct_dcx_mem *origin; /* itself, or the handle that owns these keys */
    int is_plain;               /* pinned host memory: no layout, no place; set
                                 * after the keys that pinning has changed */
    int is_bare;                /* a peer may have @rkey */
    int was_named;              /* a layout named it: the device may still have
                                 * that layout */
    uct_dcx_md_t *md;           /* NULL: deregistered */
    union {
        uct_dcx_mem_layout_t *layout; /* instead of a region, or NULL */
        struct uct_dcx_mem *next;     /* free handle: the next one */
    };
    uct_dcx_mem_rest_t rest; /* its invalidation */
} uct_dcx_mem_t;


enum {
    UCT_DCX_RKEY_PACKED_SIZE = 8,

    /* Maximum of a region's idle keys: UCX's usual number of handles of a
     * region. Further ones are destroyed, as the device's keys are limited. */
    UCT_DCX_MEM_MAX_IDLE = 16
};


/* Returns 1 for the handle of a layout or a place, which has no region; its
 * addresses are not virtual addresses. */
static inline int uct_dcx_mem_is_layout(const void *memh)
{
    return ((const uct_dcx_mem_t *)memh)->region == NULL;
}


static UCS_F_ALWAYS_INLINE uint32_t uct_dcx_mem_lkey(uct_mem_h memh)
{
    return ((const uct_dcx_mem_t *)memh)->lkey;
}


/* Returns the key of a region or a layout, and marks it as given: a peer that
 * gets it keeps access until the region is deregistered, or the layout is
 * invalidated. */
static inline uint32_t uct_dcx_mem_give_rkey(uct_mem_h memh)
{
    uct_dcx_mem_t *mem = memh;

    mem->origin->is_bare = 1;
    return mem->rkey;
}


/* Returns the pinned registration, or NULL. Any thread may pin. */
static inline const struct ibv_mr *
uct_dcx_region_pinned(const uct_dcx_region_t *region)
{
    return __atomic_load_n(&region->pinned, __ATOMIC_ACQUIRE);
}


/* Returns 0 for memory that is registered on demand, until it is pinned. */
static inline int uct_dcx_mem_is_pinned(const uct_dcx_mem_t *mem)
{
    return uct_dcx_mem_is_layout(mem) ||
           (uct_dcx_region_pinned(mem->region) != NULL);
}


/* Returns 1 for pinned host memory that has its keys. */
static inline int uct_dcx_mem_is_plain(uct_mem_h memh)
{
    const uct_dcx_mem_t *mem = memh;

    return __atomic_load_n(&mem->is_plain, __ATOMIC_ACQUIRE);
}


/* Returns the key that an indirect key with remote write access has to name. An
 * indirect key must not name memory that is not pinned. */
static inline uint32_t uct_dcx_mem_strict_lkey(const uct_dcx_mem_t *mem)
{
    const uct_dcx_region_t *region = mem->region;
    const struct ibv_mr *pinned;

    if (uct_dcx_mem_is_layout(mem)) {
        return mem->lkey;
    }

    pinned = uct_dcx_region_pinned(region);
    return (pinned != NULL) ? pinned->lkey : region->mr->lkey;
}


/* Returns a handle, all zero except @md and @origin; NULL if memory is
 * short. */
uct_dcx_mem_t *uct_dcx_mem_alloc(uct_dcx_md_t *md);

/* Returns a handle to the domain, which may reuse it. */
void uct_dcx_mem_free(uct_dcx_md_t *md, uct_dcx_mem_t *mem);

/* Frees the memory of all handles, when the domain closes. */
void uct_dcx_mem_cleanup(uct_dcx_md_t *md);

/* Register and deregister memory without a handle. The first finds a region in
 * the cache of the domain, or makes one, never on demand. */
ucs_status_t uct_dcx_region_get(uct_dcx_md_t *md, void *address, size_t length,
                                uint64_t flags, uct_dcx_region_t **region_p);
ucs_status_t uct_dcx_region_put(uct_dcx_md_t *md, uct_dcx_region_t *region);

/* Implements uct_md_mem_reg() for memory: uses the cache of the domain if
 * md->has_cached_handles, except for dma-bufs and memory on demand; otherwise
 * registers on each call. @buf: the dma-buf of the memory, or NULL. With a
 * dma-buf, @address is the first address in operations; it and the offset in
 * the dma-buf must be equal modulo the page size. */
ucs_status_t uct_dcx_mem_reg(uct_md_h md, void *address, size_t length,
                             uint64_t flags, const uct_dcx_ucx_dmabuf_t *buf,
                             uct_mem_h *memh_p);

/* Registers memory on demand a second time, pinned, unless it is pinned. Logs
 * errors. */
ucs_status_t uct_dcx_mem_pin(uct_mem_h memh);

/* Implements uct_md_mem_advise(). UCT_MADV_WILLNEED faults in pages of a region
 * on demand that is not pinned, and waits for them. Otherwise, does nothing. */
ucs_status_t uct_dcx_mem_advise(uct_md_h md, uct_mem_h memh, void *address,
                                size_t length, unsigned advice);

/* Releases a handle of memory that no layout names any longer. Invokes @comp,
 * if it is not NULL, when no peer has access by this handle any longer. */
ucs_status_t uct_dcx_mem_release(uct_dcx_md_t *md, uct_dcx_mem_t *mem,
                                 uct_completion_t *comp);

/* Callbacks of a domain's cache; their context is the domain, their regions are
 * uct_dcx_region_t. */
extern const ucs_rcache_ops_t uct_dcx_mem_rcache_ops;

/* Pack and unpack remote keys: UCT_DCX_RKEY_PACKED_SIZE bytes, checked on
 * arrival. @invalidate: packs an indirect key of this handle alone; of a
 * layout, its own. */
ucs_status_t uct_dcx_mem_pack(uct_md_h md, uct_mem_h memh, int invalidate,
                              void *buffer);
void uct_dcx_mem_pack_rkey(uint32_t rkey, void *buffer);
ucs_status_t uct_dcx_rkey_unpack(uct_component_t *component, const void *buffer,
                                 UCT_DCX_UCX_RKEY_UNPACK_ARG uct_rkey_t *rkey_p,
                                 void **handle_p);

#endif
