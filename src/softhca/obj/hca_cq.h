/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion queues: the object (hca_cq.c), and adding completions to it
 * (hca_cq_post.c). Their events are in hca_cq_event.h.
 */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include "hca_check.h"
#include "hca_cqe.h"
#include "hca_objs.h"

#include <endian.h>

struct hca_cq_spec {
    unsigned dev;
    struct hca_ring ring; /* stride 64 or 128 */
    hca_off_t dbrec;
    uint32_t uar;
    uint32_t chan, async_chan;         /* channels of its events, 0 none */
    uint64_t user_handle;              /* reported in its events */
    uint16_t mod_count, mod_period_us; /* moderation; 0 off */
    bool ignore_overrun;
    bool timestamp;     /* CQEs carry the time */
    bool is_padded;     /* all 128 bytes of an entry are written */
    bool is_compressed; /* by mini CQEs of any format */
};

/* Numbers of a queue's events that the program has read */
struct hca_cq_events {
    uint32_t comp, async;
};

/* Creates a CQ. Its ring and doorbell record stay the caller's.
 * @return 0, -ENOMEM. */
int hca_cq_create(const struct hca_cq_spec *spec, struct hca_cq **cq_p);

/* Sets the moderation: MODIFY_CQ.
 * @return 0, -ENOENT (no such CQ). */
int hca_cq_modify(uint32_t cqn, uint16_t count, uint16_t period_us);

/* Destroys a CQ, and removes its unread events.
 * @return 0; -ETIMEDOUT, as hca_obj_hold_last(): the CQ stays. */
int hca_cq_destroy(struct hca_cq *cq, struct hca_cq_events *events);

/* Bytes of a message that have room in each CQE */
#define HCA_CQ_INLINE_LEAST 32u

/* Returns the number of bytes of a message that may go into a CQE of this
 * queue, for a QP that allows @scatter bytes: 0, 32, or, in entries of 128
 * bytes, 64. */
static inline unsigned hca_cq_inline_room(uint32_t cqn, unsigned scatter)
{
    const struct hca_cq *cq;

    if (scatter == 0) {
        return 0;
    }
    cq = (const struct hca_cq *)hca_obj_peek(HCA_KIND_CQ, cqn);
    if (cq == NULL) {
        return 0;
    }
    return ((cq->ring.log_stride == 7) && (scatter >= 64)) ?
               64 :
               HCA_CQ_INLINE_LEAST;
}

/* Adds a completion. The caller holds no lock of a CQ.
 * @return HCA_OK, or HCA_CHECK_CQ (no such CQ, or overrun, now or before): the
 *         QP must go to the error state. */
enum hca_check hca_cq_post(uint32_t cqn, const struct hca_cqe *cqe);

/* Puts a queue in error as if it had overrun, if it exists and is not. The
 * caller is inside the device (hca_thread.h) and holds no lock of a CQ. */
void hca_cq_fail(uint32_t cqn);

/* Writes the completions that a queue holds for compression (hca_cq_mini.h), if
 * it exists. The caller holds no lock of a CQ. */
void hca_cq_close(uint32_t cqn);

/* Switches to another ring: RESIZE_CQ. The old one is not accessed afterwards.
 * @return 0, -ENOENT (no such CQ), -EINVAL (as many completions wait as the new
 *         ring has entries, or more). */
int hca_cq_resize(uint32_t cqn, const struct hca_ring *ring);

/* Completes the work of a holder of obj.lock that died; the lock is held again
 * (hca_kind_ops.repair). */
void hca_cq_repair(void *obj);

/* Cuts an index to its 24 bits. */
static inline uint32_t hca_cq_index(uint32_t pi)
{
    return pi & 0xffffffu;
}

/* Returns the index up to which the program has consumed, by its doorbell
 * record. */
static inline uint32_t hca_cq_consumer(const struct hca_cq *cq)
{
    const uint32_t *dbrec = (const uint32_t *)hca_at(cq->dbrec);

    /* pairs with the program's barrier between reading a CQE and giving it
     * back */
    return hca_cq_index(be32toh(__atomic_load_n(&dbrec[0], __ATOMIC_ACQUIRE)));
}

/* Returns the clock of the device, in nanoseconds: the time stamp of
 * completions. */
uint64_t hca_cq_timestamp(void);

#endif
