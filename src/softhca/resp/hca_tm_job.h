/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages whose data is under way to a tagged buffer, one for each entry that
 * is busy. The thread that delivered the first packet moves the data. This
 * record, beside the list and under its lock, determines the fate of the buffer
 * if that thread's process dies in between, as with a NIC:
 *
 *   eager       no packet comes any more. The QP goes on, and the buffer waits,
 *               until its program puts that QP in error: then it is cancelled.
 *               Reset or destruction, as of a DC target, cancels nothing.
 *   rendezvous  the read is not answered any more: a process that finds the
 *               other dead continues it, and its retries end as usual.
 */
#ifndef HCA_TM_JOB_H
#define HCA_TM_JOB_H

#include "hca_msg.h"
#include "softhca/obj/hca_tm.h"

#include <common/prm.h>
#include <infiniband/tm_types.h>

/* Headers of a request, which locate its data. */
struct hca_rndv_request {
    struct ibv_tmh tmh;
    struct ibv_rvh rvh;
    struct prm_ravh ravh; /* DC */
};

struct hca_tm_job {
    uint16_t proc; /* moves the data */
    bool is_rndv, is_dc;
    uint16_t dev;
    uint32_t qpn, srqn;
    uint32_t num_resets; /* of that QP */
    uint64_t length;     /* eager: bytes of data */
    struct hca_msg msg;  /* for the completion; no pointer is valid */
    struct hca_path msg_path, way_back;
    uint8_t mtu, timeout; /* DC */
    uint16_t pkey;
    struct hca_rndv_request request; /* eager: only `tmh` is valid */
};

_Static_assert(sizeof(struct hca_tm_job) == HCA_TM_JOB_SIZE,
               "lists of tags are made with room for jobs of this size");

static inline struct hca_tm_job *hca_tm_job(const struct hca_tm *tm,
                                            uint16_t index)
{
    return (struct hca_tm_job *)hca_at(tm->jobs +
                                       index * sizeof(struct hca_tm_job));
}

/* Fills in a job of this process for a message that @qp executes. The caller
 * sets the length of an eager message, or the members of a rendezvous. */
void hca_tm_job_init(struct hca_tm_job *job, const struct hca_qp *qp,
                     const struct hca_msg *msg,
                     const struct hca_rndv_request *request);

/* Completes as canceled, when a QP enters the error state, the eager messages
 * to it whose sender died midway; obj.lock is held. Does nothing for a DCT. */
void hca_tm_job_flush(const struct hca_qp *qp);

/* Drops these messages without completions when a QP is reset; their entries
 * stay busy. */
void hca_tm_job_drop(const struct hca_qp *qp);

/* Calls @fn for each busy entry of an SRQ, whose lock is held. */
void hca_tm_job_foreach(struct hca_srq *srq,
                        void (*fn)(struct hca_srq *srq, uint16_t index,
                                   void *arg),
                        void *arg);

#endif
