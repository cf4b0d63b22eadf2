/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Send queues of this process: their state in the owner's memory */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/resp/hca_posted.h"

/* Under the QP's sq_lock. While the QP has one, its req.attached is set. */
struct hca_sq {
    struct hca_timer timer; /* hca_requester_timer(), which casts it: first */
    struct hca_qp *qp;
    struct hca_streams *streams; /* WQEs fetched and not completed, or NULL */
    struct hca_posted posted;    /* data acknowledged and not in memory */
};

/* By the QP's slot. Not in the QP, as any process may write there. */
extern struct hca_sq *hca_sqs[HCA_MAX_QPS + 1]
    __attribute__((visibility("hidden")));

/* Returns the send queue of a QP of this process; NULL if it has none. Any
 * process may have written the QP's number. */
static inline struct hca_sq *hca_sq_of(const struct hca_qp *qp)
{
    uint32_t qpn = atomic_load_explicit(&qp->obj.num, memory_order_relaxed);
    struct hca_sq *sq = hca_sqs[qpn % (HCA_MAX_QPS + 1)];

    return ((sq != NULL) && (sq->qp == qp)) ? sq : NULL;
}

/* Forgets the parent's queues in the child of a fork(). */
void hca_sq_forked(void);

/* Adds the send queue of a published QP (sq.buf is not 0). The caller is inside
 * the device (hca_thread.h) and does not hold sq_lock.
 * @return 0 or -ENOMEM. */
int hca_sq_add(struct hca_qp *qp);

/* Removes the send queue of a QP in RESET, under sq_lock: nothing of it is
 * executed any more. @return it, or NULL: the QP has none. */
struct hca_sq *hca_sq_detach(struct hca_qp *qp);

/* Frees a removed queue. The caller holds no lock of the QP any more: a timer
 * of it may wait for one, and finds nothing to do. */
void hca_sq_free(struct hca_sq *sq);

/* Drops the fetched WQEs without completions, and writes acknowledged data to
 * memory. The caller holds sq_lock; the QP has a queue. */
void hca_sq_drop_kept(struct hca_qp *qp);

/* Writes acknowledged data to memory, at the end of the process, except of
 * queues on which a thread executes. */
void hca_sq_exit(void);

#define HCA_ANY_UAR UINT32_MAX

/* Runs each send queue of this process whose doorbell is on page @uar; all
 * with HCA_ANY_UAR. The caller holds no lock of an object. */
void hca_sq_run_all(uint32_t uar);

#endif
