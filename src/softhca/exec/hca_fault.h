/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Faults of messages (hca_rule.h): what a fabric and a device can do to them.
 * hca_wire.c calls this if there are rules.
 */
#ifndef HCA_FAULT_H
#define HCA_FAULT_H

#include "softhca/fabric/hca_rules.h"
#include "softhca/resp/hca_msg.h"

/* The way that a message takes */
enum hca_fault_way {
    HCA_FAULT_ARRIVES,
    HCA_FAULT_LOST,    /* it does not arrive: the answer is in the ack */
    HCA_FAULT_FLIPPED, /* it arrives with a bit of its payload changed */
    HCA_FAULT_TWICE    /* it arrives, and once more */
};

/* Finds the rule that selects a message of @qp, whose sq_lock is held, or which
 * only the caller knows. Does what the rule says, except for the way.
 * @param random  selects the bit that changes */
enum hca_fault_way hca_fault_request(struct hca_qp *qp,
                                     const struct hca_msg *msg,
                                     struct hca_ack *ack, uint64_t *random);

/* Does what a rule says that selects a WQE of @qp that sends no message.
 * sq_lock is held.
 * @param op  HCA_RULE_OP_* */
void hca_fault_local(struct hca_qp *qp, uint8_t op);

/* Drops the answer in @ack if a rule selects it; ack->lost is then set if it
 * was positive. */
void hca_fault_answer(const struct hca_msg *msg, struct hca_ack *ack);

/* Changes bit @random of the payload of a SEND or a WRITE, unless it has none
 * or too many pieces: msg->data is then @data, with the changed @byte. */
void hca_fault_flip(struct hca_msg *msg, uint64_t random, struct hca_sgl *data,
                    uint8_t *byte);

/* Changes bit @random of the result of a READ or an atomic. */
void hca_fault_flip_result(const struct hca_msg *msg, struct hca_ack *ack,
                           uint64_t random);

#endif
