/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creation, query and destruction of queue pairs and DC targets: see
 * hca_qp_cmd.h.
 */
#define _GNU_SOURCE
#include "hca_qp_cmd.h"
#include "hca_sq.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_async.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/resp/hca_qp.h"

#include <errno.h>

static bool hca_qp_sends(const struct hca_qp *qp)
{
    return qp->sq.buf != 0;
}

/* --- creation ------------------------------------------------------------ */

/* Checks tag matching. An SRQ with tag matching serves RC QPs and, if it is on
 * for DC, DC targets. A rendezvous needs such an SRQ, no send queue and, for a
 * DC target, a device that fetches over DC. @return as hca_qp_check(). */
static int hca_qp_check_tm(const struct hca_qp_spec *spec)
{
    const struct hca_srq *srq = hca_obj_peek(HCA_KIND_SRQ, spec->srqn);
    bool has_tm               = (srq != NULL) && (srq->tm != 0);

    if (has_tm && (spec->type != HCA_QP_RC) &&
        !((spec->type == HCA_QP_DCT) && srq->dc.is_on)) {
        return -EPROTONOSUPPORT;
    }
    /* no send queue: the device itself posts the reads of a rendezvous */
    return (spec->has_rndv &&
            (!has_tm || (spec->sq.buf != 0) ||
             ((spec->type == HCA_QP_DCT) && !hca_has_dc_rndv()))) ?
               -EOPNOTSUPP :
               0;
}

int hca_qp_check(const struct hca_qp_spec *spec)
{
    if (spec->has_streams &&
        ((spec->type != HCA_QP_DCI) || (hca_config.log_streams == 0) ||
         (spec->log_streams > hca_config.log_streams) ||
         (spec->log_errored > hca_config.log_errored))) {
        hca_info("qp: 2^%u streams, 2^%u of them in error: not supported, only "
                 "a dci has streams, up to 2^%u (SOFTHCA_DCI_STREAMS) and 2^%u "
                 "(SOFTHCA_DCI_ERRORED); 2^0: none",
                 spec->log_streams, spec->log_errored, hca_config.log_streams,
                 hca_config.log_errored);
        return -EINVAL;
    }
    return hca_qp_check_tm(spec);
}

struct hca_qp_tally {
    unsigned dev; /* to count QPs of */
    unsigned num_qps;
};

static void hca_qp_tally_add(void *obj, void *arg)
{
    const struct hca_qp *qp    = obj;
    struct hca_qp_tally *tally = arg;

    tally->num_qps += (qp->obj.dev == tally->dev);
}

/* Allocates a QP. @return NULL if the device has as many as its limit, or the
 * table is full; logged. */
static struct hca_qp *hca_qp_alloc(unsigned dev)
{
    uint32_t limit            = hca_limit(HCA_LIMIT_QP, HCA_MAX_QPS);
    struct hca_qp_tally tally = {.dev = dev};

    if (limit < HCA_MAX_QPS) {
        hca_obj_foreach(HCA_KIND_QP, HCA_ANY_PROC, hca_qp_tally_add, &tally);
    }
    if (tally.num_qps >= limit) {
        hca_info("qp: mlx5 device %u has max_qp=%u queue pairs already", dev,
                 limit);
        return NULL;
    }
    return hca_obj_alloc(HCA_KIND_QP, dev);
}

/* Creates a QP that is not published yet. */
static int hca_qp_new(const struct hca_qp_spec *spec, struct hca_qp **qp_p)
{
    int ret = hca_qp_check(spec);
    struct hca_qp *qp;

    if (ret != 0) {
        return ret;
    }
    qp = hca_qp_alloc(spec->dev);
    if (qp == NULL) {
        return -ENOMEM;
    }
    qp->obj.async_chan  = spec->async_chan;
    qp->obj.user_handle = spec->user_handle;
    qp->type            = spec->type;
    qp->wq_sig          = spec->wq_sig;
    qp->has_tm          = hca_srq_has_tm(spec->srqn);
    qp->has_rndv        = spec->has_rndv;
    qp->cs_req          = spec->cs_req;
    qp->cs_res          = spec->cs_res;
    qp->has_streams     = spec->has_streams;
    qp->log_streams     = spec->has_streams ? spec->log_streams : 0;
    qp->log_errored     = spec->has_streams ? spec->log_errored : 0;
    qp->pdn             = spec->pdn;
    qp->scqn            = spec->scqn;
    qp->rcqn            = spec->rcqn;
    qp->srqn            = spec->srqn;
    qp->xrcdn           = spec->xrcdn;
    qp->uar             = spec->uar;
    qp->uidx            = spec->uidx;
    qp->sq              = spec->sq;
    qp->rq              = spec->rq;
    qp->dbrec           = spec->dbrec;
    qp->dc_key          = spec->dc_key;
    qp->attr            = spec->attr;
    qp->pkey            = hca_dev_pkey(spec->dev, spec->attr.pkey_index);
    *qp_p               = qp;
    return 0;
}

