/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The component "dcx" and its memory domains. UCT calls these functions to
 * list, open, query and close them; see uct/base/uct_component.h and uct_md.h
 * for the contract. Registration itself is in dcx_mem.c.
 */
#include "dcx_md.h"
#include "dcx_mem_place.h"
#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/dev/dcx_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <ucm/api/ucm.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/sys/string.h>
#include <ucs/sys/stubs.h>
#include <ucs/type/init_once.h>
#include <uct/base/uct_iface.h>
#include <unistd.h>


/* Measured by UCX for its own registration of host memory (ib_md.c) */
#define UCT_DCX_MD_REG_COST_BASE     16e-6
#define UCT_DCX_MD_REG_COST_PER_BYTE 0.06e-9

/* File descriptors: two of the device, two of the cache, three of UCX's async
 * thread if this process has none, and some for files that are read, and for
 * the device's library */
#define UCT_DCX_MD_FILES 14


static const uct_dcx_md_hook_t *uct_dcx_md_the_hook;
static void (*uct_dcx_md_watch)(uct_md_h md, int is_open);


static ucs_config_field_t uct_dcx_md_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_dcx_md_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},

    {"RCACHE", UCT_DCX_UCX_RCACHE_DEFAULT,
     "Keep registered memory in a cache until it is unmapped. \"try\"\n"
     "continues without a cache if it cannot be created, \"y\" fails.\n"
     "\"auto\" is \"try\" for memory of zero-copy datatypes, \"n\" for other\n"
     "memory: the default where UCP has a cache for all transports\n"
     "(UCX_RCACHE_*).",
     ucs_offsetof(uct_dcx_md_config_t, rcache), UCS_CONFIG_TYPE_TERNARY_AUTO},

    {"", "", NULL, ucs_offsetof(uct_dcx_md_config_t, rcache_config),
     UCS_CONFIG_TYPE_TABLE(UCT_DCX_UCX_RCACHE_TABLE)},

    {"ODP", "try",
     "On-demand paging: register memory without pinning it where a program\n"
     "asks for that (UCP_MEM_MAP_NONBLOCK, UCX_REG_NONBLOCK_MEM_TYPES). The\n"
     "device then faults each page in when it first needs it. \"try\" pins\n"
     "the memory if the device cannot page on DC, \"y\" fails, \"n\" always\n"
     "pins it.",
     ucs_offsetof(uct_dcx_md_config_t, odp), UCS_CONFIG_TYPE_TERNARY},

    {"EXT_ATOMICS", "try",
     "Use extended atomics: 32-bit operations, AND, OR, XOR and SWAP. \"try\"\n"
     "and \"y\" use those that the device reports. If a device has atomics\n"
     "but cannot be queried by DEVX, they use all of them; set \"n\" if it\n"
     "lacks some.",
     ucs_offsetof(uct_dcx_md_config_t, ext_atomics), UCS_CONFIG_TYPE_TERNARY},

    /* of the site, see base/dcx_site.h */
    {"IB_", "", NULL, ucs_offsetof(uct_dcx_md_config_t, site),
     UCS_CONFIG_TYPE_TABLE(uct_dcx_site_md_table)},

    {"IB_MLX5_", "", NULL, ucs_offsetof(uct_dcx_md_config_t, site),
     UCS_CONFIG_TYPE_TABLE(uct_dcx_site_md_mlx5_table)},

    {"PROFILE", "auto",
     "Path of the device profile that dcx_selftest has written. It enables\n"
     "layouts of strided data that passed the test, and raises thresholds\n"
     "that are \"auto\", such as STRIDED_COPY. \"auto\" uses the first that\n"
     "exists: the user's (~/.config/dcx), the site's, the installed one.\n"
     "\"none\" uses no profile.",
     ucs_offsetof(uct_dcx_md_config_t, profile), UCS_CONFIG_TYPE_STRING},

    {"UMR_SLOTS", "64",
     "Number of mkeys that cache layouts of strided data, 1-4096, for each of\n"
     "four sizes: up to 4 pieces; up to 52 (20 unless a profile says that a\n"
     "WQE takes more); up to 1028; and more. Using a cached layout again costs\n"
     "nothing. A new one replaces the least recently used one. The mkeys are\n"
     "created on demand.",
     ucs_offsetof(uct_dcx_md_config_t, umr_slots), UCS_CONFIG_TYPE_UINT},

    {"UMR_LAYOUTS", "1024",
     "Maximum number of layouts that are memory handles\n"
     "(uct_dcx_layout_create()), 1-65536, for each of the sizes of UMR_SLOTS.",
     ucs_offsetof(uct_dcx_md_config_t, umr_layouts), UCS_CONFIG_TYPE_UINT},

    {"UMR_MAX_ENTRIES", "8192",
     "Maximum number of pieces in a layout, 4-65528. The device may support\n"
     "less.",
     ucs_offsetof(uct_dcx_md_config_t, umr_max_entries), UCS_CONFIG_TYPE_UINT},

    {.name = NULL},
};


