/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_DELAY: a device that is as late as a NIC may be. By itself this one
 * executes a WQE within its doorbell, one after the other, so that a program
 * never sees two under way: a fence that is missing, or a buffer that is used
 * again too early, does no harm. With a delay
 *
 *  - what a doorbell rings is executed that much later, by the timer: sources
 *    are read, and the ring, when the program has long gone on;
 *  - what a READ or an atomic brings is kept, in the entry of its WQE
 *    (hca_stream.h). It comes to memory, with its completion and those behind
 *    it, not before what was rung meanwhile has been executed too; earlier only
 *    for a WQE with a fence, or if as many are under way as may be.
 *
 * Everything here is under the QP's sq_lock, in the owner's process.
 */
#ifndef HCA_LATE_H
#define HCA_LATE_H

#include "softhca/wqe/hca_wqe.h"

/* 0: off, and nothing else here is called. */
extern uint64_t hca_late_ns;

/* Reads SOFTHCA_DELAY; a wrong value is an error line and no delay. */
void hca_late_init(void);

/* @return true if the queue is to be run now; if not, the timer will do it. */
bool hca_late_is_due(struct hca_qp *qp);

/* The queue was run: what was executed before that completes. */
void hca_late_tick(struct hca_qp *qp);

/* @wqe is next: completes what it has to wait for. */
void hca_late_before(struct hca_qp *qp, const struct hca_wqe *wqe);

/* Completes all. */
void hca_late_finish(struct hca_qp *qp);

#endif
