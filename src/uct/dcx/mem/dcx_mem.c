/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registration of memory and remote keys; see dcx_mem.h. The cache is UCX's
 * ucs_rcache: ucm notifies it of unmapped memory, and it merges overlapping
 * regions.
 *
 * The cache releases a region under its own lock, and all threads that register
 * memory wait for that lock. So a region that layouts name is only invalidated
 * under the lock, by a call of this file. When the call of the cache has
 * returned, before its own call returns, the thread waits for the device,
 * deregisters the region, and completes its invalidations. Where the cache acts
 * by itself, before a fork and in the thread of UCX's events, nothing can be
 * deferred: it waits for the device under the lock.
 */
#include "dcx_mem.h"
#include "dcx_md.h"
#include "uct/dcx/base/dcx_crc.h"
#include "uct/dcx/base/dcx_figures.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucs/debug/log.h>
#include <ucs/datastruct/queue.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/sys/sys.h>
#include <uct/base/uct_iface.h>

/* Seed of the checksum; changes with the format of a key */
#define UCT_DCX_RKEY_SEED 0xdcd5


/* A remote key on the wire. @check detects anything else: bytes that were cut
 * off, or of another transport. */
typedef struct uct_dcx_packed_rkey {
    __be32 check; /* CRC of @rkey */
    __be32 rkey;
} UCS_S_PACKED uct_dcx_packed_rkey_t;

static_assert(sizeof(uct_dcx_packed_rkey_t) == UCT_DCX_RKEY_PACKED_SIZE,
              "the size that md_attr announces");


/* A call of the cache. @place is the thread's variable: finding it takes a call
 * of the C library. */
typedef struct uct_dcx_mem_call {
    ucs_queue_head_t rests; /* uct_dcx_mem_rest_t: deferred until its end */
    struct uct_dcx_mem_call **place;
} uct_dcx_mem_call_t;


/* Memory to register */
typedef struct uct_dcx_memory {
    void *address;
    size_t length;
    uint64_t flags;                  /* UCT_MD_MEM_* */
    const uct_dcx_ucx_dmabuf_t *buf; /* its dma-buf, or NULL */
} uct_dcx_memory_t;


/* This thread's current call of the cache, or NULL */
static __thread uct_dcx_mem_call_t *uct_dcx_mem_call;


/* Returns the protection that the caller requests. */
static int uct_dcx_mem_prot(uint64_t flags)
{
    static const uint64_t reads = UCT_MD_MEM_ACCESS_LOCAL_READ |
                                  UCT_MD_MEM_ACCESS_REMOTE_GET;
    static const uint64_t writes = UCT_MD_MEM_ACCESS_ALL & ~reads;

    return ((flags & reads) && !(flags & writes)) ? PROT_READ :
                                                    (PROT_READ | PROT_WRITE);
}


/* Registers memory by verbs. Returns NULL and sets errno if it is refused. */
static struct ibv_mr *uct_dcx_memory_try_reg(const uct_dcx_md_t *md,
                                             const uct_dcx_memory_t *memory,
                                             uint32_t access)
{
    struct ibv_mr *mr;

    if (ucs_likely(memory->buf == NULL)) {
        return ibv_reg_mr(md->dev.pd, memory->address, memory->length, access);
    }

    mr = ibv_reg_dmabuf_mr(md->dev.pd, memory->buf->offset, memory->length,
                           (uintptr_t)memory->address, memory->buf->fd, access);
    if (mr != NULL) {
        mr->addr = memory->address; /* libibverbs stores the offset there */
    }
    return mr;
}


/* Registers memory. Tries again up to REG_RETRY_CNT times: pages on demand may
 * be invalidated while the kernel prefetches them (UCX, ib_md.c). */
static struct ibv_mr *uct_dcx_memory_reg(const uct_dcx_md_t *md,
                                         const uct_dcx_memory_t *memory,
                                         uint32_t access)
{
    unsigned long retries = 0;
    struct ibv_mr *mr;

    do {
        mr = uct_dcx_memory_try_reg(md, memory, access);
    } while ((mr == NULL) && (errno == EAGAIN) &&
             (retries++ < md->reg_retries));
    return mr;
}


