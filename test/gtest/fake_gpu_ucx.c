/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Implements fake_gpu_ucx.h, in the forms of src/uct/dcx/ucx. An operation is
 * complete when it returns; an endpoint leads to its own interface.
 */
#include "fake_gpu_ucx.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/sys/stubs.h>
#include <unistd.h>

#define FAKE_GPU_NAME "rocm_copy"

static uct_component_t fake_gpu_component;

size_t fake_gpu_num_copied;


static uint64_t fake_gpu_types(void)
{
    const char *types = getenv("DCX_TEST_GPU_TYPES");

    return UCS_BIT(UCS_MEMORY_TYPE_ROCM) |
           (((types != NULL) && !strcmp(types, "all")) ?
                UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED) :
                0);
}


/* --- the memory domain ---------------------------------------------------- */

static void fake_gpu_md_query(uct_md_h md, uct_dcx_ucx_md_attr_t *attr)
{
    attr->reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST) | fake_gpu_types();
    attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) | fake_gpu_types();
    attr->max_reg          = SIZE_MAX;
    memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
}


static ucs_status_t fake_gpu_detect(uct_md_h md, const void *address,
                                    size_t length, ucs_memory_type_t *type_p)
{
    if (!fake_gpu_has(address)) {
        return UCS_ERR_INVALID_ADDR;
    }
    *type_p = UCS_MEMORY_TYPE_ROCM;
    return UCS_OK;
}


#if UCT_VERNO_MINOR >= 14
static ucs_status_t fake_gpu_query(uct_md_h md, uct_md_attr_v2_t *attr)
{
    ucs_status_t status = uct_dcx_ucx_since_md_query(md, attr);

    attr->detect_mem_types = fake_gpu_types();
    attr->dmabuf_mem_types = fake_gpu_types();
    return status;
}


/* Since UCX 1.22 with flags of memory types; the bits of other fields are the
 * same. */
#if UCT_VERNO_MINOR >= 22
typedef uct_md_mem_attr_v2_t fake_gpu_mem_attr_t;
#else
typedef uct_md_mem_attr_t fake_gpu_mem_attr_t;
#endif


/* UCP closes the file after it has registered the memory. */
static ucs_status_t fake_gpu_mem_query(uct_md_h md, const void *address,
                                       size_t length, fake_gpu_mem_attr_t *attr)
{
    int *fd_p = (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_FD) ?
                    &attr->dmabuf_fd :
                    NULL;
    size_t bytes;
    void *begin;

    if (!fake_gpu_has(address)) {
        return UCS_ERR_INVALID_ADDR;
    }

    begin = fake_gpu_range(address, &bytes, fd_p);
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = UCS_MEMORY_TYPE_ROCM;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_SYS_DEV) {
        attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS) {
        attr->base_address = begin;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH) {
        attr->alloc_length = bytes;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET) {
        attr->dmabuf_offset = UCS_PTR_BYTE_DIFF(begin, address);
    }
#if UCT_VERNO_MINOR >= 22
    if (attr->field_mask & UCT_MD_MEM_ATTR_V2_FIELD_MEM_FLAGS) {
        attr->mem_flags = UCS_MEM_FLAG_REGISTRABLE;
    }
#endif
    return UCS_OK;
}
#else
static ucs_status_t fake_gpu_query(uct_md_h md, uct_md_attr_t *attr)
{
    ucs_status_t status = uct_dcx_ucx_1_13_md_query(md, attr);

    attr->cap.detect_mem_types = fake_gpu_types();
    return status;
}
#endif


static ucs_status_t fake_gpu_mem_reg(uct_md_h md, void *address, size_t length,
                                     uint64_t flags,
                                     const uct_dcx_ucx_dmabuf_t *buf,
                                     uct_mem_h *memh_p)
{
    *memh_p = &fake_gpu_component; /* registers nothing */
    return UCS_OK;
}


static ucs_status_t
fake_gpu_rkey_unpack(uct_component_t *component, const void *buffer,
                     UCT_DCX_UCX_RKEY_UNPACK_ARG uct_rkey_t *rkey_p,
                     void **handle_p)
{
    *rkey_p   = 0;
    *handle_p = NULL;
    return UCS_OK;
}


static uct_dcx_ucx_md_ops_t fake_gpu_md_ops = {
    .super =
        {
            UCT_DCX_UCX_MD_OPS.close = (void *)ucs_empty_function,
            .mem_dereg = (void *)ucs_empty_function_return_success,
        },
    .query     = fake_gpu_md_query,
    .mem_reg   = fake_gpu_mem_reg,
    .mkey_pack = (void *)ucs_empty_function_return_success,
};