void uct_dcx_md_set_hook(const uct_dcx_md_hook_t *hook)
{
    uct_dcx_md_the_hook = hook;
}


void uct_dcx_md_set_watch(void (*watch)(uct_md_h md, int is_open))
{
    uct_dcx_md_watch = watch;
}


/* Returns the type of places, or 0 if the device cannot make keys for them. */
static uint64_t uct_dcx_md_place_types(const uct_dcx_md_t *md)
{
    ucs_memory_type_t type = uct_dcx_mem_places_type();

    return ((type != UCS_MEMORY_TYPE_UNKNOWN) && md->dev.has_devx &&
            md->dev.umr.has_keys) ?
               UCS_BIT(type) :
               0;
}


static void uct_dcx_md_query(uct_md_h tl_md, uct_dcx_ucx_md_attr_t *attr)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);

    attr->reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) |
                          uct_dcx_md_place_types(md) | md->gpu_types;
    attr->has_dmabuf       = md->has_dmabuf;
    attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->demand_mem_types = md->has_odp ? UCS_BIT(UCS_MEMORY_TYPE_HOST) : 0;
    attr->needs_keys       = 1;
    attr->can_invalidate   = md->dev.indirect_keys;
    attr->can_invalidate_atomics = md->dev.indirect_keys &&
                                   md->dev.indirect_atomics;
    attr->max_reg    = md->dev.attr.max_mr_size;
    attr->rkey_size  = UCT_DCX_RKEY_PACKED_SIZE;
    attr->reg_cost   = md->reg_cost;
    attr->local_cpus = md->dev.local_cpus;
}


/* Called in the thread of events. */
static void uct_dcx_md_fatal(uct_dcx_async_user_t *user,
                             const struct ibv_async_event *event)
{
    uct_dcx_md_t *md = ucs_container_of(user, uct_dcx_md_t, fatal);

    if (event->event_type == IBV_EVENT_DEVICE_FATAL) {
        uct_dcx_async_mark(&md->dev.has_failed);
    }
}


static void uct_dcx_md_cleanup_handles(uct_dcx_md_t *md)
{
    md->hook->close(md);
    uct_dcx_mem_places_cleanup(md);
    uct_dcx_mem_cleanup(md);
    ucs_spinlock_destroy(&md->mems_lock);
}


static ucs_status_t uct_dcx_md_init_handles(uct_dcx_md_t *md,
                                            const uct_dcx_md_config_t *config)
{
    ucs_status_t status = ucs_spinlock_init(&md->mems_lock, 0);

    if (status != UCS_OK) {
        return status;
    }

    status = md->hook->open(md, config);
    if (status != UCS_OK) {
        ucs_spinlock_destroy(&md->mems_lock);
    }
    return status;
}


static void uct_dcx_md_close(uct_md_h tl_md)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);

    if (uct_dcx_md_watch != NULL) {
        uct_dcx_md_watch(tl_md, 0);
    }
    uct_dcx_async_cleanup(&md->async);
    if (md->rcache != NULL) {
        ucs_rcache_destroy(md->rcache);
    }
    uct_dcx_md_cleanup_handles(md);
    uct_dcx_mkeys_cleanup(&md->mkeys);
    uct_dcx_device_close(&md->dev);
    ucs_free(md);
}


