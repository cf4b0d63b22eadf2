/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rendezvous: what the device of a receiver does on its own when a request has
 * matched. It reads the data from the sender to the tagged buffer, completes
 * that, and tells the sender that its memory is free (FIN).
 *
 *   sender                               receiver
 *    SEND  TMH RVH (DC: RAVH) ---------->  match: CONSUMED
 *          <---------------------------  READ, of the QP that received it, or
 *    data  --------------------------->    for a DCT as an initiator of its own
 *          <---------------------------  FIN: TMH RVH        EXPECTED
 *
 * The thread that delivered the request goes on with it, once it holds no lock:
 * the sender's, so that the receiver's program need not run. What has to wait
 * (RNR, an answer that is lost) is its process' helper's. If that process dies
 * the helper of one that finds it dead begins anew: the receiver's watches those
 * whose queue pairs it is connected to.
 */
#ifndef HCA_RNDV_H
#define HCA_RNDV_H

#include "hca_resp_recv.h"
#include "hca_tm_job.h"
#include "softhca/fabric/hca_timer.h"

/* Longest request: the headers, and what the program adds. */
#define HCA_RNDV_MAX_HDR 64u

/* Headers of a request to a QP. */
static inline size_t hca_rndv_header(const struct hca_qp *qp)
{
    return offsetof(struct hca_rndv_request, ravh) +
           ((qp->type == HCA_QP_DCT) ? sizeof(struct prm_ravh) : 0);
}

/* The entry resp->recv.tm_index of the SRQ, which is locked, has matched and is
 * about to be busy: begins to fetch the data. @return HCA_OK, or HCA_CHECK_CQ if there is
 * no memory for that. */
enum hca_check hca_rndv_start(const struct hca_responder *resp,
                              const struct hca_srq *srq,
                              const struct hca_rndv_request *request);

/* The helper of this process goes on with what another, which is dead, fetched
 * for an entry; the SRQ is locked. @return false if there is no memory. */
bool hca_rndv_inherit(struct hca_srq *srq, uint16_t index);

/* Runs what hca_rndv_start() has begun in this thread, which holds no lock. */
void hca_rndv_run(void);

#endif
