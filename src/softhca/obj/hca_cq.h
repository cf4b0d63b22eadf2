/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues: the object (hca_cq.c), and completions that are added to
 * it (hca_cq_post.c). Their events are in hca_cq_event.h.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include "hca_cqe.h"
#include "hca_objs.h"

#include <endian.h>

struct hca_cq_spec {
    unsigned        dev;
    struct hca_ring ring;          /* stride 64 or 128 */
    hca_off_t       dbrec;
    uint32_t        uar;
    uint32_t        chan, async_chan; /* of its events, 0 none */
    uint64_t        user_handle;      /* that these name */
    uint16_t        mod_count, mod_period_us; /* moderation; 0 off */
    bool            ignore_overrun;
    bool            timestamp;     /* CQEs carry the time */
    bool            is_padded;     /* all 128 bytes of an entry are written */
    bool            is_compressed; /* by mini CQEs of any format */
};

/* Events written for a queue that the program has read */
struct hca_cq_events {
    uint32_t comp, async;
};

/* @return 0, -ENOMEM. */
int hca_cq_create(const struct hca_cq_spec *spec, struct hca_cq **cq_p);

/* Sets the moderation: MODIFY_CQ. @return 0, -ETIMEDOUT (it cannot be had). */
int hca_cq_modify(uint32_t cqn, uint16_t count, uint16_t period_us);

/* @param events  filled in, if not NULL
 * @return 0; -ETIMEDOUT if its ring has to stay: a process that is stopped may
 * yet write to it. */
int hca_cq_destroy(struct hca_cq *cq, struct hca_cq_events *events);

/* Bytes of a message that may go into a CQE of this queue, for a QP that
 * allows `scatter`: 64 takes an entry of 128. 0: none. */
unsigned hca_cq_inline_room(uint32_t cqn, unsigned scatter);

/* Makes it take no completions any more. Its lock need not be held.
 * @return true if this was the first time. */
bool hca_cq_to_error(struct hca_cq *cq);

/* Tells the program of that, and puts the queue pairs in error later. */
void hca_cq_fail(struct hca_cq *cq);

/* Like hca_obj_lock(). A process that is stopped in the middle of it may write
 * to it at any time: it is in error then, as one that overran. */
struct hca_cq *hca_cq_lock(uint32_t cqn);

/* Adds a completion. No CQ lock may be held.
 * @return 0, -ENOENT (no such queue, or it cannot be had), -EOVERFLOW (overrun,
 *         now or before: the QP has to go to the error state). */
int hca_cq_post(uint32_t cqn, const struct hca_cqe *cqe);

/* Writes what is held of a queue, if it is there. No CQ lock may be held. */
void hca_cq_close(uint32_t cqn);

/* Goes on in another ring: RESIZE_CQ. The old one is not touched afterwards.
 * @return 0, -ETIMEDOUT (it cannot be had), -EINVAL (more is waiting than the
 * new one holds). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring);

/* The last who held obj.lock died inside, and it is held again now: finishes
 * what was begun (hca_kind_ops.repair). */
void hca_cq_repair(void *obj);

/* An index, cut to the 24 bits it has. */
static inline uint32_t hca_cq_index(uint32_t pi)
{
    return pi & 0xffffffu;
}

/* The index up to which the program has consumed, by its doorbell record. */
static inline uint32_t hca_cq_consumer(const struct hca_cq *cq)
{
    const uint32_t *dbrec = (const uint32_t*)hca_ptr(cq->dbrec);

    /* pairs with the program's barrier between reading a CQE and giving it
     * back */
    return hca_cq_index(be32toh(__atomic_load_n(&dbrec[0],
                                                __ATOMIC_ACQUIRE)));
}

/* The device's clock, of which completions carry the time: nanoseconds. */
uint64_t hca_cq_timestamp(void);

#endif
