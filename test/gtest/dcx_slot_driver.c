/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_slot_driver.h. Compiled as the transport is.
 */
#include "dcx_slot_driver.h"

#include "uct/dcx/mem/dcx_mem.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/queue/dcx_queues.h"
#include "uct/dcx/ucx/dcx_ucx.h"


static uct_dcx_key_slot_t *
dcx_slot_wait(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout)
{
    uct_dcx_key_slot_t *slot;
    ucs_status_t status;

    do {
        status = uct_dcx_slots_get(slots, layout, 0, &slot);
    } while (status == UCS_ERR_NO_RESOURCE);
    return (status == UCS_OK) ? slot : NULL;
}


uint32_t dcx_slot_set(uct_iface_h iface, uct_mem_h memh, void *address,
                      uint32_t bytes)
{
    uct_md_h md              = ucs_derived_of(iface, uct_base_iface_t)->md;
    uct_dcx_slots_t *slots   = ucs_derived_of(md, uct_dcx_md_t)->slots;
    uct_dcx_layout_t *layout = ucs_alloca(uct_dcx_layout_size(2));
    uct_dcx_layout_run_t run = {
        .addr   = (uintptr_t)address,
        .bytes  = bytes,
        .stride = 2 * bytes,
        .count  = 2,
        .lkey   = uct_dcx_mem_lkey(memh)
    };
    uct_dcx_key_slot_t *slot = NULL;

    uct_dcx_layout_begin(layout, 2, IBV_ACCESS_LOCAL_WRITE |
                         IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (uct_dcx_layout_add(layout, &run) != NULL) {
        return 0;
    }

    uct_dcx_layout_end(layout);
    if (uct_dcx_queues_open_slots(ucs_derived_of(iface, uct_dcx_queues_t)) ==
        UCS_OK) {
        slot = dcx_slot_wait(slots, layout);
    }
    if (slot == NULL) {
        return 0;
    }

    uct_dcx_slots_put(slots, slot, 0);
    return slot->rkey;
}


void *dcx_slot_slots(uct_md_h md)
{
    return ucs_derived_of(md, uct_dcx_md_t)->slots;
}


void dcx_slot_count(uct_md_h md, unsigned *num_set, unsigned *invalidated)
{
    uct_dcx_slots_stats_t stats;

    uct_dcx_slots_query(ucs_derived_of(md, uct_dcx_md_t)->slots, &stats);
    *num_set     = stats.num_set;
    *invalidated = stats.invalidated;
}
