/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Completion queues as objects: see hca_cq.h. */
#define _GNU_SOURCE
#include "hca_cq.h"
#include "hca_async.h"
#include "hca_cq_mini.h"
#include "hca_todo.h"
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_arena.h"

#include <endian.h>
#include <errno.h>
#include <time.h>

uint32_t hca_cq_consumer(const struct hca_cq *cq)
{
    const uint32_t *dbrec = hca_ptr(cq->dbrec);

    /* pairs with the program's barrier between reading a CQE and giving it
     * back */
    return hca_cq_index(be32toh(__atomic_load_n(&dbrec[0],
                                                __ATOMIC_ACQUIRE)));
}

uint64_t hca_cq_timestamp(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Of several that wait for one that is stopped, each would say so. */
bool hca_cq_to_error(struct hca_cq *cq)
{
    return !__atomic_exchange_n(&cq->overrun, true, __ATOMIC_ACQ_REL);
}

void hca_cq_fail(struct hca_cq *cq)
{
    hca_todo_add_overrun(cq->obj.num);
    hca_async_event(&cq->obj, IBV_EVENT_CQ_ERR);
}

/* It was not to be had: there is none, or it is given up, once. */
static __attribute__((noinline)) void hca_cq_held_up(uint32_t cqn)
{
    struct hca_cq *cq = hca_obj_peek(HCA_KIND_CQ, cqn);

    if ((cq != NULL) && hca_cq_to_error(cq)) {
        hca_warn("cq 0x%x: in error: it takes no completions while that "
                 "process is stopped", cqn);
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

int hca_cq_compress(struct hca_cq *cq)
{
    cq->minis = hca_off(hca_arena_alloc(sizeof(struct hca_minis)));
    return (cq->minis != 0) ? 0 : -ENOMEM;
}

bool hca_cq_free(struct hca_cq *cq)
{
    struct hca_minis *minis = hca_cq_minis(cq);

    if (!hca_obj_free(HCA_KIND_CQ, cq)) {
        return false;
    }
    hca_arena_free(minis);
    return true;
}
