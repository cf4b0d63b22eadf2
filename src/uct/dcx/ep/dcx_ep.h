/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint: the way to one peer, and its pending requests.
 * All that is connected is the address vector; queues are lent by the
 * interface while operations are outstanding. Used by the interface's thread.
 *
 * ep/ is the room of UCT's operations on an endpoint: active messages, put,
 * get, atomics, flush and its end. Called by UCT through the tables in iface/.
 * It must not know completions, progress or the options: what it needs of an
 * interface are its queues.
 */
#ifndef UCT_DCX_EP_H
#define UCT_DCX_EP_H

#include "uct/dcx/fc/dcx_fc.h"


UCS_CLASS_DECLARE(uct_dcx_ep_t, uct_dcx_queues_t*, const uct_dcx_av_t*);
UCS_CLASS_DECLARE(uct_dcx_grh_ep_t, uct_dcx_queues_t*, const uct_dcx_av_t*,
                  const uct_dcx_grh_t*);
UCS_CLASS_DECLARE(uct_dcx_small_ep_t, uct_dcx_queues_t*, const uct_dcx_av_t*,
                  const uct_dcx_grh_t*, uint32_t);


/* How flow control makes the endpoints of its answers */
extern const uct_dcx_fc_ep_ops_t uct_dcx_ep_fc_ops;


/* Operations of UCT's tables; what they return is written in uct/api/uct.h. */
ucs_status_t uct_dcx_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);
void uct_dcx_ep_destroy(uct_ep_h ep);
ucs_status_t
uct_dcx_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp);
ucs_status_t uct_dcx_ep_fence(uct_ep_h ep, unsigned flags);
ucs_status_t
uct_dcx_ep_check(uct_ep_h ep, unsigned flags, uct_completion_t *comp);

/* Whether the endpoint leads to the interface that has these addresses. */
int uct_dcx_ep_is_connected(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr);

#endif
