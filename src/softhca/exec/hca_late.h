/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * SOFTHCA_DELAY (microseconds): a device that is as late as a NIC may be.
 * Without it the device executes WQEs within the doorbell, one by one, so that
 * a program never sees two under way: a missing fence, or a buffer that is
 * reused too early, does no harm. With a delay
 *
 *  - a doorbell's WQEs are executed that much later, by the timer: the ring and
 *    the sources are read when the program has long gone on;
 *  - the result of a READ or an atomic is kept, in the entry of its WQE
 *    (hca_stream.h). It is written to memory, with its completion and those
 *    behind it, after all WQEs rung meanwhile were executed; earlier only for a
 *    WQE with a fence, or if the limit of READs and atomics is reached.
 *
 * All functions for a QP are called under its sq_lock, in the owner's process.
 */
#ifndef HCA_LATE_H
#define HCA_LATE_H

#include "softhca/wqe/hca_wqe.h"

/* The delay in ns; 0: off, and hca_late_finish() completes nothing. */
extern uint64_t hca_late_ns __attribute__((visibility("hidden")));

/* Reads SOFTHCA_DELAY; a wrong value logs an error and sets no delay. */
void hca_late_init(void);

/* @return true if the queue must run now; if not, the timer runs it later. */
bool hca_late_is_due(struct hca_qp *qp);

/* Call it at the end of a run of the queue: completes the results of earlier
 * runs, and arms the timer for those of this one. */
void hca_late_tick(struct hca_qp *qp);

/* Completes the results for which @wqe, the next to execute, must wait. */
void hca_late_before(struct hca_qp *qp, const struct hca_wqe *wqe);

/* Completes all results. */
void hca_late_finish(struct hca_qp *qp);

#endif
