/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Active messages, the sending side.
 */
#ifndef UCT_DCX_AM_H
#define UCT_DCX_AM_H

#include <uct/api/uct.h>


/* Operations of UCT's tables; what they return is written in uct/api/uct.h. */
ucs_status_t uct_dcx_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header,
                                 const void *payload, unsigned length);
ucs_status_t uct_dcx_ep_am_short_iov(uct_ep_h ep, uint8_t id,
                                     const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_dcx_ep_am_bcopy(uct_ep_h ep, uint8_t id,
                            uct_pack_callback_t pack_cb, void *arg,
                            unsigned flags);
ucs_status_t
uct_dcx_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                    unsigned header_length, const uct_iov_t *iov,
                    size_t iovcnt, unsigned flags, uct_completion_t *comp);

#endif