static ucs_status_t fake_gpu_md_open(uct_component_t *component,
                                     const char *name,
                                     const uct_md_config_t *config,
                                     uct_md_h *md_p)
{
    static uct_md_t md = {
        .ops       = &fake_gpu_md_ops.super,
        .component = &fake_gpu_component,
    };

    /* instead of those of UCT_DCX_UCX_MD_OPS */
    fake_gpu_md_ops.super.query              = fake_gpu_query;
    fake_gpu_md_ops.super.detect_memory_type = fake_gpu_detect;
#if UCT_VERNO_MINOR >= 14
    fake_gpu_md_ops.super.mem_query = fake_gpu_mem_query;
#endif
    *md_p = &md;
    return UCS_OK;
}


/* DCX_TEST_GPU_TYPES=none: no device of the GPU is there. */
static ucs_status_t fake_gpu_resources(uct_component_t *component,
                                       uct_md_resource_desc_t **resources_p,
                                       unsigned *num_resources_p)
{
    const char *types = getenv("DCX_TEST_GPU_TYPES");

    return ((types != NULL) && !strcmp(types, "none")) ?
               uct_md_query_empty_md_resource(resources_p, num_resources_p) :
               uct_md_query_single_md_resource(component, resources_p,
                                               num_resources_p);
}


static uct_component_t fake_gpu_component = {
    UCT_DCX_UCX_COMPONENT_OPS.query_md_resources = fake_gpu_resources,
    .md_open                                     = fake_gpu_md_open,
    .rkey_unpack                                 = fake_gpu_rkey_unpack,
    .rkey_release = (void *)ucs_empty_function_return_success,
    .name         = FAKE_GPU_NAME,
    .md_config    = UCT_MD_DEFAULT_CONFIG_INITIALIZER,
    .cm_config    = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list      = UCT_COMPONENT_TL_LIST_INITIALIZER(&fake_gpu_component),
    .flags        = 0,
};


/* --- endpoints ------------------------------------------------------------ */

static ucs_status_t fake_gpu_copy(uint64_t to, uint64_t from, size_t length)
{
    if (length > 0) {
        memcpy(fake_gpu_place((void *)to), fake_gpu_place((void *)from),
               length);
        fake_gpu_num_copied += length;
    }
    return UCS_OK;
}


static ucs_status_t fake_gpu_put_short(uct_ep_h ep, const void *buffer,
                                       unsigned length, uint64_t remote,
                                       uct_rkey_t rkey)
{
    return fake_gpu_copy(remote, (uintptr_t)buffer, length);
}


static ucs_status_t fake_gpu_get_short(uct_ep_h ep, void *buffer,
                                       unsigned length, uint64_t remote,
                                       uct_rkey_t rkey)
{
    return fake_gpu_copy((uintptr_t)buffer, remote, length);
}


static ucs_status_t fake_gpu_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        fake_gpu_copy(remote, (uintptr_t)iov[i].buffer, iov[i].length);
        remote += iov[i].length;
    }
    return UCS_OK;
}


static ucs_status_t fake_gpu_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                       size_t iovcnt, uint64_t remote,
                                       uct_rkey_t rkey, uct_completion_t *comp)
{
    size_t i;

    for (i = 0; i < iovcnt; ++i) {
        fake_gpu_copy((uintptr_t)iov[i].buffer, remote, iov[i].length);
        remote += iov[i].length;
    }
    return UCS_OK;
}


static ucs_status_t fake_gpu_ep_create(const uct_ep_params_t *params,
                                       uct_ep_h *ep_p)
{
    uct_base_iface_t *iface = ucs_derived_of(params->iface, uct_base_iface_t);

    return UCS_CLASS_NEW(uct_base_ep_t, ep_p, iface);
}


static void fake_gpu_ep_destroy(uct_ep_h ep)
{
    UCS_CLASS_DELETE(uct_base_ep_t, ep);
}


/* --- interfaces ----------------------------------------------------------- */

typedef struct fake_gpu_iface {
    uct_base_iface_t super;
    uint64_t id;
} fake_gpu_iface_t;


static ucs_status_t fake_gpu_get_address(uct_iface_h iface,
                                         uct_iface_addr_t *addr)
{
    memcpy(addr, &ucs_derived_of(iface, fake_gpu_iface_t)->id,
           sizeof(uint64_t));
    return UCS_OK;
}


static int fake_gpu_is_reachable(const uct_iface_h iface,
                                 const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *addr)
{
    return (addr != NULL) &&
           !memcmp(addr, &ucs_derived_of(iface, fake_gpu_iface_t)->id,
                   sizeof(uint64_t));
}


static int fake_gpu_is_connected(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                                 const uct_iface_addr_t *iface_addr)
{
    return fake_gpu_is_reachable(ep->iface, dev_addr, iface_addr);
}


