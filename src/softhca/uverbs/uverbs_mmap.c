/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mappings of the device file. The file is a memfd: mmap() succeeds at any
 * offset, and the call does not have to be intercepted (a preloaded library
 * does not see it when UCX patches mmap()). The first ioctl that needs a
 * mapping finds it in /proc/self/maps by its offset. The program may access
 * device memory before that: the file ends below the offset, the access raises
 * SIGBUS, and the handler calls uverbs_map_fault(). The only contents of the
 * file are the page of the clock, below all other offsets.
 *
 * The table is static, and an entry is claimed by an atomic state, as the
 * handler reads and fills in entries of all contexts. Other functions hold the
 * mutex of the entry's context.
 */
#define _GNU_SOURCE
#include "uverbs_mmap.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_maps.h"
#include "softhca/base/hca_sys.h"
#include "softhca/fabric/hca_segment.h"
#include "softhca/doorbell/hca_trap.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/exec/hca_uar.h"
#include "uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* UAR pages of a ConnectX whose BAR has 32 MiB; device memory takes entries,
 * too */
#define UVERBS_MAX_MAPS 8192
#define UVERBS_MAP_FILE "softhca-uverbs"

/* Offset at which libmlx5 maps the clock: the command is in bits 8 and up of
 * the number of the page. */
#define UVERBS_MAP_CLOCK ((MLX5_IB_MMAP_CLOCK_INFO << 8) * 4096l)

enum uverbs_map_state {
    UVERBS_MAP_FREE,
    UVERBS_MAP_BUSY, /* being filled in, backed or freed */
    UVERBS_MAP_EXPECTED,
    UVERBS_MAP_FOUND
};

struct uverbs_map {
    _Atomic int state;
    enum uverbs_map_kind kind;
    uint32_t id;
    struct uverbs_ctx *ctx;
    uint64_t offset;
    void *mem;
    size_t size;
    uintptr_t addr; /* UVERBS_MAP_FOUND: of the mapping */
};

static struct uverbs_map uverbs_maps[UVERBS_MAX_MAPS];

/* End of the entries ever used. It grows before an entry is expected: a handler
 * sees all that it may find. */
static _Atomic unsigned uverbs_maps_end;

static void uverbs_map_extend(unsigned end)
{
    unsigned old = atomic_load(&uverbs_maps_end);

    while ((old < end) &&
           !atomic_compare_exchange_weak(&uverbs_maps_end, &old, end)) {
    }
}

/* Writes the page from which libmlx5 converts timestamps. The device's clock
 * counts nanoseconds: no product overflows, so the page never has to be
 * rewritten, unlike that of mlx5_core. Like there, times begin at the time of
 * day, and do not follow its changes. */
static int uverbs_map_clock(int file)
{
    struct timespec now;
    struct mlx5_ib_clock_info info = {
        .mult = 1,
        .mask = UVERBS_CLOCK_MASK,
    };

    clock_gettime(CLOCK_REALTIME, &now);
    info.cycles = hca_cq_timestamp();
    info.nsec   = now.tv_sec * 1000000000ull + now.tv_nsec;
    return (pwrite(file, &info, sizeof(info), UVERBS_MAP_CLOCK) ==
            sizeof(info)) ?
               0 :
               -errno;
}

bool uverbs_map_is_file(const struct stat *st)
{
    return S_ISREG(st->st_mode) &&
           (st->st_size ==
            UVERBS_MAP_CLOCK + sizeof(struct mlx5_ib_clock_info));
}

int uverbs_map_file(int fd)
{
    int flags = hca_sys()->fcntl(fd, F_GETFD);
    int file  = memfd_create(UVERBS_MAP_FILE, MFD_CLOEXEC);
    int ret   = (file < 0) ? -errno : uverbs_map_clock(file);

    if ((ret == 0) &&
        ((flags < 0) || (syscall(SYS_dup3, file, fd,
                                 (flags & FD_CLOEXEC) ? O_CLOEXEC : 0) < 0))) {
        ret = -errno;
    }
    if (file >= 0) {
        syscall(SYS_close, file);
    }
    return ret;
}

/* Claims an entry that is in @state; the caller then sets the next state. */
static bool uverbs_map_claim(struct uverbs_map *map, int state)
{
    return atomic_compare_exchange_strong(&map->state, &state, UVERBS_MAP_BUSY);
}

static void uverbs_map_take_back(struct uverbs_ctx *ctx, struct uverbs_map *map)
{
    if (uverbs_map_claim(map, UVERBS_MAP_EXPECTED)) {
        ctx->unmapped--;
    }
    atomic_store(&map->state, UVERBS_MAP_FREE);
}

void uverbs_map_forget_all(struct uverbs_ctx *ctx)
{
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        if ((atomic_load(&map->state) != UVERBS_MAP_FREE) &&
            (map->ctx == ctx)) {
            uverbs_map_take_back(ctx, map);
        }
    }
}

void uverbs_map_forget(struct uverbs_ctx *ctx, enum uverbs_map_kind kind,
                       uint32_t id)
{
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        if ((atomic_load(&map->state) == UVERBS_MAP_FREE) ||
            (map->ctx != ctx) || (map->kind != kind) || (map->id != id)) {
            continue;
        }
        uverbs_map_take_back(ctx, map);
    }
}

/* Makes stores to the page trap. They would raise SIGBUS in any case, as the
 * file ends below the offset; write protection is cheaper. */