static ucs_status_t uct_dcx_md_mem_reg(uct_md_h tl_md, void *address,
                                       size_t length, uint64_t flags,
                                       const uct_dcx_ucx_dmabuf_t *buf,
                                       uct_mem_h *memh_p)
{
    if (ucs_unlikely(uct_dcx_mem_is_place((uintptr_t)address))) {
        return uct_dcx_mem_place_get(ucs_derived_of(tl_md, uct_dcx_md_t),
                                     (uintptr_t)address, length, flags, memh_p);
    }
    return uct_dcx_mem_reg(tl_md, address, length, flags, buf, memh_p);
}


/* Returns the completion to invoke when the invalidation is complete; NULL: no
 * invalidation is requested. */
static uct_completion_t *
uct_dcx_md_invalidation(const uct_md_mem_dereg_params_t *params)
{
    return (UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
            UCT_MD_MEM_DEREG_FLAG_INVALIDATE) ?
               UCT_MD_MEM_DEREG_FIELD_VALUE(params, comp, FIELD_COMPLETION,
                                            NULL) :
               NULL;
}


ucs_status_t uct_dcx_md_mem_dereg(uct_md_h tl_md,
                                  const uct_md_mem_dereg_params_t *params)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_completion_t *comp;
    uct_dcx_mem_t *mem;
    int is_layout;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, md->dev.indirect_keys);

    mem  = params->memh;
    comp = uct_dcx_md_invalidation(params);
    if (mem->md != md) {
        ucs_error("%s: memory handle %p belongs to another memory domain, or "
                  "was already deregistered",
                  uct_dcx_device_name(&md->dev), mem);
        return UCS_ERR_INVALID_PARAM;
    }

    is_layout = uct_dcx_mem_is_layout(mem); /* the hook may free it */
    if (mem->was_named || is_layout) {
        md->hook->handle(md, mem);
    }

    if (!is_layout) {
        return uct_dcx_mem_release(md, mem, comp);
    }

    if (comp != NULL) {
        uct_invoke_completion(comp, UCS_OK);
    }
    return UCS_OK;
}


/* Omits functions that UCT calls only if a capability is announced. */
static uct_dcx_ucx_md_ops_t uct_dcx_md_ops = {
    .super =
        {
            UCT_DCX_UCX_MD_OPS.close = uct_dcx_md_close,
            .mem_advise              = uct_dcx_mem_advise,
            .mem_dereg               = uct_dcx_md_mem_dereg,
        },
    .query     = uct_dcx_md_query,
    .mem_reg   = uct_dcx_md_mem_reg,
    .mkey_pack = uct_dcx_mem_pack,
};


/* Returns the events of UCM that end registrations in the cache. */
static int uct_dcx_md_cache_events(const uct_dcx_md_t *md)
{
    return UCM_EVENT_VM_UNMAPPED |
           ((md->peer_types != 0) ? UCM_EVENT_MEM_TYPE_FREE : 0);
}


static ucs_status_t uct_dcx_md_init_rcache(uct_dcx_md_t *md,
                                           const uct_dcx_md_config_t *config)
{
    const char *name = uct_dcx_device_name(&md->dev);
    ucs_status_t status;

    md->reg_cost = ucs_linear_func_make(UCT_DCX_MD_REG_COST_BASE,
                                        UCT_DCX_MD_REG_COST_PER_BYTE);
    if ((config->rcache == UCS_NO) ||
        ((config->rcache == UCS_AUTO) &&
         (uct_dcx_mem_places_type() == UCS_MEMORY_TYPE_UNKNOWN))) {
        return UCS_OK;
    }

    status = uct_dcx_ucx_rcache_create(
        &config->rcache_config, uct_dcx_md_cache_events(md),
        sizeof(uct_dcx_region_t), &uct_dcx_mem_rcache_ops, md, name,
        &md->rcache);
    if (status == UCS_OK) {
        md->has_cached_handles = (config->rcache != UCS_AUTO);
        if (md->has_cached_handles) {
            md->reg_cost = ucs_linear_func_make(
                uct_dcx_ucx_rcache_overhead(&config->rcache_config), 0);
        }
        return UCS_OK;
    }

    md->rcache = NULL;
    if (config->rcache == UCS_YES) {
        ucs_error("%s: failed to create a registration cache: %s; "
                  "UCX_DCX_RCACHE=try continues without it",
                  name, ucs_status_string(status));
        return status;
    }

    ucs_debug("%s: failed to create a registration cache: %s", name,
              ucs_status_string(status));
    return UCS_OK;
}


