/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.14 and later: what UCT calls in a form of its own; the cache, memory
 * pools, devices and options. See dcx_ucx.h.
 */
#include "dcx_ucx.h"

#include <ucm/api/ucm.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>


/* The name of a network device comes before that of UCX's IB transports and
 * is the same (ib_device.c). */
#define UCT_DCX_UCX_NAME_PRIORITY   20

/* Keys that can be taken back, in two kinds since 1.15 */
#if UCT_VERNO_MINOR >= 15
#define UCT_DCX_UCX_MD_INVALIDATE   (UCT_MD_FLAG_INVALIDATE | \
                                     UCT_MD_FLAG_INVALIDATE_RMA | \
                                     UCT_MD_FLAG_INVALIDATE_AMO)
#define UCT_DCX_UCX_PACK_INVALIDATE (UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA | \
                                     UCT_MD_MKEY_PACK_FLAG_INVALIDATE_AMO)
#else
#define UCT_DCX_UCX_MD_INVALIDATE   UCT_MD_FLAG_INVALIDATE
#define UCT_DCX_UCX_PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE
#endif


/* Up to 1.16 the attributes come as zeros. */
#if UCT_VERNO_MINOR < 17
static void uct_md_base_md_query(uct_md_attr_v2_t *attr)
{
}
#endif


/* UCP keeps memory of this domain in its own cache. */
ucs_status_t uct_dcx_ucx_since_md_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    uct_dcx_ucx_md_attr_t md_attr;

    uct_dcx_ucx_md_ops(md)->query(md, &md_attr);
    uct_md_base_md_query(attr);
    attr->flags            = UCT_MD_FLAG_REG |
                             (md_attr.needs_keys ?
                              (UCT_MD_FLAG_NEED_MEMH |
                               UCT_MD_FLAG_NEED_RKEY) : 0) |
                             (md_attr.can_invalidate ?
                              UCT_DCX_UCX_MD_INVALIDATE : 0);
    attr->reg_mem_types    = md_attr.reg_mem_types;
    attr->access_mem_types = md_attr.access_mem_types;
    attr->cache_mem_types  = md_attr.needs_keys ?
                             md_attr.reg_mem_types : 0;
    attr->max_alloc        = ULONG_MAX;
    attr->max_reg          = md_attr.max_reg;
    attr->rkey_packed_size = md_attr.rkey_size;
    attr->reg_cost         = md_attr.reg_cost;
    attr->local_cpus       = md_attr.local_cpus;
    return UCS_OK;
}


ucs_status_t
uct_dcx_ucx_since_mem_reg(uct_md_h md, void *address, size_t length,
                          const uct_md_mem_reg_params_t *params,
                          uct_mem_h *memh_p)
{
    uint64_t flags = UCT_MD_MEM_REG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0);

    return uct_dcx_ucx_md_ops(md)->mem_reg(md, address, length, flags, memh_p);
}


ucs_status_t
uct_dcx_ucx_since_mkey_pack(uct_md_h md, uct_mem_h memh,
                            UCT_DCX_UCX_MKEY_PACK_ARG
                            const uct_md_mkey_pack_params_t *params,
                            void *buffer)
{
    unsigned flags = UCS_PARAM_VALUE(UCT_MD_MKEY_PACK_FIELD, params, flags,
                                     FLAGS, 0);

    if (flags & ~UCT_DCX_UCX_PACK_INVALIDATE) {
        return UCS_ERR_UNSUPPORTED; /* exported memory */
    }

    return uct_dcx_ucx_md_ops(md)->mkey_pack(
            md, memh, !!(flags & UCT_DCX_UCX_PACK_INVALIDATE), buffer);
}


#if UCT_VERNO_MINOR >= 16
#if UCT_VERNO_MINOR < 18
static void
uct_iface_fill_info_str_buf(const uct_iface_is_reachable_params_t *params,
                            const char *text)
{
}
#endif


int uct_dcx_ucx_since_is_reachable(
        const uct_iface_h iface, const uct_iface_is_reachable_params_t *params)
{
    const uint64_t addr = UCT_IFACE_IS_REACHABLE_FIELD_DEVICE_ADDR;
    const uct_iface_addr_t *iface_addr;

    if (!uct_iface_is_reachable_params_valid(params, addr)) {
        return 0;
    }

    iface_addr = UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE_FIELD, params,
                                 iface_addr, IFACE_ADDR, NULL);
    if (!iface->ops.iface_is_reachable(iface, params->device_addr,
                                       iface_addr)) {
        uct_iface_fill_info_str_buf(params, "dcx does not reach this address");
        return 0;
    }

    return uct_iface_scope_is_reachable(iface, params);
}


int uct_dcx_ucx_since_ep_is_connected(
        uct_ep_h ep, const uct_ep_is_connected_params_t *params)
{
    uct_base_iface_t *iface = ucs_derived_of(ep->iface, uct_base_iface_t);

    UCT_EP_IS_CONNECTED_CHECK_DEV_IFACE_ADDRS(params);
    return ucs_container_of(iface->internal_ops, uct_dcx_ucx_iface_ops_t, super)
            ->ep_is_connected(ep, params->device_addr, params->iface_addr);
}
#endif


#if UCT_VERNO_MINOR < 16
#define ucs_rcache_set_params       uct_dcx_ucx_rcache_set_params

static void
uct_dcx_ucx_rcache_set_params(ucs_rcache_params_t *params,
                              const uct_dcx_ucx_rcache_config_t *config)
{
    uct_md_set_rcache_params(params, config);
    params->max_alignment = ucs_get_page_size();
}
#endif


/* From 1.20 on one that is used from any thread says so. */
#if UCT_VERNO_MINOR >= 20
#define UCT_DCX_UCX_RCACHE_FLAGS    UCS_RCACHE_FLAG_NEED_LRU_LOCK
#else
#define UCT_DCX_UCX_RCACHE_FLAGS    0
#endif


ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p)
{
    ucs_rcache_params_t params = {};

    ucs_rcache_set_params(&params, config);
    params.region_struct_size = region_size;
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = context;
    params.ops                = ops;
    params.flags             |= UCT_DCX_UCX_RCACHE_FLAGS;
    return ucs_rcache_create(&params, name, NULL, rcache_p);
}


#if UCT_VERNO_MINOR >= 18
void uct_dcx_ucx_since_rcache_merge(void *context, ucs_rcache_t *rcache,
                                    void *arg, ucs_rcache_region_t *region)
{
}
#endif


#if UCT_VERNO_MINOR >= 17
#define UCT_DCX_UCX_RCACHE_GET_ARG  UCS_RCACHE_MIN_ALIGNMENT,
#else
#define UCT_DCX_UCX_RCACHE_GET_ARG
#endif

ucs_status_t
uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                       int prot, void *arg, ucs_rcache_region_t **region_p)
{
    return ucs_rcache_get(rcache, address, length, UCT_DCX_UCX_RCACHE_GET_ARG
                          prot, arg, region_p);
}


/* What UCX takes itself for a cache of which it does not know the cost */
#if UCT_VERNO_MINOR >= 18
#define uct_md_rcache_overhead(_config) \
    ucs_time_units_to_sec((_config)->overhead, 50e-9)
#endif

double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config)
{
    return uct_md_rcache_overhead(config);
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


#if UCT_VERNO_MINOR >= 15
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
#else
ucs_status_t
uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                         const char *prefix)
{
    return ucs_config_parser_fill_opts(options, table, "UCX_", prefix, 0);
}
#endif
