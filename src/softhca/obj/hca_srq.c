/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Shared receive queues as objects: see hca_srq.h. */
#include "hca_srq.h"
#include "hca_async.h"
#include "hca_tm.h"

#include <errno.h>

static void hca_srq_fill(struct hca_srq *srq, const struct hca_srq_spec *spec)
{
    srq->obj.async_chan   = spec->async_chan;
    srq->obj.user_handle  = spec->user_handle;
    srq->ring             = spec->ring;
    srq->dbrec            = spec->dbrec;
    srq->pdn              = spec->pdn;
    srq->xrcdn            = spec->xrcdn;
    srq->cqn              = spec->cqn;
    srq->uidx             = spec->uidx;
    srq->has_rndv         = spec->has_rndv;
    srq->dc.is_on         = spec->has_dc_rndv;
    srq->strides.number   = spec->num_strides;
    srq->strides.log_size = spec->log_stride;
    srq->limit            = spec->limit;
    srq->is_xrc           = spec->is_xrc;
    srq->is_cyclic        = spec->is_cyclic;
}

int hca_srq_create(const struct hca_srq_spec *spec, struct hca_srq **srq_p)
{
    struct hca_srq *srq = hca_obj_alloc(HCA_KIND_SRQ, spec->dev);

    if (srq == NULL) {
        return -ENOMEM;
    }
    if (spec->has_tm) {
        srq->tm = hca_tm_create(spec->log_tags);
        if (srq->tm == 0) {
            hca_obj_free(HCA_KIND_SRQ, srq);
            return -ENOMEM;
        }
    }
    hca_srq_fill(srq, spec);
    hca_obj_publish(HCA_KIND_SRQ, srq);
    *srq_p = srq;
    return 0;
}

int hca_srq_modify(uint32_t srqn, uint16_t limit)
{
    struct hca_srq *srq = hca_obj_lock(HCA_KIND_SRQ, srqn);

    if (srq == NULL) {
        return -ENOENT;
    }
    srq->limit = limit;
    hca_obj_unlock(srq);
    return 0;
}

int hca_srq_set_dc(uint32_t srqn, const struct hca_srq_dc *dc)
{
    struct hca_srq *srq = hca_obj_lock(HCA_KIND_SRQ, srqn);
    bool is_on;

    if (srq == NULL) {
        return -ENOENT;
    }
    is_on = srq->dc.is_on;
    if (is_on) {
        srq->dc = *dc;
    }
    hca_obj_unlock(srq);
    return is_on ? 0 : -EINVAL;
}

int hca_srq_destroy(struct hca_srq *srq, uint32_t *events)
{
    struct hca_tm *tm = (srq->tm != 0) ? hca_srq_tm(srq) : NULL;
    uint32_t num      = srq->obj.num;
    int ret;

    if (!hca_obj_hold_last(HCA_KIND_SRQ, srq, NULL)) {
        return -ETIMEDOUT;
    }
    ret = hca_async_end(&srq->obj, events);
    if (ret != 0) {
        hca_obj_unlock(srq);
        return ret;
    }
    hca_obj_retire(HCA_KIND_SRQ, srq);
    if (tm != NULL) {
        hca_tm_log_counts(num, tm);
        hca_tm_destroy(tm);
    }
    return 0;
}

static void hca_srq_enter_error(struct hca_srq *srq)
{
    srq->in_error = true;
    hca_async_event_as(&srq->obj, IBV_EVENT_SRQ_ERR,
                       (srq->tm != 0) ? HCA_EQE_XRQ_ERROR : HCA_EQE_SRQ_CATAS);
}

void hca_srq_fail_by_fault(uint32_t srqn)
{
    struct hca_srq *srq = (srqn == 0) ? NULL : hca_obj_lock(HCA_KIND_SRQ, srqn);

    if (srq == NULL) {
        return;
    }
    if (!srq->in_error) {
        hca_srq_enter_error(srq);
    }
    hca_obj_unlock(srq);
}

enum hca_check hca_srq_fail(struct hca_srq *srq, enum hca_check check,
                            uint32_t qpn, uint64_t got)
{
    hca_srq_enter_error(srq);
    return hca_check_recv(check, qpn, got);
}