static ucs_status_t uct_dcx_md_init_fork(const uct_dcx_md_config_t *config)
{
    /* Before rdma-core 52 ibv_fork_init() does not check whether it is
     * needed. */
    if ((config->site.fork_init == UCS_NO) ||
        (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED) ||
        (ibv_fork_init() == 0)) {
        return UCS_OK;
    }

    if (config->site.fork_init == UCS_YES) {
        ucs_error("ibv_fork_init() failed: %m; call it before memory is "
                  "registered, or set UCX_DCX_FORK_INIT=try");
        return UCS_ERR_IO_ERROR;
    }

    ucs_debug("ibv_fork_init() failed: %m");
    return UCS_OK;
}


static ucs_status_t uct_dcx_md_init_order(uct_dcx_md_t *md,
                                          const uct_dcx_md_config_t *config)
{
    uct_dcx_device_t *dev = &md->dev;

    if ((config->site.relaxed == UCS_YES) && !dev->has_relaxed) {
        ucs_error("%s=y: %s does not support it; set it to try",
                  uct_dcx_site_variable(uct_dcx_md_config_table,
                                        "PCI_RELAXED_ORDERING"),
                  uct_dcx_device_name(dev));
        return UCS_ERR_UNSUPPORTED;
    }

    dev->relaxed = dev->has_relaxed && ((config->site.relaxed == UCS_AUTO) ?
                                            uct_dcx_ucx_cpu_prefers_relaxed() :
                                            (config->site.relaxed != UCS_NO));
    return UCS_OK;
}


static ucs_status_t uct_dcx_md_init_odp(uct_dcx_md_t *md,
                                        const uct_dcx_md_config_t *config)
{
    const char *fault = md->dev.odp_fault;

    if ((config->odp == UCS_YES) && (fault != NULL)) {
        ucs_error("UCX_DCX_ODP=y: %s cannot register memory on demand: %s; set "
                  "it to try",
                  uct_dcx_device_name(&md->dev), fault);
        return UCS_ERR_UNSUPPORTED;
    }

    md->has_odp = (config->odp != UCS_NO) && (fault == NULL);
    return UCS_OK;
}


/* Logs that all memory counts as memory of a GPU if UCX cannot tell them apart:
 * the lookup of any memory then fails. */
static void uct_dcx_md_check_types(const uct_dcx_md_t *md)
{
    ucs_memory_info_t info;

    if ((md->peer_types != 0) &&
        (ucs_memtype_cache_lookup(md, sizeof(*md), &info) ==
         UCS_ERR_UNSUPPORTED)) {
        ucs_diag("%s: UCX has no cache of memory types (UCX_MEMTYPE_CACHE=n): "
                 "all memory is handled as memory of a GPU, which disables "
                 "on-demand paging, tag matching, and copies of short pieces",
                 uct_dcx_device_name(&md->dev));
    }
}


/* With "n", too, the kernel registers memory with peer memory if a program asks
 * for that. */