static void uct_dcx_region_reg(uct_dcx_region_t *region, uct_dcx_md_t *md,
                               const uct_dcx_memory_t *memory, uint32_t access)
{
    region->access = access;
    region->mr     = uct_dcx_memory_reg(md, memory, access);
    uct_dcx_figures_add(UCT_DCX_FIGURE_REGS, region->mr != NULL);
}


/* Registers the region a second time, for local data. If that fails, the strict
 * registration is used for both. */
static void uct_dcx_region_relax(uct_dcx_region_t *region, uct_dcx_md_t *md,
                                 const uct_dcx_memory_t *memory)
{
    struct ibv_mr *mr = NULL;

    if (md->dev.relaxed && (region->access & IBV_ACCESS_LOCAL_WRITE)) {
        mr = uct_dcx_memory_reg(md, memory,
                                IBV_ACCESS_LOCAL_WRITE |
                                    IBV_ACCESS_RELAXED_ORDERING |
                                    (region->access & IBV_ACCESS_ON_DEMAND));
    }
    region->relaxed = (mr != NULL) ? mr : region->mr;
}


/* Registers a region on demand. A page is faulted in with the rights of the
 * registration, so these are only as many as requested. If the kernel refuses
 * such memory, region->mr is NULL. */
static void uct_dcx_region_demand(uct_dcx_region_t *region, uct_dcx_md_t *md,
                                  const uct_dcx_memory_t *memory)
{
    uint32_t access = (uct_dcx_mem_prot(memory->flags) == PROT_READ) ?
                          IBV_ACCESS_REMOTE_READ :
                          md->dev.mem_access;

    uct_dcx_region_reg(region, md, memory, access | IBV_ACCESS_ON_DEMAND);
    if (region->mr == NULL) {
        ucs_debug("%s: failed to register %p of %zu bytes on demand: %m; "
                  "pinning it",
                  uct_dcx_device_name(&md->dev), memory->address,
                  memory->length);
    }
}


/* Returns 1 for memory that the processor must not touch. UCX has a cache of
 * memory of GPUs, which is searched for one address: look up both ends. If the
 * cache is disabled, any memory may be of a GPU. */
static int uct_dcx_memory_is_device(const uct_dcx_md_t *md,
                                    const uct_dcx_memory_t *memory)
{
    const char *begin = memory->address;
    ucs_memory_info_t info;

    if (memory->buf != NULL) {
        return 1;
    }

    return ucs_unlikely(md->peer_types != 0) &&
           ((ucs_memtype_cache_lookup(begin, memory->length, &info) !=
             UCS_ERR_NO_ELEM) ||
            (ucs_memtype_cache_lookup(begin + memory->length - 1, 1, &info) !=
             UCS_ERR_NO_ELEM));
}


static const char *uct_dcx_memory_hint(const uct_dcx_memory_t *memory)
{
    if (memory->buf == NULL) {
        return uct_dcx_device_reg_hint(errno);
    }
    return (errno == EBADF)  ? "; the file of the dma-buf is not open" :
           (errno == EINVAL) ? "; the kernel refuses the file, its offset, or "
                               "the length" :
           (errno == EOPNOTSUPP) ?
                               "; its exporter gives other devices no access" :
                               "";
}


static ucs_status_t uct_dcx_memory_fault(const uct_dcx_md_t *md,
                                         const uct_dcx_memory_t *memory)
{
    int silent = memory->flags & UCT_MD_MEM_FLAG_HIDE_ERRORS;

    ucs_log(silent ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR,
            "%s: failed to register %p of %zu bytes%s: %m%s",
            uct_dcx_device_name(&md->dev), memory->address, memory->length,
            (memory->buf == NULL) ? "" : " as a dma-buf",
            uct_dcx_memory_hint(memory));
    return UCS_ERR_IO_ERROR;
}


/* Registers a region with all rights, as other users of it may need more; with
 * read access only, if more is neither possible nor requested. Stores the
 * protection in @prot_p. */