static int uverbs_map_uar(const struct uverbs_map *map, uintptr_t addr)
{
    int ret = hca_uar_add(map->id, (void *)addr);

    if ((ret == 0) &&
        (syscall(SYS_mprotect, addr, map->size, PROT_READ) != 0)) {
        ret = -errno;
        hca_uar_del(map->id);
    }
    return ret;
}

/* Forgets device memory that was mapped at @addr before. */
static void uverbs_map_replace(uintptr_t addr)
{
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        if ((atomic_load(&map->state) == UVERBS_MAP_FOUND) &&
            (map->kind == UVERBS_MAP_DM) && (map->addr == addr) &&
            uverbs_map_claim(map, UVERBS_MAP_FOUND)) {
            atomic_store(&map->state, UVERBS_MAP_FREE);
        }
    }
}

static void uverbs_map_found(struct uverbs_map *map, uintptr_t addr)
{
    int ret;

    if (!uverbs_map_claim(map, UVERBS_MAP_EXPECTED)) {
        return;
    }
    uverbs_map_replace(addr);
    /* device memory is mapped again, where the program expects it */
    ret = (map->kind == UVERBS_MAP_UAR) ?
              uverbs_map_uar(map, addr) :
              hca_segment_map_again(map->mem, map->size, (void *)addr);
    if (ret != 0) {
        hca_error("mapping of offset 0x%lx: %s", (long)map->offset,
                  strerror(-ret));
    }
    map->addr = addr;
    atomic_store(&map->state, UVERBS_MAP_FOUND);
}

/* Records the mappings of a context that are in @vma. @param arg  the context;
 * NULL: all */
static void uverbs_resolve_vma(const struct hca_vma *vma, void *arg)
{
    if (strstr(vma->line, " /memfd:" UVERBS_MAP_FILE) == NULL) {
        return;
    }
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        /* @vma may be several mappings: the kernel joins adjacent ones */
        if ((atomic_load(&map->state) == UVERBS_MAP_EXPECTED) &&
            ((arg == NULL) || (arg == map->ctx)) &&
            (map->offset >= vma->offset) &&
            (map->offset - vma->offset < vma->end - vma->start)) {
            uverbs_map_found(map, vma->start + (map->offset - vma->offset));
        }
    }
}

/* Resolves only @ctx, as another thread may be freeing another context. */
void uverbs_map_resolve(struct uverbs_ctx *ctx)
{
    if (ctx->unmapped == 0) {
        return;
    }
    hca_maps_walk(uverbs_resolve_vma, ctx);
    ctx->unmapped = 0;
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        ctx->unmapped += (uverbs_maps[i].ctx == ctx) &&
                         (atomic_load(&uverbs_maps[i].state) ==
                          UVERBS_MAP_EXPECTED);
    }
}

static void uverbs_fault_vma(const struct hca_vma *vma, void *arg)
{
    uintptr_t addr = *(uintptr_t *)arg;

    if ((addr >= vma->start) && (addr < vma->end)) {
        uverbs_resolve_vma(vma, NULL);
    }
}

/* Maps the device memory at @ptr, for hca_trap_bus(). If several threads fault
 * at once, one maps it and the others wait. @return true if the access can be
 * repeated. Never for UAR pages: nothing is behind them, and stores do not
 * raise SIGBUS once they are found. */
static bool uverbs_map_fault(const void *ptr)
{
    uintptr_t addr  = (uintptr_t)ptr;
    int saved_errno = errno;
    bool backed     = false;

    hca_maps_walk(uverbs_fault_vma, &addr);
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        while (atomic_load(&map->state) == UVERBS_MAP_BUSY) {
            syscall(SYS_sched_yield);
        }
        backed |= (atomic_load(&map->state) == UVERBS_MAP_FOUND) &&
                  (map->kind == UVERBS_MAP_DM) &&
                  (addr - map->addr < map->size);
    }
    errno = saved_errno;
    return backed;
}

bool uverbs_map_is_expected(const struct uverbs_ctx *ctx,
                            enum uverbs_map_kind kind, uint32_t id)
{
    for (unsigned i = 0; i < atomic_load(&uverbs_maps_end); i++) {
        const struct uverbs_map *map = &uverbs_maps[i];

        if ((atomic_load(&map->state) == UVERBS_MAP_EXPECTED) &&
            (map->ctx == ctx) && (map->kind == kind) && (map->id == id)) {
            return true;
        }
    }
    return false;
}

int uverbs_map_expect(struct uverbs_ctx *ctx,
                      const struct uverbs_map_plan *plan)
{
    int ret = hca_maps_keep(); /* else it might not be found */

    if ((ret == 0) && (plan->kind == UVERBS_MAP_DM)) {
        ret = hca_trap_bus(uverbs_map_fault);
    }
    if (ret != 0) {
        return ret;
    }
    for (unsigned i = 0; i < UVERBS_MAX_MAPS; i++) {
        struct uverbs_map *map = &uverbs_maps[i];

        if (uverbs_map_claim(map, UVERBS_MAP_FREE)) {
            map->kind   = plan->kind;
            map->id     = plan->id;
            map->ctx    = ctx;
            map->offset = plan->offset;
            map->mem    = plan->mem;
            map->size   = plan->size;
            uverbs_map_extend(i + 1);
            atomic_store(&map->state, UVERBS_MAP_EXPECTED);
            ctx->unmapped++;
            return 0;
        }
    }
    return -ENOMEM;
}
