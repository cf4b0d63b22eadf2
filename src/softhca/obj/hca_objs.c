/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The kinds of objects; see hca_objs.h.
 */
#include "hca_objs.h"
#include "hca_traffic.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_chan.h"

#include <stddef.h>

/* Patience with a lock, in ms: below a retry timer of most programs, above a time
 * slice. Who does not get a CQ takes that for broken: a second, as long as UCX's
 * retry timer, as a debugger that looks at a process stops it for less. */
enum {
    HCA_PATIENCE    = 20,
    HCA_PATIENCE_CQ = 1000
};

static void hca_qp_init(void *obj)
{
    struct hca_qp *qp = obj;

    hca_mutex_init(&qp->sq_lock);
}

static void hca_qp_retire(void *qp)
{
    hca_traffic_retire(qp);
}

/* Its process may just have changed it. */
static void hca_mkey_give_up(void *obj)
{
    struct hca_mkey *mkey = obj;

    __atomic_store_n(&mkey->is_free, true, __ATOMIC_SEQ_CST);
}

static void hca_dm_leave(void *dm)
{
    (void)hca_dm_keep(dm);
}

const struct hca_kind_ops hca_objs[HCA_NUM_KINDS] = {
    [HCA_KIND_QP]   = {"qp", sizeof(struct hca_qp),
                       offsetof(struct hca_qp, type), 16, 8, HCA_PATIENCE,
                       .init = hca_qp_init, .retire = hca_qp_retire},
    [HCA_KIND_SRQ]  = {"srq", sizeof(struct hca_srq), sizeof(struct hca_obj),
                       16, 8, HCA_PATIENCE},
    [HCA_KIND_CQ]   = {"cq", sizeof(struct hca_cq), sizeof(struct hca_obj),
                       16, 8, HCA_PATIENCE_CQ},
    [HCA_KIND_CHAN] = {"channel", sizeof(struct hca_chan),
                       sizeof(struct hca_obj), 14, 10, HCA_PATIENCE},
    [HCA_KIND_XRCD] = {"xrcd", sizeof(struct hca_xrcd), sizeof(struct hca_obj),
                       12, 8, HCA_PATIENCE},
    [HCA_KIND_MKEY] = {"mkey", sizeof(struct hca_mkey),
                       offsetof(struct hca_mkey, type), 20, 4, HCA_PATIENCE,
                       .name_at = offsetof(struct hca_mkey, name),
                       .give_up = hca_mkey_give_up},
    [HCA_KIND_QPNS] = {"block of qp numbers", sizeof(struct hca_qpns),
                       sizeof(struct hca_obj), 10, 8, HCA_PATIENCE},
    [HCA_KIND_PD]   = {"protection domain", sizeof(struct hca_pd),
                       sizeof(struct hca_obj), HCA_LOG_MAX_PDS, 6,
                       HCA_PATIENCE, .name_at = offsetof(struct hca_pd, name)},
    [HCA_KIND_DM]   = {"device memory", sizeof(struct hca_dm),
                       sizeof(struct hca_obj), HCA_LOG_MAX_DMS, 8,
                       HCA_PATIENCE, .name_at = offsetof(struct hca_dm, name),
                       .leave = hca_dm_leave}
};

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
