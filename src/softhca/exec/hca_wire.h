/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The step between requester and responder: finds the target, checks that it is
 * reachable, injects faults, counts traffic, and traces.
 */
#ifndef HCA_WIRE_H
#define HCA_WIRE_H

#include "softhca/resp/hca_msg.h"

#define HCA_RNR_FOREVER 7u /* rnr_retry without a limit */

/* Delivers a message of @qp, whose sq_lock is held, or which only the caller
 * knows (hca_rndv_fetch.c). @ack is always filled in: HCA_ACK on a service
 * without acknowledgement, HCA_ACK_NONE if the target cannot be reached. */
void hca_wire_send(struct hca_qp *qp, const struct hca_msg *msg,
                   struct hca_ack *ack);

/* Returns the time to wait after an RNR: @timer is the responder's code, of 5
 * bits. */
uint64_t hca_wire_rnr_ns(uint8_t timer);

/* Returns the time to wait for an answer: @timeout is the QP's code. 0 means
 * for ever, with a try each half second. */
uint64_t hca_wire_timeout_ns(uint8_t timeout);

#endif
