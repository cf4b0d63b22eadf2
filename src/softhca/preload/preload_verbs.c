/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The functions that open a context. Each calls the real one and then makes
 * libmlx5 allocate rings and doorbell records of the context from the arena,
 * where other processes reach them, unless a variable chooses the memory
 * (preload_chooses_memory()). Each also replaces the one function of libmlx5
 * that would read a register of the device, its clock. This library is not
 * linked with libibverbs: it is preloaded into programs that never load that,
 * and UCX and Open MPI load it where RTLD_NEXT does not see it.
 */
#define _GNU_SOURCE
#include "preload.h"
#include "softhca/dispatch/dispatch.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/base/hca_log.h"
#include "softhca/obj/hca_cq.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function of a library that is loaded already. */
struct preload_symbol {
    const char *lib, *name, *version;
};

static const struct preload_symbol preload_open_device = {
    "libibverbs.so.1",
    "ibv_open_device",
    "IBVERBS_1.1",
};
static const struct preload_symbol preload_import_device = {
    "libibverbs.so.1",
    "ibv_import_device",
    "IBVERBS_1.10",
};
static const struct preload_symbol preload_close_device = {
    "libibverbs.so.1",
    "ibv_close_device",
    "IBVERBS_1.1",
};
static const struct preload_symbol preload_dv_open_device = {
    "libmlx5.so.1",
    "mlx5dv_open_device",
    "MLX5_1.7",
};
static const struct preload_symbol preload_dv_set_attr = {
    "libmlx5.so.1",
    "mlx5dv_set_context_attr",
    "MLX5_1.2",
};

/* Finds the function, first in another preloaded library behind this one. */
static void *preload_find(const struct preload_symbol *symbol)
{
    void *func = dlvsym(RTLD_NEXT, symbol->name, symbol->version);
    void *lib;

    if (func != NULL) {
        return func;
    }
    lib = dlopen(symbol->lib, RTLD_LAZY | RTLD_NOLOAD);
    if (lib != NULL) {
        func = dlvsym(lib, symbol->name, symbol->version);
        dlclose(lib); /* its other users keep it */
    }
    if (func == NULL) {
        hca_error("%s@%s is not in the %s that is loaded; softhca needs "
                  "rdma-core 44 or newer",
                  symbol->name, symbol->version, symbol->lib);
        errno = ENOSYS;
    }
    return func;
}

static void *preload_arena_alloc(size_t size, void *arg)
{
    (void)arg;
    return hca_arena_alloc(size);
}

static void preload_arena_free(void *ptr, void *arg)
{
    (void)arg;
    hca_arena_free(ptr);
}

/* Returns true if a variable makes libmlx5 use huge pages, or others, for its
 * queues (its mlx5_get_alloc_type(), mlx5_use_huge()), which it would ignore
 * with an allocator. Such memory is shared like a program's (uverbs_rings.h).
 * Returns false for contiguous pages: libmlx5 would map them from the device,
 * which a kernel refuses but /dev/zero does not. */
static bool preload_chooses_memory(void)
{
    static const char *const names[] = {
        "MLX_QP_ALLOC_TYPE", "MLX_CQ_ALLOC_TYPE", "MLX_SRQ_ALLOC_TYPE",
        "HUGE_RC",           "HUGE_UC",           "HUGE_UD",
        "HUGE_CQ",
    };
    bool chooses = false;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if ((value != NULL) &&
            (strcasestr(value, "CONTIG") || !strcasecmp(value, "ALL"))) {
            return false;
        }
        chooses = chooses || (value != NULL);
    }
    return chooses;
}

static int preload_set_allocators(struct ibv_context *ctx)
{
    struct mlx5dv_ctx_allocators allocators = {
        .alloc = preload_arena_alloc,
        .free  = preload_arena_free,
    };
    __typeof__(mlx5dv_set_context_attr) *set_attr =
        (__typeof__(set_attr))(uintptr_t)preload_find(&preload_dv_set_attr);
    int ret;

    if (preload_chooses_memory()) {
        return 0;
    }
    if (set_attr == NULL) {
        return ENOSYS;
    }
    ret = set_attr(ctx, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &allocators);
    if (ret != 0) {
        hca_error("%s: libmlx5 refuses to allocate from the fabric: %s",
                  ctx->device->name, strerror(ret));
    }
    return ret;
}

/* Replaces mlx5_query_rt_values() of libmlx5: a cycle of this clock is a
 * nanosecond. */
static int preload_query_rt_values(struct ibv_context *ctx,
                                   struct ibv_values_ex *values)
{
    (void)ctx;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK) {
        return EINVAL;
    }
    if (values->comp_mask == 0) {
        return 0;
    }
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    values->raw_clock = (struct timespec){.tv_nsec = hca_cq_timestamp()};
    return 0;
}

/* Returns @ctx of an opener, set up if it is one of ours. */
static struct ibv_context *preload_opened_context(struct ibv_context *ctx)
{
    __typeof__(ibv_close_device) *close_device;
    int ret;

    if ((ctx == NULL) || !dispatch_is_open(ctx->cmd_fd)) {
        return ctx;
    }
    ret = preload_set_allocators(ctx);
    if (ret == 0) {
        verbs_get_ctx(ctx)->query_rt_values = preload_query_rt_values;
        return ctx;
    }
    close_device = (__typeof__(close_device))(uintptr_t)preload_find(
        &preload_close_device);
    if (close_device != NULL) {
        close_device(ctx);
    }
    errno = ret;
    return NULL;
}

PRELOAD_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    __typeof__(ibv_open_device) *open_device =
        (__typeof__(open_device))(uintptr_t)preload_find(&preload_open_device);

    return (open_device == NULL) ? NULL :
                                   preload_opened_context(open_device(device));
}

PRELOAD_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    __typeof__(ibv_import_device) *import_device =
        (__typeof__(import_device))(uintptr_t)preload_find(
            &preload_import_device);

    return (import_device == NULL) ?
               NULL :
               preload_opened_context(import_device(cmd_fd));
}

PRELOAD_EXPORT struct ibv_context *
mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    __typeof__(mlx5dv_open_device) *open_device =
        (__typeof__(open_device))(uintptr_t)preload_find(
            &preload_dv_open_device);

    return (open_device == NULL) ?
               NULL :
               preload_opened_context(open_device(device, attr));
}
