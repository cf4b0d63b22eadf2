/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Changes of a QP's state by command, under both of its locks.
 */
#define _GNU_SOURCE
#include "hca_qp.h"
#include "hca_qp_cmd.h"
#include "hca_requester.h"
#include "hca_sq.h"
#include "hca_stream.h"
#include "hca_tm_job.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <string.h>

/* A NIC reads the record of a send queue when that queue's doorbell rings; here
 * it is looked at with each change of state as well. What a program posted
 * before the reset must not be found there, and not every program clears the
 * record as libmlx5 does: UCX writes the next index only. */
static void hca_qp_clear_doorbell(struct hca_qp *qp)
{
    uint32_t *dbrec = hca_ptr(qp->dbrec);

    __atomic_store_n(&dbrec[1], 0, __ATOMIC_RELEASE);
}

static void hca_qp_to_reset(struct hca_qp *qp)
{
    struct hca_sq *sq = qp->req.sq;
    bool attached     = qp->req.attached;

    if (sq != NULL) {
        hca_sq_drop_kept(qp);
    }
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->resp, 0, sizeof(qp->resp));
    qp->req.sq       = sq;
    qp->req.attached = attached;
    qp->num_resets++;
    if (attached) {
        hca_qp_clear_doorbell(qp);
    }
    if (qp->has_streams && (sq != NULL)) {
        hca_stream_clear(sq->streams);
    }
    hca_tm_job_drop(qp);
}

static void hca_qp_to_rtr(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_INIT) {
        qp->resp.psn     = qp->rq_psn;
        qp->resp.msn     = 0;
        qp->resp.path_ok = false;
    }
}

/* UD and XRC peers have no path, or take one from INIT on: the requester's
 * part begins here for all. */
static void hca_qp_to_rts(struct hca_qp *qp)
{
    if (hca_qp_state(qp) == IBV_QPS_RTR) {
        qp->req.psn = qp->sq_psn;
    }
    qp->req.path_ok  = false;
    qp->resp.path_ok = false;
}

static void hca_qp_to_err(struct hca_qp *qp)
{
    if (qp->req.sq != NULL) {
        hca_posted_flush(&qp->req.sq->posted);
    }
    hca_qp_enter_error(qp);
}

/* Both locks are held; the state is still the old one. */
static void (*const hca_qp_entries[])(struct hca_qp *qp) = {
    [IBV_QPS_RESET] = hca_qp_to_reset,
    [IBV_QPS_INIT]  = NULL,
    [IBV_QPS_RTR]   = hca_qp_to_rtr,
    [IBV_QPS_RTS]   = hca_qp_to_rts,
    [IBV_QPS_SQD]   = NULL, /* the kernel's mlx5 has no way there */
    [IBV_QPS_SQE]   = NULL,
    [IBV_QPS_ERR]   = hca_qp_to_err,
};

/* Under both locks. */
static int hca_qp_enter(struct hca_qp *qp, enum ibv_qp_state from,
                        enum ibv_qp_state to)
{
    if ((hca_qp_state(qp) != from) && (to != IBV_QPS_RESET) &&
        (to != IBV_QPS_ERR)) {
        return -EINVAL;
    }
    if ((to <= IBV_QPS_ERR) && (hca_qp_entries[to] != NULL)) {
        hca_qp_entries[to](qp);
    }
    atomic_store(&qp->state, to);
    return 0;
}

int hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state from,
                     enum ibv_qp_state to)
{
    int ret;

    hca_mutex_lock(&qp->sq_lock);
    hca_qp_lock(qp);
    ret = hca_qp_enter(qp, from, to);
    hca_mutex_unlock(&qp->obj.lock);
    if (qp->req.attached) {
        hca_requester_run_locked(qp);
    }
    hca_mutex_unlock(&qp->sq_lock);
    return ret;
}
