/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.18: what differs from the others since 1.18. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_1_18_H
#define UCT_DCX_UCX_1_18_H

#include "dcx_ucx_since.h"


typedef unsigned uct_dcx_ucx_ep_invalidate_arg_t;

#define UCT_DCX_UCX_RKEY_UNPACK_ARG
#define UCT_DCX_UCX_RCACHE_FLAGS    0

#define UCT_DCX_UCX_MD_OPS          UCT_DCX_UCX_SINCE_MD_OPS
#define UCT_DCX_UCX_IFACE_OPS       UCT_DCX_UCX_SINCE_IFACE_OPS

#endif
