/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The transport "dcx_view": copies between views and memory of one process. UCP
 * packs from views and unpacks to them by it. An operation is complete when it
 * returns, so there is nothing to progress, to flush or to wait for. An
 * interface is only an identity; an endpoint only leads to its own interface.
 * Called by UCT.
 */
#include "views/view/dcx_view.h"
#include "dcx_view_copy.h"
#include "dcx_view_md.h"

#include <ucs/debug/log.h>
#include <ucs/sys/stubs.h>
#include <ucs/sys/uid.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <limits.h>


/* Entries of an operation, as many as UCP uses (UCP_MAX_IOV) */
#define UCT_DCX_VIEW_MAX_IOV 16

/* So slow that UCP prefers any other transport. UCP still makes it a lane of
 * endpoints to the own process, but never uses that: the best lane has more
 * than 10 times its bandwidth (UCX_MULTI_LANE_MAX_RATIO). */
#define UCT_DCX_VIEW_LATENCY   1e-3 /* seconds */
#define UCT_DCX_VIEW_BANDWIDTH 1e6  /* bytes a second */


typedef uint64_t uct_dcx_view_iface_addr_t;

typedef struct uct_dcx_view_iface {
    uct_base_iface_t super;
    uct_dcx_view_iface_addr_t id;
} uct_dcx_view_iface_t;


/* --- endpoints ------------------------------------------------------------ */

static ucs_status_t uct_dcx_view_ep_create(const uct_ep_params_t *params,
                                           uct_ep_h *ep_p)
{
    uct_base_iface_t *iface = ucs_derived_of(params->iface, uct_base_iface_t);
    ucs_status_t status;

    status = UCS_CLASS_NEW(uct_base_ep_t, ep_p, iface);
    if (status != UCS_OK) {
        ucs_error("dcx_view: failed to create an endpoint: %s",
                  ucs_status_string(status));
        return status;
    }

    uct_dcx_view_watch_copy_ep();
    return UCS_OK;
}


static void uct_dcx_view_ep_destroy(uct_ep_h ep)
{
    UCS_CLASS_DELETE(uct_base_ep_t, ep);
}


static ucs_status_t uct_dcx_view_ep_put_short(uct_ep_h ep, const void *buffer,
                                              unsigned length,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey)
{
    return uct_dcx_view_copy(remote_addr, (uintptr_t)buffer, length);
}


static ucs_status_t uct_dcx_view_ep_get_short(uct_ep_h ep, void *buffer,
                                              unsigned length,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey)
{
    return uct_dcx_view_copy((uintptr_t)buffer, remote_addr, length);
}


static ucs_status_t uct_dcx_view_ep_zcopy(const uct_iov_t *iov, size_t iovcnt,
                                          uint64_t remote, int is_put)
{
    ucs_status_t status = UCS_OK;
    size_t length, i;
    uint64_t local;

    for (i = 0; (i < iovcnt) && (status == UCS_OK); ++i) {
        local  = (uintptr_t)iov[i].buffer;
        length = iov[i].length * iov[i].count;
        status = is_put ? uct_dcx_view_copy(remote, local, length) :
                          uct_dcx_view_copy(local, remote, length);
        remote += length;
    }
    return status;
}


static ucs_status_t uct_dcx_view_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                              size_t iovcnt,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey,
                                              uct_completion_t *comp)
{
    return uct_dcx_view_ep_zcopy(iov, iovcnt, remote_addr, 1);
}


static ucs_status_t uct_dcx_view_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                              size_t iovcnt,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey,
                                              uct_completion_t *comp)
{
    return uct_dcx_view_ep_zcopy(iov, iovcnt, remote_addr, 0);
}


/* --- interfaces ----------------------------------------------------------- */

static ucs_status_t uct_dcx_view_get_address(uct_iface_h tl_iface,
                                             uct_iface_addr_t *addr)
{
    uct_dcx_view_iface_t *iface = ucs_derived_of(tl_iface,
                                                 uct_dcx_view_iface_t);

    memcpy(addr, &iface->id, sizeof(iface->id));
    return UCS_OK;
}


static int uct_dcx_view_is_reachable(const uct_iface_h tl_iface,
                                     const uct_device_addr_t *dev_addr,
                                     const uct_iface_addr_t *addr)
{
    uct_dcx_view_iface_t *iface = ucs_derived_of(tl_iface,
                                                 uct_dcx_view_iface_t);

    return (addr != NULL) && !memcmp(addr, &iface->id, sizeof(iface->id));
}


static int uct_dcx_view_ep_is_connected(uct_ep_h ep,
                                        const uct_device_addr_t *dev_addr,
                                        const uct_iface_addr_t *iface_addr)
{
    return uct_dcx_view_is_reachable(ep->iface, dev_addr, iface_addr);
}


static ucs_status_t uct_dcx_view_iface_query(uct_iface_h tl_iface,
                                             uct_iface_attr_t *attr)
{
    uct_base_iface_query(ucs_derived_of(tl_iface, uct_base_iface_t), attr);
    attr->cap.flags = UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_GET_SHORT |
                      UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                            UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_ASYNC_CB;
    attr->iface_addr_len          = sizeof(uct_dcx_view_iface_addr_t);
    attr->cap.put.max_short       = UINT_MAX;
    attr->cap.put.max_zcopy       = SIZE_MAX;
    attr->cap.put.max_iov         = UCT_DCX_VIEW_MAX_IOV;
    attr->cap.put.opt_zcopy_align = 1;
    attr->cap.put.align_mtu       = 1;
    attr->cap.get.max_short       = UINT_MAX;
    attr->cap.get.max_zcopy       = SIZE_MAX;
    attr->cap.get.max_iov         = UCT_DCX_VIEW_MAX_IOV;
    attr->cap.get.opt_zcopy_align = 1;
    attr->cap.get.align_mtu       = 1;
    attr->latency          = ucs_linear_func_make(UCT_DCX_VIEW_LATENCY, 0);
    attr->bandwidth.shared = UCT_DCX_VIEW_BANDWIDTH;
    return UCS_OK;
}


