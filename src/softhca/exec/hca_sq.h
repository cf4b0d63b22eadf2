/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queues of this process: their state in the owner's memory, and their
 * list.
 */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/resp/hca_posted.h"

/* Under the QP's sq_lock, except `next`, under the mutex of the list. */
struct hca_sq {
    struct hca_timer timer; /* hca_requester_timer(), which casts it: first */
    struct hca_qp *qp;
    uint32_t qpn;
    struct hca_streams *streams; /* WQEs fetched and not completed, or NULL */
    struct hca_posted posted;    /* data acknowledged and not in memory */
    struct hca_sq *next;
};

/* Add a published QP that has a send queue (sq.buf is not 0), and remove it:
 * nothing of it is executed any more. hca_sq_add() sets req.sq, which
 * hca_qp_destroy() frees. The caller is inside the device (hca_thread.h) and
 * does not hold sq_lock. @return 0 or -ENOMEM. */
int hca_sq_add(struct hca_qp *qp);
void hca_sq_del(struct hca_qp *qp);

/* Drops the fetched WQEs without completions, and writes acknowledged data to
 * memory. The caller holds sq_lock; qp->req.sq is not NULL. */
void hca_sq_drop_kept(struct hca_qp *qp);

/* Writes acknowledged data to memory, at the end of the process, except of
 * queues on which a thread executes. */
void hca_sq_exit(void);

#define HCA_ANY_UAR UINT32_MAX

/* Runs each send queue of this process whose doorbell is on page @uar; all
 * with HCA_ANY_UAR. The caller holds no lock of an object. */
void hca_sq_run_all(uint32_t uar);

/* Forgets the queues in a forked child: they are the parent's. */
void hca_sq_forked(void);

#endif
