/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Injects faults of the wire: SOFTHCA_FAULT, up to 8 rules. A rule hits `count`
 * matching messages of the process, from the nth on. Without rules this costs
 * one branch a message.
 *
 *   SOFTHCA_FAULT=what[:key=value]...[,what...]
 *   what: drop       the message is lost on its way
 *         drop_ack   it is executed, the answer is lost (RC, XRC, DC)
 *         rnr        it is answered with an RNR NAK
 *         nak_inval, nak_access, nak_op
 *                    it is answered with this NAK
 *         port_down  it is lost, as the sender's port goes down; the ports come
 *                    up with the matching message after the last of count, or
 *                    when the process is gone
 *         device_fatal
 *                    it is lost, as the sender's device fails: hca_fatal.h
 *   op=send|write|read|atomic   default: any
 *   nth=N                       first one to match, from 1; default 1
 *   count=N                     how many; 0: all from then on; default 1
 */
#ifndef HCA_FAULT_H
#define HCA_FAULT_H

#include "softhca/resp/hca_msg.h"

/* False without rules: hca_fault_request() and hca_fault_response() are not
 * called then. */
extern bool hca_fault_active __attribute__((visibility("hidden")));

/* Reads SOFTHCA_FAULT; a wrong value logs an error and sets no faults. */
void hca_fault_init(void);

/* @return true if the message does not arrive. ack->code is then the answer to
 * the requester. */
bool hca_fault_request(const struct hca_msg *msg, struct hca_ack *ack);

/* Drops the answer in @ack if a drop_ack fault is due; ack->lost is then set if
 * it was positive. */
void hca_fault_response(const struct hca_msg *msg, struct hca_ack *ack);

#endif
