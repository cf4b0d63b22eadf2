/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Where an endpoint of UCP has its configuration, in any version of UCX.
 */
#include "dcx_ucx.h"

#include <ucp/core/ucp_ep.h>


unsigned uct_dcx_ucx_ep_config(const void *ucp_ep)
{
    return __atomic_load_n(&((const ucp_ep_t*)ucp_ep)->cfg_index,
                           __ATOMIC_RELAXED);
}
