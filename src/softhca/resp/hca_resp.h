/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A message under execution, for the files of the responder only: from
 * hca_responder.c, which takes it in and answers it, down to the steps of its
 * execution.
 */
#ifndef HCA_RESP_H
#define HCA_RESP_H

#include "hca_msg.h"
#include "softhca/obj/hca_rq.h"

struct hca_responder {
    struct hca_qp *qp;
    const struct hca_msg *msg;
    struct hca_ack *ack;
    bool srq_held; /* lock of the SRQ, taken after the QP's */
    bool qp_lost;  /* QP's lock was released, not retaken */
    struct hca_recv recv;
    struct hca_sgl memory; /* read or written here by the message */
};

/* --- hca_resp_exec.c ------------------------------------------------------ */

/* @return HCA_OK, HCA_CHECK_NO_RECV, HCA_DROP, or an error, logged. The
 * caller releases resp->memory. */
enum hca_check hca_resp_execute(struct hca_responder *resp);

/* hca_resp_execute() for a message that was executed before. */
enum hca_check hca_resp_repeat(struct hca_responder *resp);

/* --- hca_resp_tm.c -------------------------------------------------------- */

/* Executes a SEND to a QP whose SRQ has tag matching.
 * @return as hca_resp_execute(). */
enum hca_check hca_resp_tm_send(struct hca_responder *resp);

/* --- hca_resp_strides.c --------------------------------------------------- */

/* Executes a SEND, from the bytes that had arrived before, to strides of an SRQ
 * whose lock is held. resp->ack->arrived is the number of bytes there now, also
 * without success. @param tm_op  PRM_CQE_TM_* of its completions
 * @return HCA_OK, HCA_CHECK_NO_RECV, HCA_DROP, or an error. */
enum hca_check hca_resp_strides_send(struct hca_responder *resp,
                                     struct hca_srq *srq, uint8_t tm_op);

/* --- hca_resp_recv.c ------------------------------------------------------ */

/* Logs a line. @return check. */
enum hca_check hca_resp_bad(const struct hca_responder *resp,
                            enum hca_check check, uint64_t got);

/* Fills in resp->recv. @return HCA_OK, HCA_CHECK_NO_RECV, or an error. */
enum hca_check hca_resp_take_recv(struct hca_responder *resp);

/* Moves bytes; the lock of a DCT may be released meanwhile, unless that of an
 * SRQ is held, too. @param fault  the error if memory is missing
 * @return HCA_OK, HCA_DROP, or @fault. */
enum hca_check hca_resp_copy(struct hca_responder *resp,
                             const struct hca_sgl *dst,
                             const struct hca_sgl *src, enum hca_check fault);

/* Completes the receive; @data goes into the CQE, if not NULL. */
enum hca_check hca_resp_complete(struct hca_responder *resp, const void *data);

/* Writes the whole message to the receive that was taken, and completes it. */
enum hca_check hca_resp_deliver(struct hca_responder *resp);

/* Invalidates the mkey of a SEND with invalidate, once there is a receive for
 * it: before, the sender may have to try again. */
enum hca_check hca_resp_invalidate(struct hca_responder *resp);

/* Finds the domain of remote mkeys; sets the owner of resp->memory. @return
 * false if an XRC message names no SRQ of the QP. */
bool hca_resp_pdn(struct hca_responder *resp, uint32_t *pdn);

/* Returns true if a copy failed as its process is gone or out of reach. */
bool hca_resp_unreached(int ret);

#endif
