/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.18: what differs from the others since 1.18. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_1_18_H
#define UCT_DCX_UCX_1_18_H

#include "dcx_ucx_since.h"


#define UCT_DCX_UCX_RCACHE_FLAGS    0

#define UCT_DCX_UCX_COMPONENT_OPS \
    UCT_DCX_UCX_SINCE_COMPONENT_OPS \
    .rkey_unpack = uct_dcx_ucx_1_18_rkey_unpack,

#define UCT_DCX_UCX_MD_OPS          UCT_DCX_UCX_SINCE_MD_OPS

#define UCT_DCX_UCX_IFACE_OPS \
    UCT_DCX_UCX_SINCE_IFACE_OPS \
    .ep_invalidate = uct_dcx_ucx_1_18_ep_invalidate,


ucs_status_t
uct_dcx_ucx_1_18_rkey_unpack(uct_component_t *component, const void *buffer,
                             uct_rkey_t *rkey_p, void **handle_p);
ucs_status_t uct_dcx_ucx_1_18_ep_invalidate(uct_ep_h ep, unsigned flags);

#endif
