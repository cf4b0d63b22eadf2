/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.14 and later: functions that UCT calls in a form of their version, and
 * their pools of registered memory. See dcx_ucx.h.
 */
#include "dcx_ucx.h"


/* Keys that can be revoked, of two kinds since 1.15 */
#if UCT_VERNO_MINOR >= 15
#define UCT_DCX_UCX_MD_INVALIDATE UCT_MD_FLAG_INVALIDATE_RMA
#define UCT_DCX_UCX_MD_INVALIDATE_AMO \
    (UCT_MD_FLAG_INVALIDATE | UCT_MD_FLAG_INVALIDATE_AMO)
#else
#define UCT_DCX_UCX_MD_INVALIDATE     UCT_MD_FLAG_INVALIDATE
#define UCT_DCX_UCX_MD_INVALIDATE_AMO 0
#endif


#if UCT_VERNO_MINOR >= 23
#define UCT_DCX_UCX_SGL_FLAGS \
    (UCT_IFACE_FLAG_V2_PUT_SGL_ZCOPY | UCT_IFACE_FLAG_V2_GET_SGL_ZCOPY)
#elif UCT_VERNO_MINOR >= 22
#define UCT_DCX_UCX_SGL_FLAGS UCT_IFACE_FLAG_V2_PUT_SGL_ZCOPY
#endif


/* The caller sets the attributes to 0 up to 1.16. */
#if UCT_VERNO_MINOR < 17
static void uct_md_base_md_query(uct_md_attr_v2_t *attr)
{
}
#endif


/* UCP keeps memory of this domain in its own cache. A dma-buf may be of any
 * type. Since 1.22 UCP skips memory that no device can register, such as CUDA's
 * managed memory without a dma-buf. */
ucs_status_t uct_dcx_ucx_since_md_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    uct_dcx_ucx_md_attr_t md_attr = {};

    uct_dcx_ucx_md_ops(md)->query(md, &md_attr);
    uct_md_base_md_query(attr);
    attr->flags =
        UCT_MD_FLAG_REG |
        (md_attr.needs_keys ? (UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY) :
                              0) |
        (md_attr.demand_mem_types ? UCT_MD_FLAG_ADVISE : 0) |
        (md_attr.has_dmabuf ? UCT_MD_FLAG_REG_DMABUF : 0) |
        (md_attr.can_invalidate ? UCT_DCX_UCX_MD_INVALIDATE : 0) |
        (md_attr.can_invalidate_atomics ? UCT_DCX_UCX_MD_INVALIDATE_AMO : 0);
    attr->reg_mem_types    = md_attr.reg_mem_types;
    attr->access_mem_types = md_attr.access_mem_types;
#if UCT_VERNO_MINOR >= 15
    attr->reg_nonblock_mem_types = md_attr.demand_mem_types;
#endif
#if UCT_VERNO_MINOR >= 22
    attr->required_mem_flags = md_attr.needs_keys ? UCS_MEM_FLAG_REGISTRABLE :
                                                    0;
#endif
    attr->cache_mem_types  = md_attr.has_dmabuf ?
                                 UCS_MASK(UCS_MEMORY_TYPE_LAST) :
                             md_attr.needs_keys ? md_attr.reg_mem_types :
                                                  0;
    attr->max_alloc        = ULONG_MAX;
    attr->max_reg          = md_attr.max_reg;
    attr->rkey_packed_size = md_attr.rkey_size;
    attr->reg_cost         = md_attr.reg_cost;
    attr->local_cpus       = md_attr.local_cpus;
    return UCS_OK;
}


ucs_status_t uct_dcx_ucx_since_mem_reg(uct_md_h md, void *address,
                                       size_t length,
                                       const uct_md_mem_reg_params_t *params,
                                       uct_mem_h *memh_p)
{
    uint64_t flags = UCT_MD_MEM_REG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0);
    const uct_dcx_ucx_dmabuf_t buf = {
        .fd     = UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, params, dmabuf_fd,
                                  DMABUF_FD, UCT_DMABUF_FD_INVALID),
        .offset = UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, params, dmabuf_offset,
                                  DMABUF_OFFSET, 0),
    };

    return uct_dcx_ucx_md_ops(md)->mem_reg(
        md, address, length, flags,
        (buf.fd == UCT_DMABUF_FD_INVALID) ? NULL : &buf, memh_p);
}


ucs_status_t uct_dcx_ucx_since_mkey_pack(
    uct_md_h md, uct_mem_h memh,
    UCT_DCX_UCX_MKEY_PACK_ARG const uct_md_mkey_pack_params_t *params,
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
        uct_iface_fill_info_str_buf(params, "dcx cannot reach this address");
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


#if UCT_VERNO_MINOR >= 22
ucs_status_t uct_dcx_ucx_since_query_v2(uct_iface_h tl_iface,
                                        uct_iface_attr_v2_t *attr)
{
    uct_base_iface_t *iface = ucs_derived_of(tl_iface, uct_base_iface_t);
    const uct_dcx_ucx_iface_ops_t *ops =
        ucs_container_of(iface->internal_ops, uct_dcx_ucx_iface_ops_t, super);
    ucs_status_t status = uct_iface_base_query_v2(tl_iface, attr);

    if ((status != UCS_OK) || (ops->max_sgl == NULL)) {
        return status;
    }

    if (attr->field_mask & UCT_IFACE_ATTR_FIELD_CAP_FLAGS) {
        attr->cap.flags |= UCT_DCX_UCX_SGL_FLAGS;
    }
    if (attr->field_mask & UCT_IFACE_ATTR_FIELD_MAX_PUT_SGL_ZCOPY_COUNT) {
        attr->max_put_sgl_zcopy_count = ops->max_sgl(tl_iface);
    }
#if UCT_VERNO_MINOR >= 23
    if (attr->field_mask & UCT_IFACE_ATTR_FIELD_MAX_GET_SGL_ZCOPY_COUNT) {
        attr->max_get_sgl_zcopy_count = ops->max_sgl(tl_iface);
    }
#endif
    return UCS_OK;
}
#endif


ucs_status_t uct_dcx_ucx_mpool_init_registered(
    uct_base_iface_t *iface, ucs_mpool_t *mp, size_t size, size_t align_offset,
    size_t align, unsigned chunk, uct_iface_mpool_init_obj_cb_t init_obj,
    const char *name)
{
    uct_iface_mpool_config_t config = {
        .max_bufs       = UINT_MAX,
        .max_chunk_size = SIZE_MAX,
        .grow_factor    = 1.0,
    };

    return uct_iface_mpool_init(iface, mp, size, align_offset, align, &config,
                                chunk, init_obj, name);
}
