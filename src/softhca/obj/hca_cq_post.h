/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * hca_cq_post() inline, for the completion of each message: the compiler then
 * leaves out the fields that a kind of completion does not have. Called by the
 * completer (resp/); locks as for hca_cq_post() (hca_cq.h).
 */
#ifndef HCA_CQ_POST_H
#define HCA_CQ_POST_H

#include "hca_cqe_put.h"

/* Adds @num completions that were written. */
static inline void hca_cq_advance(struct hca_cq *cq, uint32_t num)
{
    cq->pi = hca_cq_index(cq->pi + num);
}

/* Returns true if there is no room for another completion behind @num held
 * ones, by the consumer index that was read last. */
static inline bool hca_cq_looks_full(const struct hca_cq *cq, uint32_t num)
{
    return hca_cq_index(cq->pi + num - cq->ci) >= (1u << cq->ring.log_cnt);
}

/* hca_cq_post() with the lock of the CQ held */
enum hca_check hca_cq_post_locked(struct hca_cq *cq, const struct hca_cqe *cqe);

/* Returns true if the next completion is 64 bytes and nothing else: it is not
 * held for compression, there is room, no event follows. */
static inline bool hca_cq_is_plain(const struct hca_cq *cq)
{
    return !cq->overrun && !cq->armed && !cq->timestamp && !cq->is_padded &&
           (cq->minis == 0) && !hca_cq_looks_full(cq, 0);
}

/* hca_cq_post() for completions without error. The slow path takes a
 * copy, so that the compiler can keep the fields of *cqe in registers. */
HCA_CQE_F enum hca_check hca_cq_post_inline(uint32_t cqn,
                                            const struct hca_cqe *cqe)
{
    struct hca_cq *cq    = hca_obj_lock(HCA_KIND_CQ, cqn);
    enum hca_check check = HCA_OK;

    if (cq == NULL) {
        return HCA_CHECK_CQ;
    }
    if (__builtin_expect(hca_cq_is_plain(cq), 1)) {
        hca_cqe_put_inline(cq, cqe, 0, 0);
        hca_cq_advance(cq, 1);
        if (cqe->solicited) {
            cq->solicited_pi = cq->pi;
        }
    } else {
        struct hca_cqe copy = *cqe;

        check = hca_cq_post_locked(cq, &copy);
    }
    hca_obj_unlock(cq);
    return check;
}

#endif
