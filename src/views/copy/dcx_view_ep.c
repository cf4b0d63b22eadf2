/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "dcx_view_ep.h"
#include "views/view/dcx_view.h"
#include "dcx_view_copy.h"


ucs_status_t
uct_dcx_view_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_base_iface_t *iface = ucs_derived_of(params->iface, uct_base_iface_t);
    ucs_status_t status;

    status = UCS_CLASS_NEW(uct_base_ep_t, ep_p, iface);
    if (status == UCS_OK) {
        uct_dcx_view_watch_copy_ep();
    }
    return status;
}


void uct_dcx_view_ep_destroy(uct_ep_h ep)
{
    UCS_CLASS_DELETE(uct_base_ep_t, ep);
}


ucs_status_t
uct_dcx_view_ep_put_short(uct_ep_h ep, const void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_view_copy(remote_addr, (uintptr_t)buffer, length);
}


ucs_status_t
uct_dcx_view_ep_get_short(uct_ep_h ep, void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_view_copy((uintptr_t)buffer, remote_addr, length);
}


ucs_status_t
uct_dcx_view_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp)
{
    ucs_status_t status = UCS_OK;
    size_t length, i;

    for (i = 0; (i < iovcnt) && (status == UCS_OK); ++i) {
        length       = iov[i].length * iov[i].count;
        status       = uct_dcx_view_copy(remote_addr, (uintptr_t)iov[i].buffer,
                                         length);
        remote_addr += length;
    }
    return status;
}


ucs_status_t
uct_dcx_view_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp)
{
    ucs_status_t status = UCS_OK;
    size_t length, i;

    for (i = 0; (i < iovcnt) && (status == UCS_OK); ++i) {
        length       = iov[i].length * iov[i].count;
        status       = uct_dcx_view_copy((uintptr_t)iov[i].buffer, remote_addr,
                                         length);
        remote_addr += length;
    }
    return status;
}


ucs_status_t
uct_dcx_view_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags)
{
    return UCS_ERR_BUSY;
}


void uct_dcx_view_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                                   void *arg)
{
}
