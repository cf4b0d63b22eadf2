/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Execution of one send WQE, for hca_requester.c and hca_stream_run.c, under
 * the QP's sq_lock.
 */
#ifndef HCA_REQUEST_H
#define HCA_REQUEST_H

#include "softhca/resp/hca_msg.h"

/* Not done: try again later. No check has this number. */
#define HCA_WAIT ((enum hca_check)HCA_NUM_CHECKS)

/* One WQE under execution. */
struct hca_request {
    struct hca_qp *qp;
    struct hca_tries *tries; /* of this WQE, kept by the caller */
    struct hca_wqe wqe;
    struct hca_sgl local;      /* its local memory */
    bool to_cqe;               /* the data read goes into the CQE */
    uint8_t data[64];          /* holds it, unless the queue has streams */
    struct hca_result *result; /* late data, which the caller frees; NULL: none,
                                * as after each error */
    struct hca_msg msg;
    struct hca_ack ack; /* check: the responder's, or HCA_OK */
    uint64_t wait_ns;   /* with HCA_WAIT: time until the next try */
};

/* Reads the WQE at basic block @idx and executes it; @posted blocks are rung
 * from there on. The caller sets only qp and tries of @rq.
 * @return HCA_OK, HCA_WAIT, or the error. */
enum hca_check hca_request_execute(struct hca_request *rq, uint16_t idx,
                                   uint16_t posted);

#endif
