/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Functions of objects that depend on their slot in a table; see hca_objs.h.
 */
#include "hca_objs.h"
#include "softhca/fabric/hca_arena.h"

/* The first block is not used: it would have the numbers 0 and 1. */
uint32_t hca_qpns_first(const struct hca_qpns *qpns)
{
    return (hca_obj_index(HCA_KIND_QPNS, qpns) + 1) << HCA_QPNS_LOG_COUNT;
}

uint32_t hca_dm_index(const struct hca_dm *dm)
{
    return hca_obj_index(HCA_KIND_DM, dm);
}
