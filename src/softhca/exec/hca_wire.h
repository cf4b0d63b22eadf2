/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The narrow step between requester and responder: finds the target, checks
 * that it is reachable, injects faults, and traces.
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "softhca/resp/hca_msg.h"

#define HCA_RNR_FOREVER 7u /* rnr_retry without a limit */

/* Delivers a message of @qp, whose sq_lock is held. @ack is always filled in;
 * on a service without acknowledgement it is HCA_ACK. */
void hca_wire_send(struct hca_qp *qp, const struct hca_msg *msg,
                   struct hca_ack *ack);

/* Returns the time to wait after an RNR with this timer of the responder. */
uint64_t hca_wire_rnr_ns(uint8_t timer);

/* Returns the time to wait for an answer with this timeout of the QP. */
uint64_t hca_wire_timeout_ns(uint8_t timeout);

#endif
