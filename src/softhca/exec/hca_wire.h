/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The narrow step between requester and responder: finds the target and if it
 * can be reached, injects faults, and traces.
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "softhca/resp/hca_msg.h"

#define HCA_RNR_FOREVER 7u /* rnr_retry that has no end */

/* Delivers a message of qp, whose sq_lock is held. ack is filled in whatever
 * happens; on a service without acknowledgement it is HCA_ACK. */
void hca_wire_send(struct hca_qp *qp, const struct hca_msg *msg,
                   struct hca_ack *ack);

/* Time to wait after an RNR with that timer of the responder. */
uint64_t hca_wire_rnr_ns(uint8_t timer);

/* Time to wait for an answer with that timeout of the QP. */
uint64_t hca_wire_timeout_ns(uint8_t timeout);

#endif
