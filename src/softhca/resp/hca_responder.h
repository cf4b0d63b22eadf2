/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The responder: executes one message on the QP it is meant for.
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include "hca_msg.h"

/* qp, whose obj.lock is held, is of the type that takes the message, and its
 * process lives. ack->code stays HCA_ACK_NONE if the message is dropped. The
 * lock may be released and taken again meanwhile.
 * @return false if it could not be taken again: a process that is stopped has it.
 */
bool hca_responder_receive(struct hca_qp *qp, const struct hca_msg *msg,
                           struct hca_ack *ack);

#endif
