/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Registration of memory and remote keys; see dcx_mem.h. The cache is UCX's
 * ucs_rcache: it hears of unmapped memory through ucm and holds regions that
 * overlap as one.
 */
#include "dcx_mem.h"
#include "dcx_md.h"

#include <endian.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <ucm/api/ucm.h>
#include <uct/base/uct_iface.h>

#define UCT_DCX_MEM_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
                            IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#define UCT_DCX_RKEY_MAGIC 0xdcd1


/* A remote key on the wire */
typedef struct uct_dcx_packed_rkey {
    __be16   magic;
    uint16_t reserved; /* 0 */
    __be32   rkey;
} UCS_S_PACKED uct_dcx_packed_rkey_t;

static_assert(sizeof(uct_dcx_packed_rkey_t) == UCT_DCX_RKEY_PACKED_SIZE,
              "the size that md_attr announces");


typedef struct uct_dcx_mem_region {
    ucs_rcache_region_t super;
    uct_dcx_mem_t       mem;
} uct_dcx_mem_region_t;


static ucs_status_t
uct_dcx_mem_register(uct_dcx_md_t *md, void *address, size_t length,
                     int silent, uct_dcx_mem_t *mem)
{
    struct ibv_mr *mr;

    mr = ibv_reg_mr(md->dev.pd, address, length, UCT_DCX_MEM_ACCESS);
    if (mr == NULL) {
        ucs_log(silent ? UCS_LOG_LEVEL_DEBUG : UCS_LOG_LEVEL_ERROR,
                "%s: failed to register %p of %zu bytes: %m; see 'ulimit -l'",
                uct_dcx_device_name(&md->dev), address, length);
        return UCS_ERR_IO_ERROR;
    }

    mem->mr   = mr;
    mem->lkey = mr->lkey;
    mem->rkey = mr->rkey;
    return UCS_OK;
}


static ucs_status_t uct_dcx_mem_deregister(uct_dcx_mem_t *mem)
{
    if (ibv_dereg_mr(mem->mr) != 0) {
        ucs_warn("mr 0x%x: failed to deregister: %m", mem->lkey);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}


ucs_status_t uct_dcx_mem_reg(uct_md_h tl_md, void *address, size_t length,
                             unsigned flags, uct_mem_h *memh_p)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_dcx_mem_t *mem;
    ucs_status_t status;

    mem = ucs_malloc(sizeof(*mem), "uct_dcx_mem");
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_dcx_mem_register(md, address, length,
                                  flags & UCT_MD_MEM_FLAG_HIDE_ERRORS, mem);
    if (status != UCS_OK) {
        ucs_free(mem);
        return status;
    }

    *memh_p = mem;
    return UCS_OK;
}


static int
uct_dcx_mem_is_invalidate(const uct_md_mem_dereg_params_t *params)
{
    return UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
           UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
}


ucs_status_t
uct_dcx_mem_dereg(uct_md_h md, const uct_md_mem_dereg_params_t *params)
{
    uct_dcx_mem_t *mem;
    ucs_status_t status;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);

    mem    = params->memh;
    status = uct_dcx_mem_deregister(mem);
    ucs_free(mem);
    if (uct_dcx_mem_is_invalidate(params)) {
        uct_invoke_completion(params->comp, status);
    }
    return status;
}


ucs_status_t uct_dcx_mem_cached_reg(uct_md_h tl_md, void *address,
                                    size_t length, unsigned flags,
                                    uct_mem_h *memh_p)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    ucs_rcache_region_t *region;
    ucs_status_t status;

    status = ucs_rcache_get(md->rcache, address, length,
                            PROT_READ | PROT_WRITE, &flags, &region);
    if (status != UCS_OK) {
        return status;
    }

    *memh_p = &ucs_derived_of(region, uct_dcx_mem_region_t)->mem;
    return UCS_OK;
}


static void uct_dcx_mem_invalidated(void *arg)
{
    uct_invoke_completion(arg, UCS_OK);
}


