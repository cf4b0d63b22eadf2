/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.13: functions that UCT calls in a form of this version, and its pools
 * of registered memory. See dcx_ucx.h.
 */
#include "dcx_ucx.h"


ucs_status_t uct_dcx_ucx_1_13_md_query(uct_md_h md, uct_md_attr_t *attr)
{
    uct_dcx_ucx_md_attr_t md_attr = {};

    uct_dcx_ucx_md_ops(md)->query(md, &md_attr);
    attr->cap.flags = UCT_MD_FLAG_REG |
                      (md_attr.needs_keys ?
                           (UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY) :
                           0) |
                      (md_attr.demand_mem_types ? UCT_MD_FLAG_ADVISE : 0) |
                      (md_attr.can_invalidate ? UCT_MD_FLAG_INVALIDATE : 0);
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


ucs_status_t uct_dcx_ucx_1_13_mem_reg(uct_md_h md, void *address, size_t length,
                                      unsigned flags, uct_mem_h *memh_p)
{
    return uct_dcx_ucx_md_ops(md)->mem_reg(md, address, length, flags, NULL,
                                           memh_p);
}


ucs_status_t uct_dcx_ucx_1_13_mkey_pack(uct_md_h md, uct_mem_h memh,
                                        const uct_md_mkey_pack_params_t *params,
                                        void *buffer)
{
    unsigned flags = UCS_PARAM_VALUE(UCT_MD_MKEY_PACK, params, flags,
                                     FIELD_FLAGS, 0);

    return uct_dcx_ucx_md_ops(md)->mkey_pack(
        md, memh, !!(flags & UCT_DCX_UCX_PACK_INVALIDATE), buffer);
}


ucs_status_t uct_dcx_ucx_mpool_init_registered(
    uct_base_iface_t *iface, ucs_mpool_t *mp, size_t size, size_t align_offset,
    size_t align, unsigned chunk, uct_iface_mpool_init_obj_cb_t init_obj,
    const char *name)
{
    uct_iface_mpool_config_t config = {.max_bufs = UINT_MAX, .bufs_grow = 0};

    return uct_iface_mpool_init(iface, mp, size, align_offset, align, &config,
                                chunk, init_obj, name);
}