int hca_qp_create(const struct hca_qp_spec *spec, struct hca_qp **qp_p)
{
    struct hca_qp *qp;
    int ret = hca_qp_new(spec, &qp);

    if (ret != 0) {
        return ret;
    }
    hca_obj_publish(HCA_KIND_QP, qp);
    ret = hca_qp_sends(qp) ? hca_sq_add(qp) : 0;
    if (ret != 0) {
        hca_obj_free(HCA_KIND_QP, qp);
        return ret;
    }
    *qp_p = qp;
    return 0;
}

#define HCA_DCT_ATTRS \
    (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MTU | \
     IBV_QP_MIN_RNR_TIMER | HCA_QP_DP_ORDERING)

int hca_dct_create(const struct hca_qp_spec *spec, uint32_t *bad_p,
                   struct hca_qp **dct_p)
{
    struct hca_qp *dct;
    int ret;

    *bad_p = hca_qp_attr_bad(HCA_QP_DCT, spec->dev, HCA_DCT_ATTRS, &spec->attr);
    ret    = (*bad_p != 0) ? -EINVAL : hca_qp_new(spec, &dct);
    if (ret != 0) {
        return ret;
    }
    /* A DCT scatters 64 bytes to a CQE of 128 bytes, otherwise nothing
     * (create_dct() of mlx5_ib). */
    dct->cs_res = (hca_cq_inline_room(dct->rcqn, dct->cs_res) == 64) ? 64 : 0;
    atomic_store(&dct->state, IBV_QPS_RTR);
    hca_obj_publish(HCA_KIND_QP, dct);
    *dct_p = dct;
    return 0;
}

int hca_dct_drain(struct hca_qp *dct)
{
    bool is_active;

    hca_qp_lock_both(dct);
    is_active = (hca_qp_state(dct) == IBV_QPS_RTR);
    if (is_active) {
        hca_qp_enter(dct, IBV_QPS_ERR);
    }
    hca_qp_unlock_both(dct, false); /* it has no send queue to run */
    return is_active ? 0 : -EINVAL;
}

/* --- query --------------------------------------------------------------- */

void hca_qp_query(struct hca_qp *qp, struct hca_qp_info *info)
{
    hca_qp_lock_both(qp);
    *info = (struct hca_qp_info){
        .state = hca_qp_state(qp),
        .sq_ci = qp->req.ci,
        .attr  = qp->attr,
    };
    info->attr.sq_psn = qp->req.psn;
    info->attr.rq_psn = qp->resp.psn;
    /* a peer may have put it in error: flush its SQ and RQ */
    hca_qp_unlock_both(qp, info->state == IBV_QPS_ERR);
}

/* --- destruction --------------------------------------------------------- */

int hca_qp_destroy(struct hca_qp *qp, uint32_t *events)
{
    struct hca_sq *sq;
    int ret;

    if (!hca_obj_hold_last(HCA_KIND_QP, qp, &qp->sq_lock)) {
        return -ETIMEDOUT;
    }
    ret = hca_async_end(&qp->obj, events);
    if (ret != 0) {
        hca_qp_unlock_both(qp, false);
        return ret;
    }
    /* even from RESET: hca_fatal_device() leaves fetched WQEs there */
    hca_qp_enter(qp, IBV_QPS_RESET);
    sq = hca_sq_detach(qp);
    hca_qp_unlock_both(qp, false);
    if (sq != NULL) {
        hca_sq_free(sq);
    }
    hca_obj_free(HCA_KIND_QP, qp);
    return 0;
}