static ucs_status_t uct_dcx_md_init_gpu(uct_dcx_md_t *md,
                                        const uct_dcx_md_config_t *config)
{
    md->peer_types = uct_dcx_gpu_peer_types();
    uct_dcx_md_check_types(md);
    if (config->site.gpu_direct == UCS_NO) {
        return UCS_OK;
    }

    md->gpu_types  = md->peer_types;
    md->has_dmabuf = uct_dcx_gpu_has_dmabuf(md->dev.pd);
    if ((config->site.gpu_direct == UCS_YES) && (md->gpu_types == 0) &&
        !(UCT_DCX_UCX_HAS_DMABUF && md->has_dmabuf)) {
        ucs_error(
            "%s=y: %s cannot register memory of GPUs: the kernel has no "
            "peer memory (nvidia_peermem, /dev/kfd), and it or UCX has "
            "no dma-bufs; set it to try",
            uct_dcx_site_variable(uct_dcx_md_config_table, "GPU_DIRECT_RDMA"),
            uct_dcx_device_name(&md->dev));
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}


static ucs_status_t uct_dcx_md_create(struct ibv_device *ibdev,
                                      const uct_dcx_md_config_t *config,
                                      uct_md_h *md_p)
{
    ucs_status_t status;
    uint64_t subnet;
    uct_dcx_md_t *md;

    status = uct_dcx_md_init_fork(config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_site_subnet(&config->site, uct_dcx_md_config_table,
                                 &subnet);
    if (status != UCS_OK) {
        return status;
    }

    md = ucs_calloc(1, sizeof(*md), "uct_dcx_md");
    if (md == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    md->subnet      = subnet;
    md->reg_retries = config->site.reg_retries;
    md->hook        = uct_dcx_md_the_hook;

    status = uct_dcx_device_open(&md->dev, ibdev, config->site.devx,
                                 config->ext_atomics, config->profile);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_dcx_md_init_order(md, config);
    if (status != UCS_OK) {
        goto err_close_device;
    }

    status = uct_dcx_md_init_odp(md, config);
    if (status != UCS_OK) {
        goto err_close_device;
    }

    status = uct_dcx_md_init_gpu(md, config);
    if (status != UCS_OK) {
        goto err_close_device;
    }

    status = uct_dcx_mkeys_init(&md->mkeys, &md->dev);
    if (status != UCS_OK) {
        goto err_close_device;
    }

    status = uct_dcx_md_init_handles(md, config);
    if (status != UCS_OK) {
        goto err_cleanup_mkeys;
    }

    if (config->site.async_events) {
        uct_dcx_async_init(&md->async, md->dev.ctx);
        md->fatal.fatal = uct_dcx_md_fatal;
        uct_dcx_async_add(&md->async, &md->fatal);
    }

    md->super.ops       = &uct_dcx_md_ops.super;
    md->super.component = &uct_dcx_component;
    status              = uct_dcx_md_init_rcache(md, config);
    if (status != UCS_OK) {
        goto err_cleanup_async;
    }

    if (uct_dcx_md_watch != NULL) {
        uct_dcx_md_watch(&md->super, 1);
    }
    *md_p = &md->super;
    return UCS_OK;

err_cleanup_async:
    uct_dcx_async_cleanup(&md->async);
    uct_dcx_md_cleanup_handles(md);
err_cleanup_mkeys:
    uct_dcx_mkeys_cleanup(&md->mkeys);
err_close_device:
    uct_dcx_device_close(&md->dev);
err_free:
    ucs_free(md);
    return status;
}


static struct ibv_device *uct_dcx_md_find_device(struct ibv_device **list,
                                                 const char *name)
{
    for (; *list != NULL; ++list) {
        if (!strcmp(ibv_get_device_name(*list), name)) {
            return *list;
        }
    }
    return NULL;
}


/* Returns an error, which is logged, if there are too few file descriptors for
 * a domain. Otherwise libibverbs fails with unrelated errors, and UCX aborts
 * the process if its async thread gets none. */
static ucs_status_t uct_dcx_md_check_files(const char *md_name)
{
    ucs_status_t status = UCS_OK;
    int fds[UCT_DCX_MD_FILES];
    unsigned num = 0;

    while ((num < UCT_DCX_MD_FILES) &&
           ((fds[num] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)) {
        num++;
    }

    if ((num < UCT_DCX_MD_FILES) && ((errno == EMFILE) || (errno == ENFILE))) {
        ucs_error("%s: a memory domain needs %d file descriptors, got %u: %m; "
                  "raise ulimit -n",
                  md_name, UCT_DCX_MD_FILES, num);
        status = UCS_ERR_EXCEEDS_LIMIT;
    }

    while (num > 0) {
        close(fds[--num]);
    }
    return status;
}


static ucs_status_t uct_dcx_md_open(uct_component_t *component,
                                    const char *md_name,
                                    const uct_md_config_t *md_config,
                                    uct_md_h *md_p)
{
    const uct_dcx_md_config_t *config = ucs_derived_of(md_config,
                                                       uct_dcx_md_config_t);
    struct ibv_device **list, *ibdev;
    ucs_status_t status;

    status = uct_dcx_md_check_files(md_name);
    if (status != UCS_OK) {
        return status;
    }

    list = ibv_get_device_list(NULL);
    if (list == NULL) {
        ucs_error("dcx: cannot list the RDMA devices: %m");
        return UCS_ERR_NO_DEVICE;
    }

    ibdev = uct_dcx_md_find_device(list, md_name);
    if (ibdev == NULL) {
        ucs_error("dcx: there is no RDMA device '%s'; 'ibv_devices' lists them",
                  md_name);
        status = UCS_ERR_NO_DEVICE;
    } else if (!uct_dcx_device_is_mlx5(ibdev)) {
        ucs_error("dcx: '%s' is not an mlx5 device, dcx does not support it",
                  md_name);
        status = UCS_ERR_UNSUPPORTED;
    } else {
        status = uct_dcx_md_create(ibdev, config, md_p);
        if (status == UCS_ERR_NO_MEMORY) {
            ucs_error("%s: out of memory for a memory domain", md_name);
        }
    }

    ibv_free_device_list(list);
    return status;
}


static ucs_status_t
uct_dcx_query_md_resources(uct_component_t *component,
                           uct_md_resource_desc_t **resources_p,
                           unsigned *num_resources_p)
{
    static ucs_init_once_t warned = UCS_INIT_ONCE_INITIALIZER;
    int count                     = 0;
    unsigned found                = 0;
    uct_md_resource_desc_t *resources;
    struct ibv_device **list;
    int i;

    /* before UCX parses them */
    UCS_INIT_ONCE(&warned)
    {
        uct_dcx_site_warn(uct_dcx_md_config_table);
        uct_dcx_site_warn(uct_dcx_iface_config_table);
        uct_dcx_site_log_ignored();
    }

    /* ENOSYS: the kernel has no RDMA */
    list = ibv_get_device_list(&count);
    if ((list == NULL) && (errno != ENOSYS)) {
        ucs_error("dcx: cannot list the RDMA devices: %m");
        return UCS_ERR_IO_ERROR;
    }

    resources = ucs_calloc(ucs_max(count, 1), sizeof(*resources),
                           "uct_dcx_resources");
    for (i = 0; (resources != NULL) && (i < count); ++i) {
        if (uct_dcx_device_is_mlx5(list[i])) {
            ucs_snprintf_zero(resources[found++].md_name, UCT_MD_NAME_MAX, "%s",
                              ibv_get_device_name(list[i]));
        }
    }

    if (list != NULL) {
        ibv_free_device_list(list);
    }
    if (resources == NULL) {
        ucs_error("dcx: out of memory for a list of devices");
        return UCS_ERR_NO_MEMORY;
    }

    if (found == 0) {
        ucs_debug("dcx: this machine has no mlx5 device");
        ucs_free(resources);
        /* libibverbs finds none without descriptors, and reports no error. */
        uct_dcx_md_check_files("dcx");
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    *resources_p     = resources;
    *num_resources_p = found;
    return UCS_OK;
}


uct_component_t uct_dcx_component = {
    UCT_DCX_UCX_COMPONENT_OPS.query_md_resources = uct_dcx_query_md_resources,
    .md_open                                     = uct_dcx_md_open,
    .rkey_unpack                                 = uct_dcx_rkey_unpack,
    .rkey_release = (void *)ucs_empty_function_return_success,
    .name         = "dcx",
    .md_config =
        {
            .name   = "dcx memory domain",
            .prefix = "DCX_",
            .table  = uct_dcx_md_config_table,
            .size   = sizeof(uct_dcx_md_config_t),
        },
    .cm_config = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list   = UCT_COMPONENT_TL_LIST_INITIALIZER(&uct_dcx_component),
    .flags     = 0,
};
