/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The requester: executes the send queues of this process.
 */
#ifndef HCA_REQUESTER_H
#define HCA_REQUESTER_H

#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"

/* Runs the SQ up to its doorbell record. No lock of any object is held. The QP
 * was looked up by number without a lock: if it is another by now, nothing is
 * done. */
void hca_requester_run(struct hca_qp *qp, uint32_t qpn);

/* hca_requester_run() with sq_lock held, for a QP that is attached. */
void hca_requester_run_locked(struct hca_qp *qp);

/* Flushes the SQ of a QP that hca_qp_fail() put in error. No lock is held. If
 * its owner is executing on it, the owner flushes it. */
void hca_requester_flush_failed(uint32_t qpn);

/* Runs an SQ whose wait is over (struct hca_sq.timer). */
void hca_requester_timer(struct hca_timer *timer);

#endif
