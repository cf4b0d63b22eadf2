/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The send queues of this process: the parts of them in the owner's memory, and
 * their list.
 */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/resp/hca_posted.h"

/* Kept under the QP's sq_lock. */
struct hca_sq {
    struct hca_timer timer; /* RNR, retry; first: the timer is the queue */
    struct hca_qp *qp;
    uint32_t qpn;
    struct hca_streams *streams; /* fetched and not completed, or NULL */
    struct hca_posted posted;    /* acknowledged and not in memory */
    struct hca_sq *next;
};

/* Start and stop listening to the UAR of a published QP that sends (all but
 * DCT, XRC_RECV). del: from now on nothing of it is executed. The caller is
 * inside the device (hca_thread.h). */
int hca_sq_add(struct hca_qp *qp);
void hca_sq_del(struct hca_qp *qp);

/* Drops completions of executed WQEs, and writes acknowledged data to memory.
 * qp->req.sq must be set. */
void hca_sq_drop_kept(struct hca_qp *qp);

/* Writes acknowledged data to memory, at the end of the process. */
void hca_sq_exit(void);

#define HCA_ANY_UAR UINT32_MAX

/* Runs each send queue of a UAR page, or of any, whose doorbell record moved.
 */
void hca_sq_run_all(uint32_t uar);

/* Forgets the queues in a forked child: they are the parent's. */
void hca_sq_forked(void);

#endif
