/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MODIFY_QP: the allowed values of attributes, which are checked without locks,
 * and the actions on entering a state, under both locks of the QP.
 */
#define _GNU_SOURCE
#include "hca_order.h"
#include "hca_qp_cmd.h"
#include "hca_requester.h"
#include "hca_sq.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/resp/hca_qp.h"
#include "softhca/resp/hca_tm_job.h"
#include "softhca/wqe/hca_wqe.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Clears the record of the send queue. A NIC reads it when that queue's
 * doorbell rings; this device also reads it at each change of state. It must
 * not find there WQEs that the program posted before the reset, and not every
 * program clears the record as libmlx5 does: UCX writes the next index only. */
static void hca_qp_clear_doorbell(struct hca_qp *qp)
{
    uint32_t *dbrec = hca_at(qp->dbrec);

    __atomic_store_n(&dbrec[1], 0, __ATOMIC_RELEASE);
}

static void hca_qp_to_reset(struct hca_qp *qp)
{
    bool attached = qp->req.attached;

    if (hca_sq_of(qp) != NULL) {
        hca_sq_drop_kept(qp);
    }
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->resp, 0, sizeof(qp->resp));
    qp->attr = (struct hca_qp_attr){
        .log_msg_max = qp->attr.log_msg_max,
    };
    qp->req.attached = attached;
    qp->num_resets++;
    if (attached) {
        hca_qp_clear_doorbell(qp);
    }
    hca_tm_job_drop(qp);
}

static void hca_qp_to_rtr(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_INIT) {
        qp->resp.psn = qp->attr.rq_psn;
        qp->resp.msn = 0;
    }
}

/* Sets the first PSN of the send queue, from RTR. */
static void hca_qp_to_rts(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_RTR) {
        qp->req.psn = qp->attr.sq_psn;
    }
}

static void hca_qp_to_err(struct hca_qp *qp)
{
    if (hca_sq_of(qp) != NULL) {
        hca_posted_flush(&hca_sq_of(qp)->posted);
    }
    hca_qp_enter_error(qp);
}

/* Functions for entering a state. Both locks are held; the state is still the
 * old one. */
static void (*const hca_qp_entries[])(struct hca_qp *qp) = {
    [IBV_QPS_RESET] = hca_qp_to_reset,
    [IBV_QPS_INIT]  = NULL,
    [IBV_QPS_RTR]   = hca_qp_to_rtr,
    [IBV_QPS_RTS]   = hca_qp_to_rts,
    [IBV_QPS_SQD]   = NULL, /* the kernel's mlx5 has no way there */
    [IBV_QPS_SQE]   = NULL,
    [IBV_QPS_ERR]   = hca_qp_to_err,
};

void hca_qp_enter(struct hca_qp *qp, enum ibv_qp_state next)
{
    if (hca_qp_entries[next] != NULL) {
        hca_qp_entries[next](qp);
    }
    atomic_store(&qp->state, next);
}

void hca_qp_lock_both(struct hca_qp *qp)
{
    hca_mutex_lock(&qp->sq_lock);
    hca_obj_hold(HCA_KIND_QP, qp);
}

void hca_qp_unlock_both(struct hca_qp *qp, bool runs)
{
    hca_mutex_unlock(&qp->obj.lock);
    if (runs) {
        hca_requester_run_locked(qp);
    }
    hca_mutex_unlock(&qp->sq_lock);
}

/* Each attribute: its bit, its offset, and its allowed values. */
/* clang-format off */
#define ATTR(_bit, _field, _min, _max) \
    {_bit, offsetof(struct hca_qp_attr, _field), \
     sizeof(((struct hca_qp_attr*)NULL)->_field), _min, _max}
/* clang-format on */

static const struct {
    uint32_t bit;
    uint16_t offset, size;
    uint32_t min, max; /* of the first 4 bytes, if there are more */
} hca_qp_attrs[] = {
    ATTR(IBV_QP_ACCESS_FLAGS, access, 0, UINT32_MAX),
    ATTR(IBV_QP_PKEY_INDEX, pkey_index, 0, UINT32_MAX),
    ATTR(IBV_QP_QKEY, qkey, 0, UINT32_MAX),
    ATTR(IBV_QP_AV, path, 0, UINT32_MAX),
    ATTR(IBV_QP_PATH_MTU, mtu, IBV_MTU_256, IBV_MTU_4096),
    ATTR(IBV_QP_TIMEOUT, timeout, 0, 31),
    ATTR(IBV_QP_RETRY_CNT, retry_cnt, 0, 7),
    ATTR(IBV_QP_RNR_RETRY, rnr_retry, 0, 7),
    ATTR(IBV_QP_RQ_PSN, rq_psn, 0, UINT32_MAX),
    ATTR(IBV_QP_SQ_PSN, sq_psn, 0, UINT32_MAX),
    ATTR(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 0, HCA_MAX_RD_ATOMIC),
    ATTR(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 0, HCA_MAX_RD_ATOMIC),
    ATTR(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 0, 31),
    ATTR(IBV_QP_DEST_QPN, dest_qpn, 0, 0xffffff),
    ATTR(IBV_QP_PATH_MIG_STATE, mig_state, 0, UINT32_MAX),
    ATTR(HCA_QP_LOG_MSG_MAX, log_msg_max, 0, HCA_LOG_MSG_MAX),
    ATTR(HCA_QP_ATOMIC_MODE, no_atomics, 0, true),
    ATTR(HCA_QP_DP_ORDERING, dp_ordering, 0, HCA_DP_LAST),
    ATTR(HCA_QP_DP_ORDERING, dp_force, 0, true),
};