static ucs_status_t fake_gpu_iface_query(uct_iface_h iface,
                                         uct_iface_attr_t *attr)
{
    uct_base_iface_query(ucs_derived_of(iface, uct_base_iface_t), attr);
    attr->cap.flags = UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_GET_SHORT |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE;
    attr->iface_addr_len          = sizeof(uint64_t);
    attr->cap.put.max_short       = UINT_MAX;
    attr->cap.put.max_zcopy       = SIZE_MAX;
    attr->cap.put.max_iov         = 1;
    attr->cap.put.opt_zcopy_align = 1;
    attr->cap.put.align_mtu       = 1;
    attr->cap.get.max_short       = UINT_MAX;
    attr->cap.get.max_zcopy       = SIZE_MAX;
    attr->cap.get.max_iov         = 1;
    attr->cap.get.opt_zcopy_align = 1;
    attr->cap.get.align_mtu       = 1;
    attr->latency                 = ucs_linear_func_make(1e-3, 0);
    attr->bandwidth.shared        = 1e6;
    return UCS_OK;
}


static ucs_status_t fake_gpu_devices(uct_md_h md,
                                     uct_tl_device_resource_t **devices_p,
                                     unsigned *num_devices_p)
{
    return uct_single_device_resource(md, FAKE_GPU_NAME, UCT_DEVICE_TYPE_ACC,
                                      UCS_SYS_DEVICE_ID_UNKNOWN, devices_p,
                                      num_devices_p);
}


static UCS_CLASS_DECLARE_DELETE_FUNC(fake_gpu_iface_t, uct_iface_t);

static uct_iface_ops_t fake_gpu_iface_ops = {
    .ep_put_short             = fake_gpu_put_short,
    .ep_put_zcopy             = fake_gpu_put_zcopy,
    .ep_get_short             = fake_gpu_get_short,
    .ep_get_zcopy             = fake_gpu_get_zcopy,
    .ep_pending_add           = (void *)ucs_empty_function_return_busy,
    .ep_pending_purge         = (void *)ucs_empty_function,
    .ep_flush                 = uct_base_ep_flush,
    .ep_fence                 = uct_base_ep_fence,
    .ep_create                = fake_gpu_ep_create,
    .ep_destroy               = fake_gpu_ep_destroy,
    .iface_flush              = uct_base_iface_flush,
    .iface_fence              = uct_base_iface_fence,
    .iface_progress_enable    = (void *)ucs_empty_function,
    .iface_progress_disable   = (void *)ucs_empty_function,
    .iface_progress           = (void *)ucs_empty_function_return_zero,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(fake_gpu_iface_t),
    .iface_query              = fake_gpu_iface_query,
    .iface_get_device_address = (void *)ucs_empty_function_return_success,
    .iface_get_address        = fake_gpu_get_address,
    .iface_is_reachable       = fake_gpu_is_reachable,
};

static uct_dcx_ucx_iface_ops_t fake_gpu_internal_ops = {
    .super =
        {UCT_DCX_UCX_IFACE_OPS.iface_estimate_perf =
             uct_base_iface_estimate_perf,
         .iface_vfs_refresh = (uct_iface_vfs_refresh_func_t)ucs_empty_function,
         .ep_invalidate     = (void *)ucs_empty_function_return_unsupported,
         UCT_DCX_UCX_SGL_OPS((void *)ucs_empty_function_return_unsupported,
                             (void *)ucs_empty_function_return_unsupported)},
    .ep_is_connected = fake_gpu_is_connected,
};


static UCS_CLASS_INIT_FUNC(fake_gpu_iface_t, uct_md_h md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *config)
{
    static uint64_t num;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &fake_gpu_iface_ops,
                              &fake_gpu_internal_ops.super, md, worker, params,
                              config UCS_STATS_ARG(UCT_IFACE_PARAM_VALUE(
                                  params, stats_root, STATS_ROOT, NULL))
                                  UCS_STATS_ARG(FAKE_GPU_NAME));
    self->id = ((uint64_t)getpid() << 32) + ++num;
    return UCS_OK;
}


static UCS_CLASS_CLEANUP_FUNC(fake_gpu_iface_t) {}

UCS_CLASS_DEFINE(fake_gpu_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(fake_gpu_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t *,
                                 const uct_iface_config_t *);
static UCS_CLASS_DEFINE_DELETE_FUNC(fake_gpu_iface_t, uct_iface_t);

UCT_TL_DEFINE_ENTRY(&fake_gpu_component, rocm_copy, fake_gpu_devices,
                    fake_gpu_iface_t, "FAKE_GPU_", uct_iface_config_table,
                    uct_iface_config_t);

UCT_SINGLE_TL_INIT(&fake_gpu_component, rocm_copy, ctor, , )
