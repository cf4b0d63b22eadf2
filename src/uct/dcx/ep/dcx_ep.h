/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * An endpoint: the path to one peer, and its pending requests. It has an
 * address vector, but no queue of its own: while operations are outstanding, it
 * holds an initiator of the interface. Used by the interface's thread.
 *
 * ep/ is the room of UCT's operations on an endpoint: active messages, put,
 * get, atomics, flush, and its destruction. Called by UCT through the tables in
 * iface/. It must not know CQEs, progress or the options: of an interface it
 * only uses the queues.
 */
#ifndef UCT_DCX_EP_H
#define UCT_DCX_EP_H

#include "uct/dcx/fc/dcx_fc.h"
#include "uct/dcx/ucx/dcx_ucx.h"


/* Callbacks by which flow control creates and destroys the endpoints of its
 * answers */
extern const uct_dcx_fc_ep_ops_t uct_dcx_ep_fc_ops;


/* Operations of UCT's tables; arguments and results are those of UCT's function
 * of the same name, see uct/api/uct.h. */
#define UCT_DCX_EP_OP(_name) __typeof__(uct_ep_##_name) uct_dcx_ep_##_name

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

/* dcx_list.c */
uct_dcx_ucx_sgl_zcopy_t uct_dcx_ep_put_sgl_zcopy;
uct_dcx_ucx_sgl_zcopy_t uct_dcx_ep_get_sgl_zcopy;

/* dcx_atomic.c */
UCT_DCX_EP_OP(atomic_cswap64);
UCT_DCX_EP_OP(atomic_cswap32);
UCT_DCX_EP_OP(atomic64_post);
UCT_DCX_EP_OP(atomic32_post);
UCT_DCX_EP_OP(atomic64_fetch);
UCT_DCX_EP_OP(atomic32_fetch);

/* Variants for messages and puts that fit in a WQE, see uct_dcx_am_bcopy() */
__typeof__(uct_ep_am_bcopy) uct_dcx_ep_am_bcopy_short;
__typeof__(uct_ep_put_bcopy) uct_dcx_ep_put_bcopy_short;

/* Variant for an interface with device memory */
__typeof__(uct_ep_tag_eager_bcopy) uct_dcx_ep_tag_eager_bcopy_memory;

/* Returns non-zero if the endpoint leads to the interface with these
 * addresses. */
int uct_dcx_ep_is_connected(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                            const uct_iface_addr_t *iface_addr);

/* Returns non-zero if a message fits in a receive buffer of the peer; @length
 * does not include uct_dcx_am_hdr_t. Otherwise logs an error, and releases
 * @dci, which was acquired for it. @ep has UCT_DCX_EP_FLAG_SMALL. */
int uct_dcx_ep_fits(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, size_t length);

#endif
