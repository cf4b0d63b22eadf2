/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Buffers of copied operations; see dcx_desc.h.
 */
#include "dcx_desc.h"
#include "dcx_srq.h"
#include "uct/dcx/mem/dcx_mem.h"
#include "uct/dcx/ucx/dcx_ucx.h"


void uct_dcx_desc_done(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                       ucs_status_t status)
{
    ucs_mpool_put_inline(slot->buffer);
}


void uct_dcx_desc_init(uct_iface_h iface, void *obj, uct_mem_h memh)
{
    *(uint32_t *)obj = uct_dcx_mem_lkey(memh);
}


ucs_status_t uct_dcx_desc_init_mpool(uct_base_iface_t *iface, ucs_mpool_t *mp,
                                     size_t length)
{
    /* uct_dcx_wqe_inline_image() reads a WQEBB behind the payload. */
    size_t size = UCT_DCX_DESC_PAYLOAD + length + MLX5_SEND_WQE_BB;

    /* No limit of its own: each buffer that is taken belongs to a WQE, and
     * their number is limited. */
    return uct_dcx_ucx_mpool_init_registered(
        iface, mp, size, UCT_DCX_DESC_PAYLOAD, UCS_SYS_CACHE_LINE_SIZE, 64,
        uct_dcx_desc_init, "uct_dcx_desc");
}
