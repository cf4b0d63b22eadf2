/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Functions of objects that go by their place in a table; see hca_objs.h.
 */
#include "hca_objs.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_arena.h"

bool hca_qp_is_stuck(struct hca_qp *qp)
{
    if (!hca_obj_lock_other(HCA_KIND_QP, &qp->obj, &qp->sq_lock)) {
        return true;
    }
    hca_mutex_unlock(&qp->sq_lock);
    return hca_obj_is_stuck(HCA_KIND_QP, qp);
}

/* The first block would have the numbers 0 and 1, which are not for this. */
uint32_t hca_qpns_first(const struct hca_qpns *qpns)
{
    return (hca_obj_index(HCA_KIND_QPNS, qpns) + 1) << HCA_QPNS_LOG_COUNT;
}

uint32_t hca_dm_index(const struct hca_dm *dm)
{
    return hca_obj_index(HCA_KIND_DM, dm);
}

bool hca_dm_keep(const struct hca_dm *dm)
{
    if (!atomic_load(&dm->is_shared) ||
        hca_obj_is_given_up(HCA_KIND_DM, dm)) {
        return false;
    }
    hca_arena_keep(hca_ptr(dm->mem), dm->length);
    return true;
}
