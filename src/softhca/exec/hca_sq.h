/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The part of a send queue that only its owner's process has.
 */
#ifndef HCA_SQ_H
#define HCA_SQ_H

#include "hca_posted.h"
#include "softhca/fabric/hca_timer.h"
#include "softhca/obj/hca_objs.h"

/* Kept under the QP's sq_lock. */
struct hca_sq {
    struct hca_timer    timer; /* RNR, retry; first: the timer is the queue */
    struct hca_qp      *qp;
    uint32_t            qpn;
    struct hca_streams *streams; /* of a DCI that has them */
    struct hca_late    *late;    /* executed and not complete, the oldest */
    struct hca_request *passed;  /* executed before the one in front of it */
    struct hca_posted   posted;  /* acknowledged and not in memory */
    struct hca_sq      *next;
};

/* What is executed and has not completed does so no more; data that are
 * acknowledged come to memory. The QP has its part. */
void hca_sq_drop_kept(struct hca_qp *qp);

#endif
