/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.18: functions of UCT's tables that a later version calls in another
 * form; see dcx_ucx.h.
 */
#include "dcx_ucx.h"


ucs_status_t
uct_dcx_ucx_1_18_rkey_unpack(uct_component_t *component, const void *buffer,
                             uct_rkey_t *rkey_p, void **handle_p)
{
    *handle_p = NULL;
    return ucs_container_of(component, uct_dcx_ucx_component_t, super)
            ->rkey_unpack(buffer, rkey_p);
}


ucs_status_t uct_dcx_ucx_1_18_ep_invalidate(uct_ep_h ep, unsigned flags)
{
    uct_base_iface_t *iface = ucs_derived_of(ep->iface, uct_base_iface_t);

    return ucs_container_of(iface->internal_ops, uct_dcx_ucx_iface_ops_t, super)
            ->ep_invalidate(ep);
}
