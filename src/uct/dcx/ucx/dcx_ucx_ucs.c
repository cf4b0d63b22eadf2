/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Functions of UCS whose signature depends on the version: the cache, memory
 * pools, devices, the processor and options. See dcx_ucx.h.
 */
#include "dcx_ucx.h"

#include <ucs/arch/cpu.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>


#if UCT_VERNO_MINOR < 16
#define ucs_rcache_set_params uct_dcx_ucx_rcache_set_params

static void
uct_dcx_ucx_rcache_set_params(ucs_rcache_params_t *params,
                              const uct_dcx_ucx_rcache_config_t *config)
{
    uct_md_set_rcache_params(params, config);
    params->max_alignment = ucs_get_page_size();
}
#endif


/* Since 1.20 a cache that any thread uses has to ask for a lock of its list. */
#if UCT_VERNO_MINOR >= 20
#define UCT_DCX_UCX_RCACHE_FLAGS UCS_RCACHE_FLAG_NEED_LRU_LOCK
#else
#define UCT_DCX_UCX_RCACHE_FLAGS 0
#endif


ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config, int events,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p)
{
    ucs_rcache_params_t params = {};

    ucs_rcache_set_params(&params, config);
    params.region_struct_size = region_size;
    params.ucm_events         = events;
    params.context            = context;
    params.ops                = ops;
    params.flags |= UCT_DCX_UCX_RCACHE_FLAGS;
    return ucs_rcache_create(&params, name, NULL, rcache_p);
}


#if UCT_VERNO_MINOR >= 18
void uct_dcx_ucx_rcache_merge(void *context, ucs_rcache_t *rcache, void *arg,
                              ucs_rcache_region_t *region)
{
}
#endif


#if UCT_VERNO_MINOR >= 17
#define UCT_DCX_UCX_RCACHE_GET_ARG UCS_RCACHE_MIN_ALIGNMENT,
#else
#define UCT_DCX_UCX_RCACHE_GET_ARG
#endif

ucs_status_t uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address,
                                    size_t length, int prot, void *arg,
                                    ucs_rcache_region_t **region_p)
{
    return ucs_rcache_get(rcache, address, length,
                          UCT_DCX_UCX_RCACHE_GET_ARG prot, arg, region_p);
}


/* UCX has no such function since 1.18; 50 ns is its default for "auto". */
#if UCT_VERNO_MINOR >= 18
#define uct_md_rcache_overhead(_config) \
    ucs_time_units_to_sec((_config)->overhead, 50e-9)
#endif

double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config)
{
    return uct_md_rcache_overhead(config);
}


#if UCT_VERNO_MINOR >= 14
ucs_status_t uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size,
                                    unsigned chunk, unsigned max,
                                    ucs_mpool_ops_t *ops, const char *name)
{
    ucs_mpool_params_t params;

    ucs_mpool_params_reset(&params);
    params.elem_size       = size;
    params.elems_per_chunk = chunk;
    params.max_elems       = max;
    params.ops             = ops;
    params.name            = name;
    return ucs_mpool_init(&params, mp);
}
#else
ucs_status_t uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size,
                                    unsigned chunk, unsigned max,
                                    ucs_mpool_ops_t *ops, const char *name)
{
    return ucs_mpool_init(mp, 0, size, 0, UCS_SYS_CACHE_LINE_SIZE, chunk, max,
                          ops, name);
}
#endif


/* Since 1.14 a name has a priority, and only a higher one replaces it. This is
 * the one of UCX's IB transports (ib_device.c). */
#if UCT_VERNO_MINOR >= 14
#define UCT_DCX_UCX_NAME_ARG , 20
#else
#define UCT_DCX_UCX_NAME_ARG
#endif

void uct_dcx_ucx_name_device(ucs_sys_device_t device, const char *name)
{
    (void)ucs_topo_sys_device_set_name(device, name UCT_DCX_UCX_NAME_ARG);
}


#if UCT_VERNO_MINOR >= 22
#define ucs_cpu_prefer_relaxed_order() \
    ucs_cpu_model_prefer_relaxed_order(ucs_arch_get_cpu_vendor(), \
                                       ucs_arch_get_cpu_model())
#endif

int uct_dcx_ucx_cpu_prefers_relaxed(void)
{
    return ucs_cpu_prefer_relaxed_order();
}


#if UCT_VERNO_MINOR >= 15
ucs_status_t uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                                      const char *prefix)
{
    ucs_config_global_list_entry_t entry = {
        .name   = "dcx",
        .prefix = prefix,
        .table  = table,
    };

    return ucs_config_parser_fill_opts(options, &entry, "UCX_", 0);
}
#else
ucs_status_t uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                                      const char *prefix)
{
    return ucs_config_parser_fill_opts(options, table, "UCX_", prefix, 0);
}
#endif