static ucs_status_t uct_dcx_region_init(uct_dcx_region_t *region,
                                        uct_dcx_md_t *md,
                                        const uct_dcx_memory_t *memory,
                                        int *prot_p)
{
    region->idle      = NULL;
    region->num_idle  = 0;
    region->mr        = NULL;
    region->is_device = uct_dcx_memory_is_device(md, memory);
    *prot_p           = PROT_READ | PROT_WRITE;
    if (ucs_unlikely(region->is_device)) {
        md->has_devices = 1; /* never cleared: other threads set it, too */
    }
    if (md->has_odp && (memory->flags & UCT_MD_MEM_FLAG_NONBLOCK) &&
        !region->is_device) {
        uct_dcx_region_demand(region, md, memory);
    }
    if (region->mr == NULL) {
        uct_dcx_region_reg(region, md, memory, md->dev.mem_access);
    }
    if ((region->mr == NULL) &&
        (uct_dcx_mem_prot(memory->flags) == PROT_READ)) {
        *prot_p = PROT_READ;
        uct_dcx_region_reg(region, md, memory, IBV_ACCESS_REMOTE_READ);
    }
    if (region->mr == NULL) {
        return uct_dcx_memory_fault(md, memory);
    }

    region->pinned = (region->access & IBV_ACCESS_ON_DEMAND) ? NULL :
                                                               region->mr;
    uct_dcx_region_relax(region, md, memory);
    return UCS_OK;
}


/* Deregisters a region. Waits until the device has no layout that names it. */
static ucs_status_t uct_dcx_region_dereg(uct_dcx_md_t *md, struct ibv_mr *mr,
                                         struct ibv_mr *relaxed)
{
    int failed;

