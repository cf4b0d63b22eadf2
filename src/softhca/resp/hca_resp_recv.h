/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A message under execution, and what executing it consists of; for the files
 * of the responder only.
 */
#ifndef HCA_RESP_RECV_H
#define HCA_RESP_RECV_H

#include "hca_msg.h"
#include "softhca/obj/hca_rq.h"

struct hca_responder {
    struct hca_qp        *qp;
    const struct hca_msg *msg;
    struct hca_ack       *ack;
    bool                  srq_held; /* the lock of the SRQ, below the QP's */
    bool                  qp_lost;  /* that of the QP, which was released */
    struct hca_recv       recv;
    struct hca_sgl        memory; /* what the message reads or writes here */
};

/* One log line. @return check. */
enum hca_check hca_resp_bad(const struct hca_responder *resp,
                            enum hca_check check, uint64_t got);

/* Fills in resp->recv. @return HCA_OK, HCA_CHECK_NO_RECV, what is wrong. */
enum hca_check hca_resp_take_recv(struct hca_responder *resp);

/* Moves bytes; the lock of a DCT may be released meanwhile, unless that of an
 * SRQ is held as well. @param fault  what it means that memory is not there
 * @return HCA_OK, HCA_DROP, or fault. */
enum hca_check hca_resp_copy(struct hca_responder *resp,
                             const struct hca_sgl *dst,
                             const struct hca_sgl *src, enum hca_check fault);

/* Completes the receive; `data` goes into the CQE, if not NULL. */
enum hca_check hca_resp_complete(struct hca_responder *resp,
                                 const void *data);

/* The whole message to the receive that was taken, and its completion. */
enum hca_check hca_resp_deliver(struct hca_responder *resp);

/* Of a SEND that invalidates: the key, when there is a receive for it. Before,
 * the sender may have to try again. */
enum hca_check hca_resp_invalidate(struct hca_responder *resp);

/* The domain of remote keys; sets the owner of resp->memory. @return false if
 * an XRC message names no SRQ of the QP's. */
bool hca_resp_pdn(struct hca_responder *resp, uint32_t *pdn);

/* Whether a copy failed since nobody is there any more to answer. */
bool hca_resp_unreached(int ret);

#endif
