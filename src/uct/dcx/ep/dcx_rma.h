/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Put and get.
 */
#ifndef UCT_DCX_RMA_H
#define UCT_DCX_RMA_H

#include <uct/api/uct.h>


/* Operations of UCT's tables; what they return is written in uct/api/uct.h. */
ucs_status_t uct_dcx_ep_put_short(uct_ep_h ep, const void *buffer,
                                  unsigned length, uint64_t remote_addr,
                                  uct_rkey_t rkey);
ssize_t uct_dcx_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                             void *arg, uint64_t remote_addr, uct_rkey_t rkey);
ucs_status_t uct_dcx_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t
uct_dcx_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack_cb, void *arg,
                     size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                     uct_completion_t *comp);
ucs_status_t uct_dcx_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp);

#endif
