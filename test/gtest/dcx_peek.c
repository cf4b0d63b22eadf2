/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_peek.h. Compiled as the transport is: structures of UCX depend on
 * the macros it was built with.
 */
#include "dcx_peek.h"

#include "uct/dcx/dcx_ep.h"
#include "uct/dcx/dcx_mem.h"


void dcx_peek(uct_iface_h tl_iface, const void *iface_addr,
              struct dcx_view *view)
{
    const uct_dcx_iface_t *iface     = ucs_derived_of(tl_iface,
                                                      uct_dcx_iface_t);
    const uct_dcx_iface_addr_t *addr = iface_addr;
    const uct_dcx_sq_t *sq           = &iface->dci.dci[0].sq;

    view->ring      = sq->start;
    view->num_bb    = sq->mask + 1;
    view->pi        = sq->pi;
    view->dbrec     = be32toh(*sq->dbrec);
    view->qpn       = sq->qpn;
    view->dctn      = ((uint32_t)addr->dctn[0] << 16) |
                      ((uint32_t)addr->dctn[1] << 8) | addr->dctn[2];
    view->dc_key    = be64toh(addr->dc_key);
    view->am_short  = iface->limits.am_short - sizeof(uint64_t);
    view->put_short = iface->limits.put_short;
    view->am_iov    = iface->limits.am_iov;
    view->rma_iov   = iface->limits.rma_iov;
}


uint32_t dcx_peek_lkey(uct_mem_h memh)
{
    return uct_dcx_mem_lkey(memh);
}


uint32_t dcx_peek_rkey(uct_mem_h memh)
{
    return ((const uct_dcx_mem_t*)memh)->rkey;
}
