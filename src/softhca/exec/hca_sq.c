/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* What a send queue keeps, as a whole: see hca_sq.h. */
#include "hca_sq.h"
#include "hca_late.h"
#include "hca_request.h"

void hca_sq_drop_kept(struct hca_qp *qp)
{
    struct hca_sq *sq = qp->req.sq;

    hca_late_drop(qp);
    hca_request_free(sq->passed);
    sq->passed = NULL;
    hca_posted_flush(&sq->posted);
}
