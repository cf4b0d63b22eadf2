/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Completion events: what the arm doorbell asks for, when it is due, and its
 * moderation. Under the CQ's lock, but for hca_cq_arm().
 */
#ifndef HCA_CQ_EVENT_H
#define HCA_CQ_EVENT_H

#include "hca_objs.h"

/* A doorbell asked to arm the CQ; what it wants is in the doorbell record. */
void hca_cq_arm(uint32_t cqn);

/* A doorbell asked to arm some CQ of this process: looks which records have
 * moved. A first request for all completions cannot be told from none; so a CQ
 * that was never armed is: an event too much is no harm, one too few is. */
void hca_cq_arm_moved(void);

/* A completion was added while the CQ is armed. */
void hca_cq_notify(struct hca_cq *cq, bool solicited);

/* The same for completions whose writer died before it came to this. */
void hca_cq_notify_late(struct hca_cq *cq);

#endif
