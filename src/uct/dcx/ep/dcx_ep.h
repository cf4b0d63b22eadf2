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


/* How flow control makes the endpoints of its answers */
extern const uct_dcx_fc_ep_ops_t uct_dcx_ep_fc_ops;


/* Operations of UCT's tables: they take and return what UCT's function of the
 * name does, see uct/api/uct.h. */
#define UCT_DCX_EP_OP(_name)  __typeof__(uct_ep_##_name) uct_dcx_ep_##_name

/* dcx_ep.c */
UCT_DCX_EP_OP(create);
UCT_DCX_EP_OP(destroy);
UCT_DCX_EP_OP(flush);
UCT_DCX_EP_OP(fence);
UCT_DCX_EP_OP(check);

/* dcx_am.c */
UCT_DCX_EP_OP(am_short);
UCT_DCX_EP_OP(am_short_iov);
UCT_DCX_EP_OP(am_bcopy);
UCT_DCX_EP_OP(am_zcopy);

/* dcx_tag.c */
UCT_DCX_EP_OP(tag_eager_short);
UCT_DCX_EP_OP(tag_eager_bcopy);
UCT_DCX_EP_OP(tag_eager_zcopy);
UCT_DCX_EP_OP(tag_rndv_zcopy);
UCT_DCX_EP_OP(tag_rndv_cancel);
UCT_DCX_EP_OP(tag_rndv_request);

/* dcx_rma.c */
UCT_DCX_EP_OP(put_short);
UCT_DCX_EP_OP(put_bcopy);
UCT_DCX_EP_OP(put_zcopy);
UCT_DCX_EP_OP(get_bcopy);
UCT_DCX_EP_OP(get_zcopy);

/* dcx_atomic.c */
UCT_DCX_EP_OP(atomic_cswap64);
UCT_DCX_EP_OP(atomic_cswap32);
UCT_DCX_EP_OP(atomic64_post);
UCT_DCX_EP_OP(atomic32_post);
UCT_DCX_EP_OP(atomic64_fetch);
UCT_DCX_EP_OP(atomic32_fetch);

/* Variants for messages and puts that fit into a WQE, see uct_dcx_am_bcopy() */
__typeof__(uct_ep_am_bcopy) uct_dcx_ep_am_bcopy_short;
__typeof__(uct_ep_put_bcopy) uct_dcx_ep_put_bcopy_short;

/* Returns non-zero if the endpoint leads to the interface that has these
 * addresses. */
int uct_dcx_ep_is_connected(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr);

/* Returns non-zero if a receive buffer of the peer, which is smaller than ours,
 * takes an active message of @length bytes. Else this is logged, and
 * the initiator that was got for the message is given back. */
int uct_dcx_ep_fits(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, size_t length);

#endif
