/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.18 and later: the cache, memory pools, devices and options; see
 * dcx_ucx.h.
 */
#include "dcx_ucx.h"

#include <ucm/api/ucm.h>
#include <ucs/time/time.h>


/* What UCX takes itself for a cache of which it does not know the cost */
#define UCT_DCX_UCX_RCACHE_OVERHEAD 50e-9

/* The name of a network device comes before that of UCX's IB transports and
 * is the same (ib_device.c). */
#define UCT_DCX_UCX_NAME_PRIORITY   20


ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p)
{
    ucs_rcache_params_t params;

    ucs_rcache_set_params(&params, config);
    params.region_struct_size = region_size;
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = context;
    params.ops                = ops;
    params.flags             |= UCT_DCX_UCX_RCACHE_FLAGS;
    return ucs_rcache_create(&params, name, NULL, rcache_p);
}


void uct_dcx_ucx_since_rcache_merge(void *context, ucs_rcache_t *rcache,
                                    void *arg, ucs_rcache_region_t *region)
{
}


ucs_status_t
uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                       void *arg, ucs_rcache_region_t **region_p)
{
    return ucs_rcache_get(rcache, address, length, UCS_RCACHE_MIN_ALIGNMENT,
                          PROT_READ | PROT_WRITE, arg, region_p);
}


double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config)
{
    return ucs_time_units_to_sec(config->overhead, UCT_DCX_UCX_RCACHE_OVERHEAD);
}


ucs_status_t
uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size, unsigned chunk,
                       unsigned max, ucs_mpool_ops_t *ops, const char *name)
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


ucs_status_t
uct_dcx_ucx_mpool_init_registered(uct_base_iface_t *iface, ucs_mpool_t *mp,
                                  size_t size, size_t align_offset,
                                  size_t align, unsigned chunk,
                                  uct_iface_mpool_init_obj_cb_t init_obj,
                                  const char *name)
{
    uct_iface_mpool_config_t config = {
        .max_bufs       = UINT_MAX,
        .max_chunk_size = SIZE_MAX,
        .grow_factor    = 1.0
    };

    return uct_iface_mpool_init(iface, mp, size, align_offset, align, &config,
                                chunk, init_obj, name);
}


void uct_dcx_ucx_name_device(ucs_sys_device_t device, const char *name)
{
    (void)ucs_topo_sys_device_set_name(device, name,
                                       UCT_DCX_UCX_NAME_PRIORITY);
}


ucs_status_t
uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                         const char *prefix)
{
    ucs_config_global_list_entry_t entry = {
        .name   = "dcx",
        .prefix = prefix,
        .table  = table
    };

    return ucs_config_parser_fill_opts(options, &entry, "UCX_", 0);
}