    md->hook->region(md, mr->lkey, 1);
    failed = (relaxed != mr) && (ibv_dereg_mr(relaxed) != 0);
    if ((ibv_dereg_mr(mr) != 0) || failed) {
        ucs_warn("%s: failed to deregister a region: %m",
                 uct_dcx_device_name(&md->dev));
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


static void uct_dcx_region_destroy_idle(uct_dcx_region_t *region,
                                        uct_dcx_md_t *md)
{
    uct_dcx_mkey_t *mkey, *next;

    for (mkey = region->idle; mkey != NULL; mkey = next) {
        next = mkey->next;
        (void)uct_dcx_mkey_destroy(&md->mkeys, mkey);
    }
}


/* --- the cache ------------------------------------------------------------ */

static inline void uct_dcx_mem_begin(uct_dcx_mem_call_t *call)
{
    ucs_queue_head_init(&call->rests);
    call->place  = &uct_dcx_mem_call;
    *call->place = call;
}


/* Runs deferred work: completes an invalidation, or deregisters a region. Frees
 * @rest. */
static void uct_dcx_mem_do(uct_dcx_mem_rest_t *rest)
{
    uct_completion_t *comp = rest->comp;

    if (comp != NULL) {
        uct_dcx_mem_free(rest->md, ucs_container_of(rest, uct_dcx_mem_t, rest));
        uct_invoke_completion(comp, UCS_OK);
    } else {
        (void)uct_dcx_region_dereg(rest->md, rest->mr, rest->relaxed);
        ucs_free(rest);
    }
}


/* Runs what a call of the cache has deferred. A completion may call this file
 * again. */
static UCS_F_NOINLINE void uct_dcx_mem_do_rests(uct_dcx_mem_call_t *call)
{
    while (!ucs_queue_is_empty(&call->rests)) {
        uct_dcx_mem_do(ucs_queue_pull_elem_non_empty(
            &call->rests, uct_dcx_mem_rest_t, queue));
    }
}


/* Returns 1 if the call has deferred something, which is done now. */
static inline int uct_dcx_mem_end(uct_dcx_mem_call_t *call)
{
    *call->place = NULL;
    if (ucs_likely(ucs_queue_is_empty(&call->rests))) {
        return 0;
    }

    uct_dcx_mem_do_rests(call);
    return 1;
}


/* Defers @rest to the end of this thread's call, or runs it at once if it is in
 * none. */
static void uct_dcx_mem_put_off(uct_dcx_mem_rest_t *rest)
{
    if (uct_dcx_mem_call != NULL) {
        ucs_queue_push(&uct_dcx_mem_call->rests, &rest->queue);
    } else {
        uct_dcx_mem_do(rest);
    }
}


/* Gets a region from the cache. Sets @is_freed_p to 1 if others were
 * deregistered only at the end. */
static inline ucs_status_t uct_dcx_region_find(uct_dcx_md_t *md, void *address,
                                               size_t length, uint64_t flags,
                                               uct_dcx_region_t **region_p,
                                               int *is_freed_p)
{
    ucs_rcache_region_t *cached = NULL;
    int prot                    = uct_dcx_mem_prot(flags);
    uct_dcx_mem_call_t call;
    ucs_status_t status;

    uct_dcx_mem_begin(&call);
    status = uct_dcx_ucx_rcache_get(md->rcache, address, length, prot, &flags,
                                    &cached);
    *region_p   = ucs_derived_of(cached, uct_dcx_region_t);
    *is_freed_p = uct_dcx_mem_end(&call);
    return status;
}


/* Gets a region that the cache has failed to get once; out of line. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_region_find_again(uct_dcx_md_t *md, void *address, size_t length,
                          uint64_t flags, uct_dcx_region_t **region_p)
{
    int is_freed;

    return uct_dcx_region_find(md, address, length, flags, region_p, &is_freed);
}


/* Makes a region without a cache. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_region_make(uct_dcx_md_t *md, const uct_dcx_memory_t *memory,
                    uct_dcx_region_t **region_p)
{
    ucs_status_t status;
    int prot;

    *region_p = ucs_malloc(sizeof(**region_p), "uct_dcx_region");
    if (*region_p == NULL) {
        ucs_error("%s: out of memory for a region",
                  uct_dcx_device_name(&md->dev));
        return UCS_ERR_NO_MEMORY;
    }

    (*region_p)->rest = NULL;
    status            = uct_dcx_region_init(*region_p, md, memory, &prot);
    if (status != UCS_OK) {
        ucs_free(*region_p);
    }
    return status;
}


/* Tries again if the call has deregistered other regions at its end: they
 * counted as locked memory until then. Also tries again to log the error. */
ucs_status_t uct_dcx_region_get(uct_dcx_md_t *md, void *address, size_t length,
                                uint64_t flags, uct_dcx_region_t **region_p)
{
    ucs_status_t status;
    int is_freed;

    flags &= ~UCT_MD_MEM_FLAG_NONBLOCK;
    if (md->rcache == NULL) {
        const uct_dcx_memory_t memory = {address, length, flags, NULL};

        return uct_dcx_region_make(md, &memory, region_p);
    }

    status = uct_dcx_region_find(md, address, length,
                                 flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, region_p,
                                 &is_freed);
    return (ucs_likely(status == UCS_OK) ||
            (!is_freed && (flags & UCT_MD_MEM_FLAG_HIDE_ERRORS))) ?
               status :
               uct_dcx_region_find_again(md, address, length, flags, region_p);
}


/* Destroys a region without a cache. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_region_destroy(uct_dcx_md_t *md, uct_dcx_region_t *region)
{
    ucs_status_t status         = UCS_OK;
    struct ibv_mr *const mr     = region->mr;
    struct ibv_mr *const pinned = region->pinned;

    uct_dcx_region_destroy_idle(region, md);
    if ((pinned != NULL) && (pinned != mr)) {
        status = uct_dcx_region_dereg(md, pinned, pinned);
    }
    if (uct_dcx_region_dereg(md, mr, region->relaxed) != UCS_OK) {
        status = UCS_ERR_IO_ERROR;
    }
    ucs_free(region);
    return status;
}


ucs_status_t uct_dcx_region_put(uct_dcx_md_t *md, uct_dcx_region_t *region)
{
    uct_dcx_mem_call_t call;

    if (region->rest == NULL) {
        return uct_dcx_region_destroy(md, region);
    }

    uct_dcx_mem_begin(&call);
    ucs_rcache_region_put(md->rcache, &region->super);
    (void)uct_dcx_mem_end(&call);
    return UCS_OK;
}


uct_dcx_mem_t *uct_dcx_mem_alloc(uct_dcx_md_t *md)
{
    uct_dcx_mem_t *mem;

    ucs_spin_lock(&md->mems_lock);
    mem = md->mems;
    if (mem != NULL) {
        md->mems = mem->next;
    }
    ucs_spin_unlock(&md->mems_lock);

    if (mem == NULL) {
        mem = ucs_malloc(sizeof(*mem), "uct_dcx_mem");
    }
    if (mem != NULL) {
        *mem = (uct_dcx_mem_t){.md = md, .origin = mem};
    }
    return mem;
}


void uct_dcx_mem_free(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    mem->md   = NULL;
    mem->next = NULL;
    ucs_spin_lock(&md->mems_lock);
    if (md->mems == NULL) {
        md->mems = mem;
    } else {
        md->last_mem->next = mem;
    }
    md->last_mem = mem;
    ucs_spin_unlock(&md->mems_lock);
}


void uct_dcx_mem_cleanup(uct_dcx_md_t *md)
{
    uct_dcx_mem_t *mem;

    while ((mem = md->mems) != NULL) {
        md->mems = mem->next;
        ucs_free(mem);
    }
}


/* Returns 1 for memory that is in the cache of the domain, if there is one. */
static inline int uct_dcx_mem_is_cached(const uct_dcx_md_t *md, uint64_t flags,
                                        const uct_dcx_ucx_dmabuf_t *buf)
{
    return md->has_cached_handles && (buf == NULL) &&
           !(md->has_odp && (flags & UCT_MD_MEM_FLAG_NONBLOCK));
}


/* Returns NULL, or an error text for a dma-buf that cannot be registered. The
 * kernel has the same error for a wrong place in a page as for others. */
static const char *uct_dcx_memory_check(const uct_dcx_md_t *md,
                                        const uct_dcx_memory_t *memory)
{
    uint64_t distance = (uintptr_t)memory->address ^ memory->buf->offset;

    if (!md->has_dmabuf) {
        return "the kernel or the driver lacks it, or "
               "UCX_DCX_GPU_DIRECT_RDMA=n";
    }
    return (distance & (ucs_get_page_size() - 1)) ?
               "address and offset differ within a page" :
               NULL;
}


/* Makes a region of a dma-buf. */
static ucs_status_t uct_dcx_region_make_buf(uct_dcx_md_t *md,
                                            const uct_dcx_memory_t *memory,
                                            uct_dcx_region_t **region_p)
{
    int silent        = memory->flags & UCT_MD_MEM_FLAG_HIDE_ERRORS;
    const char *fault = uct_dcx_memory_check(md, memory);

    if (fault == NULL) {
        return uct_dcx_region_make(md, memory, region_p);
    }

    ucs_log(silent ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR,
            "%s: cannot register %p of %zu bytes at offset 0x%" PRIx64
            " of a dma-buf: %s",
            uct_dcx_device_name(&md->dev), memory->address, memory->length,
            memory->buf->offset, fault);
    return md->has_dmabuf ? UCS_ERR_INVALID_PARAM : UCS_ERR_UNSUPPORTED;
}


ucs_status_t uct_dcx_mem_reg(uct_md_h tl_md, void *address, size_t length,
                             uint64_t flags, const uct_dcx_ucx_dmabuf_t *buf,
                             uct_mem_h *memh_p)
{
    const uct_dcx_memory_t memory = {address, length, flags, buf};
    uct_dcx_md_t *md              = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_dcx_mem_t *mem;
    ucs_status_t status;

    mem = uct_dcx_mem_alloc(md);
    if (mem == NULL) {
        ucs_error("%s: out of memory for a handle",
                  uct_dcx_device_name(&md->dev));
        return UCS_ERR_NO_MEMORY;
    }

    if (uct_dcx_mem_is_cached(md, flags, buf)) {
        status = uct_dcx_region_get(md, address, length, flags, &mem->region);
    } else if (buf == NULL) {
        status = uct_dcx_region_make(md, &memory, &mem->region);
    } else {
        status = uct_dcx_region_make_buf(md, &memory, &mem->region);
    }
    if (status != UCS_OK) {
        uct_dcx_mem_free(md, mem);
        return status;
    }

    mem->lkey     = mem->region->relaxed->lkey;
    mem->rkey     = mem->region->mr->rkey;
    mem->is_plain = uct_dcx_mem_is_pinned(mem) && !mem->region->is_device;
    *memh_p       = mem;
    return UCS_OK;
}


static ucs_status_t uct_dcx_mem_pin_locked(uct_dcx_mem_t *mem)
{
    uct_dcx_region_t *region = mem->region;
    uct_dcx_memory_t memory  = {.address = region->mr->addr,
                                .length  = region->mr->length};
    struct ibv_mr *mr;

    if (uct_dcx_mem_is_pinned(mem)) {
        return UCS_OK;
    }

    mr = uct_dcx_memory_reg(mem->md, &memory,
                            region->access & ~IBV_ACCESS_ON_DEMAND);
    if (mr == NULL) {
        ucs_error("%s: failed to pin %p of %zu bytes: %m%s",
                  uct_dcx_device_name(&mem->md->dev), region->mr->addr,
                  region->mr->length, uct_dcx_device_reg_hint(errno));
        return UCS_ERR_IO_ERROR;
    }

    mem->lkey = mr->lkey;
    /* readers have no lock: the key is set before */
    __atomic_store_n(&region->pinned, mr, __ATOMIC_RELEASE);
    __atomic_store_n(&mem->is_plain, 1, __ATOMIC_RELEASE);
    return UCS_OK;
}


/* One thread pins at a time: if two pinned the same memory, it would count
 * twice as locked memory, and the limit might refuse the second. */
ucs_status_t uct_dcx_mem_pin(uct_mem_h memh)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ucs_status_t status;

    if (uct_dcx_mem_is_pinned(memh)) {
        return UCS_OK;
    }

    pthread_mutex_lock(&lock);
    status = uct_dcx_mem_pin_locked(memh);
    pthread_mutex_unlock(&lock);
    return status;
}


/* Prefetches by one key of a region; a call takes less than 4 GiB. */
static ucs_status_t uct_dcx_mem_prefetch(const uct_dcx_md_t *md,
                                         const struct ibv_mr *mr, void *address,
                                         size_t length, int advice)
{
    const size_t max   = UCS_BIT(30);
    struct ibv_sge sge = {.addr = (uintptr_t)address, .lkey = mr->lkey};
    int error          = 0;

    for (; (length > 0) && (error == 0); length -= sge.length) {
        sge.length = ucs_min(length, max);
        error      = ibv_advise_mr(md->dev.pd, advice, IBV_ADVISE_MR_FLAG_FLUSH,
                                   &sge, 1);
        sge.addr += sge.length;
    }

    if (error != 0) {
        ucs_diag("%s: failed to prefetch %p: %s", uct_dcx_device_name(&md->dev),
                 address, strerror(error));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_mem_advise(uct_md_h tl_md, uct_mem_h memh, void *address,
                                size_t length, unsigned advice)
{
    const uct_dcx_md_t *md         = ucs_derived_of(tl_md, uct_dcx_md_t);
    const uct_dcx_region_t *region = ((uct_dcx_mem_t *)memh)->region;
    ucs_status_t status;
    int how;

    if ((advice != UCT_MADV_WILLNEED) || uct_dcx_mem_is_pinned(memh)) {
        return UCS_OK;
    }

    how    = (region->access & IBV_ACCESS_LOCAL_WRITE) ?
                 IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE :
                 IBV_ADVISE_MR_ADVICE_PREFETCH;
    status = uct_dcx_mem_prefetch(md, region->mr, address, length, how);
    return ((status != UCS_OK) || (region->relaxed == region->mr)) ?
               status :
               uct_dcx_mem_prefetch(md, region->relaxed, address, length, how);
}


/* Leaves the handle's key with the region for other handles, as its peers no
 * longer use it. */
static void uct_dcx_mem_return_mkey(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    uct_dcx_region_t *region = mem->region;
    uct_dcx_mkey_t *mkey     = mem->mkey;

    if (mkey == NULL) {
        return;
    }

    mem->mkey = NULL;
    ucs_spin_lock(&md->mkeys.lock);
    if (region->num_idle < UCT_DCX_MEM_MAX_IDLE) {
        mkey->next   = region->idle;
        region->idle = mkey;
        region->num_idle++;
        mkey = NULL;
    }
    ucs_spin_unlock(&md->mkeys.lock);

    if (mkey != NULL) {
        (void)uct_dcx_mkey_destroy(&md->mkeys, mkey);
    }
}


/* Called after the region's deregistration, which may have been deferred. */
static void uct_dcx_mem_invalidated(void *arg)
{
    uct_dcx_mem_t *mem = arg;

    uct_dcx_mem_put_off(&mem->rest);
}


/* Revokes the keys that @mem gave out; the region stays. Returns 1 if no peer
 * has access by them any longer. */
static int uct_dcx_mem_revoke(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    ucs_status_t status;

    if ((mem->mkey == NULL) || mem->is_bare) {
        return 0;
    }

    status    = uct_dcx_mkey_destroy(&md->mkeys, mem->mkey);
    mem->mkey = NULL;
    return status == UCS_OK;
}


ucs_status_t uct_dcx_mem_release(uct_dcx_md_t *md, uct_dcx_mem_t *mem,
                                 uct_completion_t *comp)
{
    uct_dcx_region_t *region = mem->region;
    ucs_status_t status;

    mem->md = NULL;
    if ((comp != NULL) && (region->rest != NULL) &&
        !uct_dcx_mem_revoke(md, mem)) {
        /* completes when the last holder of the region releases it */
        uct_dcx_mem_return_mkey(md, mem);
        mem->rest = (uct_dcx_mem_rest_t){.md = md, .comp = comp};
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_dcx_mem_invalidated, mem);
        return uct_dcx_region_put(md, region);
    }

    uct_dcx_mem_return_mkey(md, mem);
    status = uct_dcx_region_put(md, region);
    uct_dcx_mem_free(md, mem);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
    return status;
}


static ucs_status_t uct_dcx_rcache_reg(void *context, ucs_rcache_t *rcache,
                                       void *arg, ucs_rcache_region_t *rregion,
                                       uint16_t rcache_flags)
{
    uct_dcx_region_t *region = ucs_derived_of(rregion, uct_dcx_region_t);
    uct_dcx_memory_t memory  = {
         .address = (void *)rregion->super.start,
         .length  = rregion->super.end - rregion->super.start,
         .flags   = *(const uint64_t *)arg,
    };
    int prot = rregion->prot;
    ucs_status_t status;

    if (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) {
        memory.flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS;
    }

    region->rest = ucs_malloc(sizeof(*region->rest), "uct_dcx_mem_rest");
    if (region->rest == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status        = uct_dcx_region_init(region, context, &memory, &prot);
    rregion->prot = prot;
    if (status != UCS_OK) {
        ucs_free(region->rest);
        return status;
    }

    *region->rest = (uct_dcx_mem_rest_t){.md      = context,
                                         .mr      = region->mr,
                                         .relaxed = region->relaxed};
    return UCS_OK;
}


static void uct_dcx_rcache_dereg(void *context, ucs_rcache_t *rcache,
                                 ucs_rcache_region_t *rregion)
{
    uct_dcx_md_t *md         = context;
    uct_dcx_region_t *region = ucs_derived_of(rregion, uct_dcx_region_t);

    uct_dcx_region_destroy_idle(region, md);
    if (md->hook->region(md, region->mr->lkey, 0)) {
        uct_dcx_mem_do(region->rest);
    } else {
        uct_dcx_mem_put_off(region->rest);
    }
}


static void uct_dcx_rcache_dump(void *context, ucs_rcache_t *rcache,
                                ucs_rcache_region_t *rregion, char *buf,
                                size_t max)
{
    const struct ibv_mr *mr = ucs_derived_of(rregion, uct_dcx_region_t)->mr;

    snprintf(buf, max, "lkey 0x%x rkey 0x%x", mr->lkey, mr->rkey);
}


const ucs_rcache_ops_t uct_dcx_mem_rcache_ops = {
    UCT_DCX_UCX_RCACHE_OPS.mem_reg = uct_dcx_rcache_reg,
    .mem_dereg                     = uct_dcx_rcache_dereg,
    .dump_region                   = uct_dcx_rcache_dump,
};


/* Returns the exclusive key of this handle: its own, or else @fresh, or an idle
 * one of the region; NULL if there is none. */
static uct_dcx_mkey_t *uct_dcx_mem_take_mkey(uct_dcx_md_t *md,
                                             uct_dcx_mem_t *mem,
                                             uct_dcx_mkey_t *fresh)
{
    uct_dcx_region_t *region = mem->region;

    ucs_spin_lock(&md->mkeys.lock);
    if (mem->mkey == NULL) {
        mem->mkey = fresh;
    }
    if ((mem->mkey == NULL) && (region->idle != NULL)) {
        mem->mkey    = region->idle;
        region->idle = mem->mkey->next;
        region->num_idle--;
    }
    ucs_spin_unlock(&md->mkeys.lock);
    return mem->mkey;
}


/* Gives a handle its own key; creates one if the region has none idle. If two
 * threads create one, both use the first. */
static ucs_status_t uct_dcx_mem_get_mkey(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    uct_dcx_mkey_t *fresh;
    ucs_status_t status;

    if (uct_dcx_mem_take_mkey(md, mem, NULL) != NULL) {
        return UCS_OK;
    }

    status = uct_dcx_mem_pin(mem);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_mkey_create(&md->mkeys, mem->region->pinned,
                                 mem->region->access, &fresh);
    if ((status == UCS_OK) &&
        (uct_dcx_mem_take_mkey(md, mem, fresh) != fresh)) {
        (void)uct_dcx_mkey_destroy(&md->mkeys, fresh);
    }
    return status;
}


static __be32 uct_dcx_rkey_crc(__be32 rkey)
{
    return htobe32(uct_dcx_crc(UCT_DCX_RKEY_SEED, &rkey, sizeof(rkey)));
}


void uct_dcx_mem_pack_rkey(uint32_t rkey, void *buffer)
{
    uct_dcx_packed_rkey_t *packed = buffer;

    packed->rkey  = htobe32(rkey);
    packed->check = uct_dcx_rkey_crc(packed->rkey);
}


ucs_status_t uct_dcx_mem_pack(uct_md_h tl_md, uct_mem_h memh, int invalidate,
                              void *buffer)
{
    uct_dcx_md_t *md   = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_dcx_mem_t *mem = memh;
    ucs_status_t status;
    uint32_t rkey;

    if (!invalidate || uct_dcx_mem_is_layout(memh)) {
        rkey = uct_dcx_mem_give_rkey(memh);
    } else if (!md->dev.indirect_keys) {
        ucs_error("%s: cannot invalidate memory: the device has no indirect "
                  "mkeys",
                  uct_dcx_device_name(&md->dev));
        return UCS_ERR_UNSUPPORTED;
    } else {
        status = uct_dcx_mem_get_mkey(md, mem);
        if (status != UCS_OK) {
            return status;
        }
        rkey = mem->mkey->rkey;
    }

    uct_dcx_mem_pack_rkey(rkey, buffer);
    return UCS_OK;
}


ucs_status_t uct_dcx_rkey_unpack(uct_component_t *component, const void *buffer,
                                 UCT_DCX_UCX_RKEY_UNPACK_ARG uct_rkey_t *rkey_p,
                                 void **handle_p)
{
    const uct_dcx_packed_rkey_t *packed = buffer;
    uint32_t rkey                       = be32toh(packed->rkey);
    static unsigned num_faults;

    if (ucs_unlikely(packed->check != uct_dcx_rkey_crc(packed->rkey))) {
        ucs_log(uct_dcx_fault_level(&num_faults),
                "not a remote key of dcx (0x%08x%08x): it was truncated or "
                "overwritten, or the peer runs another version of dcx; in an "
                "MPI program, a dynamic window may be the cause",
                be32toh(packed->check), rkey);
        __atomic_fetch_add(&num_faults, 1, __ATOMIC_RELAXED);
        return UCS_ERR_INVALID_PARAM;
    }

    *rkey_p   = rkey;
    *handle_p = NULL;
    return UCS_OK;
}
