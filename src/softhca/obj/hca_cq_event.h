/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion events: requests by the arm doorbell, events, their moderation.
 * hca_cq_arm() and hca_cq_arm_moved() take the CQ's lock; callers of
 * hca_cq_notify() and hca_cq_notify_late() hold it.
 */
#ifndef HCA_CQ_EVENT_H
#define HCA_CQ_EVENT_H

#include "hca_objs.h"

/* Arms the CQ after its doorbell; the request is in the doorbell record. */
void hca_cq_arm(uint32_t cqn);

/* Arms CQs of this process whose doorbell records have changed, after a
 * doorbell that names no CQ. A first request for all completions does not
 * change the record: a CQ that was never armed, with a channel or a
 * subscription, is armed, too. An extra event is harmless, a missing one is
 * not. */
void hca_cq_arm_moved(void);

/* Sends the event of a completion added to an armed CQ, now or after
 * moderation. Does nothing if the CQ was armed for solicited completions only,
 * and this is none. */
void hca_cq_notify(struct hca_cq *cq, bool solicited);

/* hca_cq_notify() for completions whose writer died before it called that. Does
 * nothing unless the CQ is armed. */
void hca_cq_notify_late(struct hca_cq *cq);

/* Forgets events that wait, in a forked child: they are the parent's. */
void hca_cq_event_forked(void);

#endif
