/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The requester: executes the send queues of this process.
 */
#ifndef HCA_REQUESTER_H
#define HCA_REQUESTER_H

#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"

/* Executes the WQEs of an SQ up to its doorbell record, or flushes them if the
 * QP is in error. The caller holds no lock of an object. It may have found @qp
 * without a lock: if the number is not @qpn by now, nothing is done. */
void hca_requester_run(struct hca_qp *qp, uint32_t qpn);

/* hca_requester_run() for a caller that holds sq_lock, but not obj.lock. The QP
 * is attached (hca_sq_add()). */
void hca_requester_run_locked(struct hca_qp *qp);

/* Flushes the SQ of a QP in error. The caller holds no lock. If another thread
 * executes on it, or its owner has fetched WQEs (hca_stream.h), the owner
 * flushes it. */
void hca_requester_flush_failed(uint32_t qpn);

/* Runs the SQ whose hca_sq.timer is due. */
void hca_requester_timer(struct hca_timer *timer);

#endif
