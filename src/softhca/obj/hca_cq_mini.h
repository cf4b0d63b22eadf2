/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CQE compression: completions of a queue that are held until they are written
 * as one title and arrays of mini CQEs (prm.h), under the queue's lock. A
 * device does so when they come faster than the bus takes them; here those of
 * one stay of a thread in the device go together.
 *
 * Only threads of the queue's own process hold some: nobody else's are lost, or
 * late, when it dies or stops. They write them before they leave the device
 * (hca_todo.h).
 */
#ifndef HCA_CQ_MINI_H
#define HCA_CQ_MINI_H

#include "hca_cqe.h"

#include <common/prm.h>

#define HCA_MINIS_MAX 64u /* capability cqe_compression_max_num */

struct hca_minis {
    struct hca_cqe      first; /* what the title says */
    unsigned            num;   /* that are held */
    uint32_t            pi;    /* where the title goes */
    struct prm_mini_cqe minis[HCA_MINIS_MAX];
};

static inline struct hca_minis *hca_cq_minis(const struct hca_cq *cq)
{
    return hca_ptr(cq->minis);
}

/* Whether a completion can be one of several at all. */
bool hca_mini_is_plain(const struct hca_cqe *cqe);

/* Whether it can follow those that are held: all that a mini CQE does not say
 * is the same, the room is there. */
bool hca_minis_take(const struct hca_minis *minis, const struct hca_cqe *cqe);

/* Holds it. */
void hca_minis_add(struct hca_minis *minis, const struct hca_cqe *cqe);

#endif