static ucs_status_t
uct_dcx_view_query_devices(uct_md_h md, uct_tl_device_resource_t **devices_p,
                           unsigned *num_devices_p)
{
    return uct_single_device_resource(md, UCT_DCX_VIEW_TL, UCT_DEVICE_TYPE_ACC,
                                      UCS_SYS_DEVICE_ID_UNKNOWN, devices_p,
                                      num_devices_p);
}


static void uct_dcx_view_vfs_show(void *obj, ucs_string_buffer_t *text,
                                  void *arg, uint64_t arg_u64)
{
    unsigned num_used, num, max;

    uct_dcx_view_count(&num_used, &num, &max);
    ucs_string_buffer_appendf(text, "views in use %u, kept %u, at most %u\n",
                              num_used, num - num_used, max);
}


/* iface_vfs_refresh of UCT: adds the file "views", of the process. */
static void uct_dcx_view_files(uct_iface_h tl_iface)
{
    ucs_vfs_obj_add_ro_file(tl_iface, uct_dcx_view_vfs_show, NULL, 0, "views");
}


static UCS_CLASS_DECLARE_DELETE_FUNC(uct_dcx_view_iface_t, uct_iface_t);

/* UCP requires pending requests for long messages, and events if the user
 * sleeps. Nothing ever waits here. */
static uct_iface_ops_t uct_dcx_view_iface_ops = {
    .ep_put_short           = uct_dcx_view_ep_put_short,
    .ep_put_zcopy           = uct_dcx_view_ep_put_zcopy,
    .ep_get_short           = uct_dcx_view_ep_get_short,
    .ep_get_zcopy           = uct_dcx_view_ep_get_zcopy,
    .ep_pending_add         = (void *)ucs_empty_function_return_busy,
    .ep_pending_purge       = (void *)ucs_empty_function,
    .ep_flush               = uct_base_ep_flush,
    .ep_fence               = uct_base_ep_fence,
    .ep_create              = uct_dcx_view_ep_create,
    .ep_destroy             = uct_dcx_view_ep_destroy,
    .iface_flush            = uct_base_iface_flush,
    .iface_fence            = uct_base_iface_fence,
    .iface_progress_enable  = (void *)ucs_empty_function,
    .iface_progress_disable = (void *)ucs_empty_function,
    .iface_progress         = (void *)ucs_empty_function_return_zero,
    .iface_event_arm        = (void *)ucs_empty_function_return_success,
    .iface_close            = UCS_CLASS_DELETE_FUNC_NAME(uct_dcx_view_iface_t),
    .iface_query            = uct_dcx_view_iface_query,
    .iface_get_device_address = (void *)ucs_empty_function_return_success,
    .iface_get_address        = uct_dcx_view_get_address,
    .iface_is_reachable       = uct_dcx_view_is_reachable,
};

static uct_dcx_ucx_iface_ops_t uct_dcx_view_internal_ops = {
    .super =
        {UCT_DCX_UCX_IFACE_OPS.iface_estimate_perf =
             uct_base_iface_estimate_perf,
         .iface_vfs_refresh = (uct_iface_vfs_refresh_func_t)uct_dcx_view_files,
         .ep_invalidate     = (void *)ucs_empty_function_return_unsupported,
         UCT_DCX_UCX_SGL_OPS((void *)ucs_empty_function_return_unsupported,
                             (void *)ucs_empty_function_return_unsupported)},
    .ep_is_connected = uct_dcx_view_ep_is_connected,
};


static UCS_CLASS_INIT_FUNC(uct_dcx_view_iface_t, uct_md_h md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *config)
{
    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_dcx_view_iface_ops,
                              &uct_dcx_view_internal_ops.super, md, worker,
                              params,
                              config UCS_STATS_ARG(UCT_IFACE_PARAM_VALUE(
                                  params, stats_root, STATS_ROOT, NULL))
                                  UCS_STATS_ARG(UCT_DCX_VIEW_TL));
    self->id = ucs_generate_uuid((uintptr_t)self);
    return UCS_OK;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_view_iface_t)
{
}

UCS_CLASS_DEFINE(uct_dcx_view_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_dcx_view_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t *,
                                 const uct_iface_config_t *);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_dcx_view_iface_t, uct_iface_t);


/* Opens an interface; UCT's macro appends "_new" to the name that it gets. */
static ucs_status_t uct_dcx_view_iface_open_new(
    uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
    const uct_iface_config_t *config, uct_iface_t **iface_p)
{
    ucs_status_t status;

    status = UCS_CLASS_NEW_FUNC_NAME(uct_dcx_view_iface_t)(md, worker, params,
                                                           config, iface_p);
    if (status != UCS_OK) {
        ucs_error("dcx_view: failed to open an interface: %s",
                  ucs_status_string(status));
    }
    return status;
}


UCT_TL_DEFINE_ENTRY(&uct_dcx_view_component, dcx_view,
                    uct_dcx_view_query_devices, uct_dcx_view_iface_open,
                    "DCX_VIEW_", uct_iface_config_table, uct_iface_config_t);

UCT_SINGLE_TL_INIT(&uct_dcx_view_component, dcx_view, ctor, , )
