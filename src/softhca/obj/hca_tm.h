/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The list of an SRQ with tag matching: tagged buffers in the order in which
 * they were posted, and the two counters that keep device and program in step.
 * It lies in the arena, and its SRQ's lock is held for all of this. hca_tm_op.c
 * applies WQEs to it, hca_resp_tm.c messages.
 *
 * After rdma-core's Documentation/tag_matching.md: a message that no entry
 * matches is unexpected and counted. Entries posted from then on match nothing
 * until the program has reported as many seen: one of those messages may be
 * meant for them.
 *
 *   head                              inactive               tail
 *    |                                    |                    |
 *    e0 ---- e1 ---- e2 ---- e3 --------- e4 ------ e5 ------- e6
 *    may match                            posted too early to match
 */
#ifndef HCA_TM_H
#define HCA_TM_H

#include "hca_check.h"
#include "hca_objs.h"

#include <common/prm.h>
#include <infiniband/mlx5dv.h>

/* Bytes of a struct hca_tm_job, whose contents are known to resp/ and exec/. */
#define HCA_TM_JOB_SIZE 264u

#define HCA_TM_NONE    0xffffu /* no entry */
#define HCA_TM_LOG_MAX 10u     /* log_tag_matching_list_sz */
#define HCA_TM_MAX_SGE 1u

enum hca_tm_state {
    HCA_TM_FREE,
    HCA_TM_LISTED,
    HCA_TM_BUSY /* matched, its data is under way */
};

struct hca_tm_entry {
    uint64_t tag, mask;
    struct mlx5_wqe_data_seg data; /* as in the WQE */
    uint16_t next, prev;           /* of the list */
    uint8_t state;                 /* enum hca_tm_state */
};

struct hca_tm {
    uint16_t size;        /* entries */
    uint16_t append_next; /* index for the next one */
    uint16_t head, tail;
    uint16_t inactive; /* first that matches nothing yet */
    uint16_t sw_phase_cnt, hw_phase_cnt;
    uint64_t num_expected, num_unexpected, num_no_tag, num_strides;
    hca_off_t jobs; /* struct hca_tm_job (hca_tm_job.h) per entry */
    struct hca_tm_entry entries[];
};

/* Creates a list of 2^log_size entries. @return 0 if there is no memory. */
hca_off_t hca_tm_create(unsigned log_size);
void hca_tm_destroy(struct hca_tm *tm);

/* Initializes an empty list; all of @tm is zero. */
void hca_tm_init(struct hca_tm *tm, uint16_t size);

/* Logs the counts of messages and strides of a list. */
void hca_tm_log_counts(uint32_t srqn, const struct hca_tm *tm);

static inline struct hca_tm *hca_srq_tm(const struct hca_srq *srq)
{
    return (struct hca_tm *)hca_at(srq->tm);
}

/* Returns true if SRQ @srqn, which may be 0, is live and has tag matching. */
bool hca_srq_has_tm(uint32_t srqn);

/* Checks that an entry can be appended; @next is the index of the next one.
 * @return HCA_OK, HCA_CHECK_TM_INDEX, HCA_CHECK_TM_FULL. */
enum hca_check hca_tm_check_next(const struct hca_tm *tm, uint16_t next);

/* Appends an entry with tag, mask and data of @fields; hca_tm_check_next() has
 * accepted @next. */
void hca_tm_append(struct hca_tm *tm, const struct hca_tm_entry *fields,
                   uint16_t next);

/* @param index  below tm->size
 * @return false if the entry is not in the list (any more). */
bool hca_tm_remove(struct hca_tm *tm, uint16_t index);

/* Records that the program has seen @sw_cnt (modulo 2^16) unexpected
 * messages. */
void hca_tm_sync(struct hca_tm *tm, uint16_t sw_cnt);

/* hca_tm_match() of a list that has active entries. */
uint16_t hca_tm_search(const struct hca_tm *tm, uint64_t tag);

/* Returns the first active entry that matches, or HCA_TM_NONE. */
static inline uint16_t hca_tm_match(const struct hca_tm *tm, uint64_t tag)
{
    return (tm->head == tm->inactive) ? HCA_TM_NONE : hca_tm_search(tm, tag);
}

/* Consume an entry that matched: remove it from the list and free it; remove
 * it, busy while its data is under way; free a busy entry. */
void hca_tm_consume(struct hca_tm *tm, uint16_t index);
void hca_tm_consume_begin(struct hca_tm *tm, uint16_t index);
void hca_tm_consume_end(struct hca_tm *tm, uint16_t index);

/* Counts a message that matched no entry (PRM_CQE_TM_UNEXPECTED), or has no tag
 * (PRM_CQE_TM_NO_TAG). */
static inline void hca_tm_count(struct hca_tm *tm, uint8_t tm_op)
{
    if (tm_op == PRM_CQE_TM_UNEXPECTED) {
        tm->num_unexpected++;
        tm->hw_phase_cnt++;
    } else {
        tm->num_no_tag++;
    }
}

/* Rebuilds prev, state, tail and inactive after an operation that was cut off
 * at any store. */
void hca_tm_relink(struct hca_tm *tm);

/* hca_kind_ops.repair: for an SRQ whose lock a dead process held. */
void hca_tm_repair(void *srq);

#endif
