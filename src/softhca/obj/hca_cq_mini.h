/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CQE compression: completions that a CQ holds until they are written as one
 * title and arrays of mini CQEs (prm.h), under the CQ's lock. A device
 * compresses when completions come faster than the bus takes them; here the
 * completions that a thread adds until it leaves the device go together.
 *
 * Only threads of the CQ's own process hold completions, and write them before
 * they leave the device (hca_todo.h). So a peer that dies or stops holds back
 * no completion of another process.
 */
#ifndef HCA_CQ_MINI_H
#define HCA_CQ_MINI_H

#include "hca_cqe.h"

#include <common/prm.h>

#define HCA_MINIS_MAX 64u /* capability cqe_compression_max_num */

struct hca_minis {
    struct hca_cqe first; /* fields of the title */
    unsigned num;         /* completions held */
    uint32_t pi;          /* index of the title */
    struct prm_mini_cqe minis[HCA_MINIS_MAX];
};

/* Returns how many are held. Any process may have written the number. */
static inline unsigned hca_minis_num(const struct hca_minis *minis)
{
    unsigned num = __atomic_load_n(&minis->num, __ATOMIC_RELAXED);

    return (num < HCA_MINIS_MAX) ? num : HCA_MINIS_MAX;
}

/* Returns the title. A held completion has none of the members that are set
 * here: any process may have written them. */
static inline struct hca_cqe hca_minis_title(const struct hca_minis *minis)
{
    struct hca_cqe title = minis->first;

    title.front    = NULL;
    title.data     = NULL;
    title.data_len = 0;
    title.app      = 0;
    return title;
}

static inline struct hca_minis *hca_cq_minis(const struct hca_cq *cq)
{
    return hca_ptr(cq->minis);
}

/* Returns true if @cqe may be compressed: it is a success, not solicited,
 * without inline data or tag matching. */
bool hca_mini_is_plain(const struct hca_cqe *cqe);

/* Returns true if plain @cqe can follow the held completions, of which there is
 * at least one: all fields that a mini CQE lacks are the same, the indices of
 * receives are consecutive, and there is room. */
bool hca_minis_take(const struct hca_minis *minis, const struct hca_cqe *cqe);

/* Holds @cqe; the first one becomes the title. */
void hca_minis_add(struct hca_minis *minis, const struct hca_cqe *cqe);

#endif
