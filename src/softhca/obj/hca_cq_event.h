/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion events: requests by the arm doorbell, when an event is due, and
 * its moderation. Under the CQ's lock, except hca_cq_arm().
 */
#ifndef HCA_CQ_EVENT_H
#define HCA_CQ_EVENT_H

#include "hca_objs.h"

/* Arms the CQ after its doorbell; the request is in the doorbell record. */
void hca_cq_arm(uint32_t cqn);

/* Arms CQs of this process whose doorbell records have moved, after a doorbell
 * that names no CQ. A first request for all completions looks like none, so a
 * CQ that was never armed is armed: an extra event is harmless, a missing one
 * is not. */
void hca_cq_arm_moved(void);

/* Notes a completion that was added; sends an event if the CQ is armed. */
void hca_cq_notify(struct hca_cq *cq, bool solicited);

/* hca_cq_notify() for completions whose writer died before calling it. */
void hca_cq_notify_late(struct hca_cq *cq);

#endif
