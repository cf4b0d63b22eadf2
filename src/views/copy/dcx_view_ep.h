/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints of the transport "dcx_view", and their operations, in UCT's forms.
 * All have ended when they return. Called by UCT.
 */
#ifndef UCT_DCX_VIEW_EP_H
#define UCT_DCX_VIEW_EP_H

#include "uct/dcx/ucx/dcx_ucx.h"


ucs_status_t
uct_dcx_view_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void uct_dcx_view_ep_destroy(uct_ep_h ep);

ucs_status_t
uct_dcx_view_ep_put_short(uct_ep_h ep, const void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_view_ep_get_short(uct_ep_h ep, void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t
uct_dcx_view_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp);
ucs_status_t
uct_dcx_view_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp);

/* UCP wants interfaces with PENDING for long messages. Nothing ever waits. */
ucs_status_t
uct_dcx_view_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req,
                            unsigned flags);
void uct_dcx_view_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb,
                                   void *arg);

#endif