#define NUM_ATTRS (sizeof(hca_qp_attrs) / sizeof(hca_qp_attrs[0]))

static bool hca_qp_attr_fits(unsigned i, const struct hca_qp_attr *attr)
{
    uint16_t size  = hca_qp_attrs[i].size;
    uint32_t value = 0;

    memcpy(&value, (const char *)attr + hca_qp_attrs[i].offset,
           (size < sizeof(value)) ? size : sizeof(value));
    return (value >= hca_qp_attrs[i].min) && (value <= hca_qp_attrs[i].max);
}

/* Returns false if the GRH of a path names no existing GID. Paths of DC are
 * checked per WQE, not here. */
static bool hca_qp_path_fits(enum hca_qp_type type, unsigned dev,
                             const struct hca_path *path)
{
    uint8_t gid[16];

    return (type == HCA_QP_DCI) || (type == HCA_QP_DCT) || !path->grh ||
           (hca_dev_gid(dev, path->sgid_index, gid) != HCA_GID_NONE);
}

/* Returns true if QPs of this type may have @dp_ordering: only RC and DC may
 * give up order, as the capabilities announce it for no others. */
static bool hca_qp_dp_fits(enum hca_qp_type type, uint8_t dp_ordering)
{
    return (dp_ordering == HCA_DP_IBTA) || (type == HCA_QP_RC) ||
           (type == HCA_QP_DCI) || (type == HCA_QP_DCT);
}

uint32_t hca_qp_attr_bad(enum hca_qp_type type, unsigned dev, uint32_t mask,
                         const struct hca_qp_attr *attr)
{
    for (unsigned i = 0; i < NUM_ATTRS; i++) {
        if ((mask & hca_qp_attrs[i].bit) && !hca_qp_attr_fits(i, attr)) {
            return hca_qp_attrs[i].bit;
        }
    }
    return ((mask & IBV_QP_PKEY_INDEX) &&
            (attr->pkey_index >= hca_dev_num_pkeys(dev))) ?
               IBV_QP_PKEY_INDEX :
           ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && (type == HCA_QP_DCI) &&
            (attr->max_rd_atomic > hca_max_rd_atomic_dc())) ?
               IBV_QP_MAX_QP_RD_ATOMIC :
           ((mask & HCA_QP_DP_ORDERING) &&
            !hca_qp_dp_fits(type, attr->dp_ordering)) ?
               HCA_QP_DP_ORDERING :
           ((mask & IBV_QP_AV) && !hca_qp_path_fits(type, dev, &attr->path)) ?
               IBV_QP_AV :
               0;
}

static void hca_qp_set(struct hca_qp *qp, uint32_t mask,
                       const struct hca_qp_attr *attr)
{
    for (unsigned i = 0; i < NUM_ATTRS; i++) {
        if (mask & hca_qp_attrs[i].bit) {
            memcpy((char *)&qp->attr + hca_qp_attrs[i].offset,
                   (const char *)attr + hca_qp_attrs[i].offset,
                   hca_qp_attrs[i].size);
        }
    }
    qp->pkey = hca_dev_pkey(qp->obj.dev, qp->attr.pkey_index);
}

/* Changes the QP, under both locks. */
static int hca_qp_change(struct hca_qp *qp, const struct hca_qp_change *change)
{
    uint32_t mask          = change->mask;
    enum ibv_qp_state cur  = hca_qp_state(qp);
    enum ibv_qp_state next = (mask & IBV_QP_STATE) ? change->next : cur;

    if ((mask & (IBV_QP_CUR_STATE | HCA_QP_FROM)) && (change->cur != cur)) {
        hca_info("qp 0x%x: no change: its state is %u, expected %u",
                 qp->obj.num, cur, change->cur);
        return -EINVAL;
    }
    if (!hca_qp_step_ok(qp->type, cur, next, mask)) {
        hca_info("qp 0x%x: no change from state %u to %u with attributes 0x%x",
                 qp->obj.num, cur, next, mask);
        return -EINVAL;
    }
    hca_qp_set(qp, mask, &change->attr);
    if (mask & IBV_QP_STATE) {
        hca_qp_enter(qp, next);
    }
    return 0;
}

int hca_qp_modify(struct hca_qp *qp, const struct hca_qp_change *change,
                  uint32_t *bad_p)
{
    int ret;

    *bad_p = ((change->mask & IBV_QP_PORT) && (change->port != 1)) ?
                 IBV_QP_PORT :
                 hca_qp_attr_bad(qp->type, qp->obj.dev, change->mask,
                                 &change->attr);
    if (*bad_p != 0) {
        return -EINVAL;
    }
    hca_qp_lock_both(qp);
    ret = hca_qp_change(qp, change);
    hca_qp_unlock_both(qp, change->mask & IBV_QP_STATE);
    return ret;
}