ucs_status_t
uct_dcx_mem_cached_dereg(uct_md_h tl_md,
                         const uct_md_mem_dereg_params_t *params)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_dcx_mem_region_t *region;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, 1);

    region = ucs_container_of(params->memh, uct_dcx_mem_region_t, mem);
    if (uct_dcx_mem_is_invalidate(params)) {
        /* completes when the last holder of the region lets go of it */
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_dcx_mem_invalidated, params->comp);
    }

    ucs_rcache_region_put(md->rcache, &region->super);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_rcache_reg(void *context, ucs_rcache_t *rcache, void *arg,
                   ucs_rcache_region_t *rregion, uint16_t rcache_flags)
{
    uct_dcx_mem_region_t *region = ucs_derived_of(rregion,
                                                  uct_dcx_mem_region_t);
    const unsigned *flags        = arg;
    int silent                   = (rcache_flags &
                                    UCS_RCACHE_MEM_REG_HIDE_ERRORS) ||
                                   (*flags & UCT_MD_MEM_FLAG_HIDE_ERRORS);

    return uct_dcx_mem_register(context, (void*)rregion->super.start,
                                rregion->super.end - rregion->super.start,
                                silent, &region->mem);
}


static void uct_dcx_rcache_dereg(void *context, ucs_rcache_t *rcache,
                                 ucs_rcache_region_t *rregion)
{
    (void)uct_dcx_mem_deregister(
            &ucs_derived_of(rregion, uct_dcx_mem_region_t)->mem);
}


static void
uct_dcx_rcache_dump(void *context, ucs_rcache_t *rcache,
                    ucs_rcache_region_t *rregion, char *buf, size_t max)
{
    const uct_dcx_mem_t *mem = &ucs_derived_of(rregion,
                                               uct_dcx_mem_region_t)->mem;

    snprintf(buf, max, "lkey 0x%x rkey 0x%x", mem->lkey, mem->rkey);
}


static ucs_rcache_ops_t uct_dcx_rcache_ops = {
    .mem_reg     = uct_dcx_rcache_reg,
    .mem_dereg   = uct_dcx_rcache_dereg,
    .dump_region = uct_dcx_rcache_dump
};


ucs_status_t
uct_dcx_mem_cache_create(uct_md_h tl_md, const uct_md_rcache_config_t *config,
                         ucs_rcache_t **rcache_p)
{
    uct_dcx_md_t *md           = ucs_derived_of(tl_md, uct_dcx_md_t);
    ucs_rcache_params_t params = {};

    uct_md_set_rcache_params(&params, config);
    params.region_struct_size = sizeof(uct_dcx_mem_region_t);
    params.max_alignment      = ucs_get_page_size();
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    params.context            = md;
    params.ops                = &uct_dcx_rcache_ops;
    return ucs_rcache_create(&params, uct_dcx_device_name(&md->dev), NULL,
                             rcache_p);
}


ucs_status_t
uct_dcx_mkey_pack(uct_md_h md, uct_mem_h memh,
                  const uct_md_mkey_pack_params_t *params, void *buffer)
{
    const uct_dcx_mem_t *mem      = memh;
    uct_dcx_packed_rkey_t *packed = buffer;

    packed->magic    = htobe16(UCT_DCX_RKEY_MAGIC);
    packed->reserved = 0;
    packed->rkey     = htobe32(mem->rkey);
    return UCS_OK;
}


ucs_status_t
uct_dcx_rkey_unpack(uct_component_t *component, const void *buffer,
                    uct_rkey_t *rkey_p, void **handle_p)
{
    const uct_dcx_packed_rkey_t *packed = buffer;

    if ((packed->magic != htobe16(UCT_DCX_RKEY_MAGIC)) ||
        (packed->reserved != 0)) {
        ucs_error("this is no remote key of dcx (0x%04x%04x); does the peer "
                  "run the same version?", be16toh(packed->magic),
                  be16toh(packed->reserved));
        return UCS_ERR_INVALID_PARAM;
    }

    *rkey_p   = be32toh(packed->rkey);
    *handle_p = NULL;
    return UCS_OK;
}


ucs_status_t uct_dcx_rkey_release(uct_component_t *component, uct_rkey_t rkey,
                                  void *handle)
{
    return UCS_OK;
}
