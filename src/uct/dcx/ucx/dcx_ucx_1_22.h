/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.22: what differs from the others since 1.18. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_1_22_H
#define UCT_DCX_UCX_1_22_H

#include "dcx_ucx_since.h"


typedef const uct_ep_invalidate_params_t *uct_dcx_ucx_ep_invalidate_arg_t;

#define UCT_DCX_UCX_RKEY_UNPACK_ARG const uct_rkey_unpack_params_t *params,

/* the cache is used from any thread */
#define UCT_DCX_UCX_RCACHE_FLAGS    UCS_RCACHE_FLAG_NEED_LRU_LOCK

#define UCT_DCX_UCX_MD_OPS \
    UCT_DCX_UCX_SINCE_MD_OPS \
    .mem_elem_pack = UCT_DCX_UCX_UNSUPPORTED,

#define UCT_DCX_UCX_IFACE_OPS \
    UCT_DCX_UCX_SINCE_IFACE_OPS \
    .iface_query_v2   = uct_iface_base_query_v2, \
    .ep_get_device_ep = UCT_DCX_UCX_UNSUPPORTED, \
    .ep_put_sgl_zcopy = UCT_DCX_UCX_UNSUPPORTED,

#endif
