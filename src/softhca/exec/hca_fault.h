/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Faults of the wire, on demand: SOFTHCA_FAULT. Deterministic: a fault applies
 * to `count` messages that match, from the nth on. Off, it costs one branch a
 * message.
 *
 *   SOFTHCA_FAULT=what[:key=value]...[,what...]
 *   what: drop       the message is lost on its way
 *         drop_ack   it is executed, the answer is lost (RC, XRC, DC)
 *         rnr        answered with RNR NAK
 *         nak_inval, nak_access, nak_op
 *         port_down  it is lost, as the sender's port goes down; the port comes
 *                    up when count messages were lost, on any port, or the
 *                    process is gone
 *   op=send|write|read|atomic   default: any
 *   nth=N                       first one to match, from 1; default 1
 *   count=N                     how many; 0: all from then on; default 1
 */
#ifndef HCA_FAULT_H
#define HCA_FAULT_H

#include "softhca/resp/hca_msg.h"

extern bool hca_fault_active;

/* Reads SOFTHCA_FAULT; a wrong value logs an error and sets no faults. */
void hca_fault_init(void);

/* @return true if the message does not arrive; @ack is then the requester's
 * answer. */
bool hca_fault_request(const struct hca_msg *msg, struct hca_ack *ack);

/* Drops the answer in @ack, if a fault is due. */
void hca_fault_response(const struct hca_msg *msg, struct hca_ack *ack);

#endif
