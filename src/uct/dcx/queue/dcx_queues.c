/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The queues of an interface as a part; see dcx_queues.h.
 */
#include "dcx_queues.h"
#include "uct/dcx/mem/dcx_md.h"
#include "uct/dcx/net/dcx_port_addr.h"


uct_dcx_slots_t *uct_dcx_queues_slots(uct_dcx_queues_t *queues)
{
    uct_dcx_slots_t *slots =
            ucs_derived_of(queues->super.md, uct_dcx_md_t)->slots;

    if (uct_dcx_port_open_slots(&queues->port, slots) != UCS_OK) {
        queues->limits.strided.max_klm = 0;
        return NULL;
    }
    return slots;
}
