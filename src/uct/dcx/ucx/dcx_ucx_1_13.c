/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.13: what UCT calls in a form of its own; the cache, memory pools,
 * devices and options. See dcx_ucx.h.
 */
#include "dcx_ucx.h"

#include <ucm/api/ucm.h>
#include <ucs/sys/sys.h>


ucs_status_t uct_dcx_ucx_1_13_md_query(uct_md_h md, uct_md_attr_t *attr)
{
    uct_dcx_ucx_md_attr_t md_attr;

    uct_dcx_ucx_md_ops(md)->query(md, &md_attr);
    attr->cap.flags            = UCT_MD_FLAG_REG |
                                 (md_attr.needs_keys ?
                                  (UCT_MD_FLAG_NEED_MEMH |
                                   UCT_MD_FLAG_NEED_RKEY) : 0) |
                                 (md_attr.can_invalidate ?
                                  UCT_MD_FLAG_INVALIDATE : 0);
    attr->cap.reg_mem_types    = md_attr.reg_mem_types;
    attr->cap.access_mem_types = md_attr.access_mem_types;
    attr->cap.alloc_mem_types  = 0;
    attr->cap.detect_mem_types = 0;
    attr->cap.max_alloc        = ULONG_MAX;
    attr->cap.max_reg          = md_attr.max_reg;
    attr->rkey_packed_size     = md_attr.rkey_size;
    attr->reg_cost             = md_attr.reg_cost;
    attr->local_cpus           = md_attr.local_cpus;
    return UCS_OK;
}


ucs_status_t
uct_dcx_ucx_1_13_mem_reg(uct_md_h md, void *address, size_t length,
                         unsigned flags, uct_mem_h *memh_p)
{
    return uct_dcx_ucx_md_ops(md)->mem_reg(md, address, length, flags, memh_p);
}


ucs_status_t
uct_dcx_ucx_1_13_mkey_pack(uct_md_h md, uct_mem_h memh,
                           const uct_md_mkey_pack_params_t *params,
                           void *buffer)
{
    unsigned flags = UCS_PARAM_VALUE(UCT_MD_MKEY_PACK, params, flags,
                                     FIELD_FLAGS, 0);

    return uct_dcx_ucx_md_ops(md)->mkey_pack(
            md, memh, !!(flags & UCT_MD_MKEY_PACK_FLAG_INVALIDATE), buffer);
}


ucs_status_t
uct_dcx_ucx_rcache_create(const uct_dcx_ucx_rcache_config_t *config,
                          size_t region_size, const ucs_rcache_ops_t *ops,
                          void *context, const char *name,
                          ucs_rcache_t **rcache_p)
{
    ucs_rcache_params_t params = {};

    uct_md_set_rcache_params(&params, config);
    params.region_struct_size = region_size;
    params.max_alignment      = ucs_get_page_size();
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = context;
    params.ops                = ops;
    return ucs_rcache_create(&params, name, NULL, rcache_p);
}


ucs_status_t
uct_dcx_ucx_rcache_get(ucs_rcache_t *rcache, void *address, size_t length,
                       int prot, void *arg, ucs_rcache_region_t **region_p)
{
    return ucs_rcache_get(rcache, address, length, prot, arg, region_p);
}


double uct_dcx_ucx_rcache_overhead(const uct_dcx_ucx_rcache_config_t *config)
{
    return uct_md_rcache_overhead(config);
}


ucs_status_t
uct_dcx_ucx_mpool_init(ucs_mpool_t *mp, size_t size, unsigned chunk,
                       unsigned max, ucs_mpool_ops_t *ops, const char *name)
{
    return ucs_mpool_init(mp, 0, size, 0, UCS_SYS_CACHE_LINE_SIZE, chunk, max,
                          ops, name);
}


ucs_status_t
uct_dcx_ucx_mpool_init_registered(uct_base_iface_t *iface, ucs_mpool_t *mp,
                                  size_t size, size_t align_offset,
                                  size_t align, unsigned chunk,
                                  uct_iface_mpool_init_obj_cb_t init_obj,
                                  const char *name)
{
    uct_iface_mpool_config_t config = {.max_bufs = UINT_MAX, .bufs_grow = 0};

    return uct_iface_mpool_init(iface, mp, size, align_offset, align, &config,
                                chunk, init_obj, name);
}


void uct_dcx_ucx_name_device(ucs_sys_device_t device, const char *name)
{
    (void)ucs_topo_sys_device_set_name(device, name);
}


ucs_status_t
uct_dcx_ucx_read_options(void *options, ucs_config_field_t *table,
                         const char *prefix)
{
    return ucs_config_parser_fill_opts(options, table, "UCX_", prefix, 0);
}
