/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The ends of queue pairs; see hca_qp_cmd.h.
 */
#define _GNU_SOURCE
#include "hca_qp_cmd.h"
#include "hca_sq.h"
#include "softhca/base/hca_mutex.h"

#include <stdlib.h>

static void hca_qp_drop_sq(struct hca_qp *qp)
{
    struct hca_sq *sq;

    hca_mutex_lock(&qp->sq_lock);
    sq = qp->req.sq;
    hca_sq_drop_kept(qp);
    qp->req.sq = NULL;
    hca_mutex_unlock(&qp->sq_lock);
    hca_timer_cancel(&sq->timer);
    hca_timer_cancel(&sq->posted.timer);
    free(sq->streams);
    free(sq);
}

void hca_qp_quiesce(struct hca_qp *qp)
{
    if (qp->req.sq != NULL) {
        hca_qp_drop_sq(qp);
    }
    /* who executes on it as a responder has it locked */
    hca_obj_is_stuck(HCA_KIND_QP, qp);
}
