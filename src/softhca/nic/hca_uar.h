/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UAR pages and the send queues that are bound to them, as this process sees
 * them. hca_exec.h has the half that the control side calls.
 */
#ifndef HCA_UAR_H
#define HCA_UAR_H

#include "softhca/fabric/hca_proc.h"

/* Process-local part of a send queue. */
struct hca_sq {
    struct hca_timer    timer; /* RNR, retry; first: the timer is the queue */
    struct hca_qp      *qp;
    uint32_t            qpn;
    struct hca_streams *streams; /* of a DCI that has them */
    struct hca_late    *late;    /* executed and not complete, the oldest */
    struct hca_sq      *next;
};

/* Runs every send queue of this process whose doorbell record moved. */
void hca_uar_run_all(void);

#endif
