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
 * the helper of one that finds it dead begins anew: the receiver's at the
 * latest, which is asked to watch it before the match (hca_proc_have_watched()).
 */
#ifndef HCA_RNDV_H
#define HCA_RNDV_H

#include "hca_resp.h"
#include "hca_tm_job.h"
#include "softhca/fabric/hca_timer.h"

/* As many may be under way from the messages of one process. */
#define HCA_RNDV_MAX 64u

/* Longest request: the headers, and what the program adds. */
#define HCA_RNDV_MAX_HDR 64u

enum hca_rndv_state {
    HCA_RNDV_READ,
    HCA_RNDV_FIN,
    HCA_RNDV_DONE,
    HCA_RNDV_FAILED
};

struct hca_rndv {
    struct hca_timer        timer; /* first: hca_rndv_fetch.c */
    struct hca_rndv        *next;  /* of this thread's */
    enum hca_rndv_state     state;
    struct hca_tm_job       job;
    struct hca_recv         recv;  /* the tagged buffer */
    struct hca_tries        tries;
    uint64_t                wait_ns; /* before the next try */
    bool                    is_failed; /* and its SRQ has to say so */
};

/* Headers of a request to a QP. */
static inline size_t hca_rndv_header(const struct hca_qp *qp)
{
    return offsetof(struct hca_rndv_request, ravh) +
           ((qp->type == HCA_QP_DCT) ? sizeof(struct prm_ravh) : 0);
}

/* Room for one more. @return NULL if as many are under way as can be. */
struct hca_rndv *hca_rndv_get(void);

/* Gives back what hca_rndv_start() is not called with. */
void hca_rndv_put(struct hca_rndv *rndv);

/* The entry resp->recv.tm_index of the SRQ, which is locked, has matched and is
 * about to be busy: this thread is to fetch the data (hca_rndv_fetch.c). */
void hca_rndv_start(struct hca_rndv *rndv, const struct hca_responder *resp,
                    const struct hca_srq *srq,
                    const struct hca_rndv_request *request);

#endif
