/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Completion queues as objects: see hca_cq.h. */
#define _GNU_SOURCE
#include "hca_cq.h"
#include "hca_async.h"
#include "hca_cq_mini.h"
#include "softhca/fabric/hca_arena.h"
#include "softhca/fabric/hca_chan.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <time.h>

uint64_t hca_cq_timestamp(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static bool hca_cq_match_comp(const void *record, void *arg)
{
    const struct ib_uverbs_comp_event_desc *desc = record;

    return desc->cq_handle == *(uint64_t *)arg;
}

static int hca_cq_purge_comp(struct hca_cq *cq)
{
    uint64_t handle = cq->obj.user_handle;

    return hca_chan_purge(cq->chan, sizeof(struct ib_uverbs_comp_event_desc),
                          hca_cq_match_comp, &handle, &cq->comp_events);
}

int hca_cq_create(const struct hca_cq_spec *spec, struct hca_cq **cq_p)
{
    struct hca_cq *cq = hca_obj_alloc(HCA_KIND_CQ, spec->dev);

    if (cq == NULL) {
        return -ENOMEM;
    }
    if (spec->is_compressed) {
        cq->minis = hca_off(hca_arena_alloc(sizeof(struct hca_minis)));
        if (cq->minis == 0) {
            hca_obj_free(HCA_KIND_CQ, cq);
            return -ENOMEM;
        }
    }
    cq->obj.async_chan  = spec->async_chan;
    cq->obj.user_handle = spec->user_handle;
    cq->ring            = spec->ring;
    cq->dbrec           = spec->dbrec;
    cq->chan            = spec->chan;
    cq->uar             = spec->uar;
    cq->timestamp       = spec->timestamp;
    cq->is_padded       = spec->is_padded;
    cq->mod_count       = spec->mod_count;
    cq->mod_period_us   = spec->mod_period_us;
    cq->ignore_overrun  = spec->ignore_overrun;
    hca_obj_publish(HCA_KIND_CQ, cq);
    *cq_p = cq;
    return 0;
}

int hca_cq_modify(uint32_t cqn, uint16_t count, uint16_t period_us)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (cq == NULL) {
        return -ENOENT;
    }
    cq->mod_count     = count;
    cq->mod_period_us = period_us;
    hca_obj_unlock(cq);
    return 0;
}

int hca_cq_destroy(struct hca_cq *cq, struct hca_cq_events *events)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    int ret;

    if (!hca_obj_hold_last(HCA_KIND_CQ, cq, NULL)) {
        return -ETIMEDOUT;
    }
    ret = hca_cq_purge_comp(cq);
    if (ret == 0) {
        ret = hca_async_end(&cq->obj, &events->async);
    }
    if (ret != 0) {
        hca_obj_unlock(cq);
        return ret;
    }
    events->comp = cq->comp_events;
    hca_obj_retire(HCA_KIND_CQ, cq);
    hca_arena_free(minis);
    return 0;
}
