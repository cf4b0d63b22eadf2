/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rendezvous: the receiver's device works on its own when a request has
 * matched. It reads the data from the sender to the tagged buffer, completes
 * that, and reports to the sender that its memory is free (FIN).
 *
 *   sender                               receiver
 *    SEND  TMH RVH (DC: RAVH) ---------->  match: CONSUMED
 *          <---------------------------  READ, of the QP that received it, or
 *    data  --------------------------->    for a DCT as an initiator of its own
 *          <---------------------------  FIN: TMH RVH        EXPECTED
 *
 * The thread that delivered the request runs the rendezvous, once it holds no
 * lock: it is the sender's, so that the receiver's program need not run. If it
 * has to wait (RNR, a lost answer), its process' helper continues. If that
 * process dies, the helper of a process that finds it dead begins anew: the
 * receiver's at the latest, which is asked to watch the sender before the match
 * (hca_proc_have_watched()).
 */
#ifndef HCA_RNDV_H
#define HCA_RNDV_H

#include "hca_resp.h"
#include "hca_tm_job.h"
#include "softhca/fabric/hca_timer.h"

/* Limit of rendezvous that one process runs at once. */
#define HCA_RNDV_MAX 64u

/* Longest request in bytes: the headers, and the program's part. */
#define HCA_RNDV_MAX_HDR 64u

enum hca_rndv_state {
    HCA_RNDV_READ,
    HCA_RNDV_FIN,
    HCA_RNDV_DONE,
    HCA_RNDV_FAILED
};

struct hca_rndv {
    struct hca_timer timer; /* first: hca_rndv_fetch.c */
    struct hca_rndv *next;  /* in the list of this thread */
    enum hca_rndv_state state;
    struct hca_tm_job job;
    struct hca_recv recv; /* the tagged buffer */
    struct hca_tries tries;
    uint64_t wait_ns; /* before the next try */
};

/* Returns the bytes of the headers of a request to a QP. */
static inline size_t hca_rndv_header(const struct hca_qp *qp)
{
    return offsetof(struct hca_rndv_request, ravh) +
           ((qp->type == HCA_QP_DCT) ? sizeof(struct prm_ravh) : 0);
}

/* Allocates a rendezvous, zeroed. @return NULL if the limit is reached. */
struct hca_rndv *hca_rndv_get(void);

/* Frees a rendezvous that is done, or was not started. */
void hca_rndv_put(struct hca_rndv *rndv);

/* Starts a rendezvous for entry resp->recv.tm_index of the SRQ, whose lock is
 * held. The entry has matched; the caller makes it busy. This thread begins to
 * fetch the data when it leaves the device (hca_rndv_fetch.c). The end frees
 * @rndv. */
void hca_rndv_start(struct hca_rndv *rndv, const struct hca_responder *resp,
                    const struct hca_srq *srq,
                    const struct hca_rndv_request *request);

#endif
