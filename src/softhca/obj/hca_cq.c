/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Completion queues as objects: see hca_cq.h. */
#define _GNU_SOURCE
#include "hca_cq.h"
#include "hca_async.h"
#include "hca_cq_mini.h"
#include "hca_todo.h"
#include "softhca/base/hca_log.h"
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

/* True once only: of several threads that wait for a stopped one, one reports
 * it. */
bool hca_cq_to_error(struct hca_cq *cq)
{
    return !__atomic_exchange_n(&cq->overrun, true, __ATOMIC_ACQ_REL);
}

void hca_cq_fail(struct hca_cq *cq)
{
    hca_todo_add_overrun(cq->obj.num);
    hca_async_event(&cq->obj, IBV_EVENT_CQ_ERR);
}

/* Handles a CQ that could not be locked: there is none, or it is put in error,
 * once. */
static __attribute__((noinline)) void hca_cq_held_up(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_peek(HCA_KIND_CQ, cqn);

    if ((cq != NULL) && hca_cq_to_error(cq)) {
        hca_warn("cq 0x%x: in error: cannot add completions while that "
                 "process is stopped",
                 cqn);
        hca_cq_fail(cq);
    }
}

struct hca_cq *hca_cq_lock(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_lock(HCA_KIND_CQ, cqn);

    if (__builtin_expect(cq == NULL, 0)) {
        hca_cq_held_up(cqn);
    }
    return cq;
}

static bool hca_cq_match_comp(const void *record, void *arg)
{
    const struct ib_uverbs_comp_event_desc *desc = record;

    return desc->cq_handle == *(uint64_t *)arg;
}

static uint32_t hca_cq_purge_comp(uint32_t chan, const struct hca_cq *cq)
{
    uint64_t handle = cq->obj.user_handle;

    return hca_chan_purge(chan, sizeof(struct ib_uverbs_comp_event_desc),
                          hca_cq_match_comp, &handle);
}

/* Stops all reports of the CQ. */
static void hca_cq_end_events(struct hca_cq *cq, struct hca_cq_events *events)
{
    uint32_t chan = cq->chan;
    bool is_held  = hca_obj_hold(HCA_KIND_CQ, cq);

    cq->chan = 0;
    if (is_held) {
        hca_obj_unlock(cq);
    }
    events->comp  = cq->comp_events - hca_cq_purge_comp(chan, cq);
    events->async = hca_async_end(HCA_KIND_CQ, &cq->obj);
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
    struct hca_cq *cq = hca_cq_lock(cqn);

    if (cq == NULL) {
        return -ETIMEDOUT;
    }
    cq->mod_count     = count;
    cq->mod_period_us = period_us;
    hca_obj_unlock(cq);
    return 0;
}

int hca_cq_destroy(struct hca_cq *cq, struct hca_cq_events *events)
{
    struct hca_minis *minis = hca_cq_minis(cq);
    struct hca_cq_events ignored;

    hca_cq_end_events(cq, (events != NULL) ? events : &ignored);
    if (!hca_obj_free(HCA_KIND_CQ, cq)) {
        return -ETIMEDOUT;
    }
    hca_arena_free(minis);
    return 0;
}
