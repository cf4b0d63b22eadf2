/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The responder: executes one message on its target QP.
 */
#ifndef HCA_RESPONDER_H
#define HCA_RESPONDER_H

#include "hca_msg.h"

/* Executes @msg on @qp, whose obj.lock is held, which is of the type that takes
 * the message, and whose process lives. ack->code stays HCA_ACK_NONE if the
 * message is dropped. The lock of a DCT may be released and retaken
 * meanwhile. */
void hca_responder_receive(struct hca_qp *qp, const struct hca_msg *msg,
                           struct hca_ack *ack);

#endif
