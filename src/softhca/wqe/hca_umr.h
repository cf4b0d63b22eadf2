/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR and LOCAL_INVAL: what WQEs do to memory keys. Of UMR, what memory windows
 * and layouts of indirect keys take.
 */
#ifndef HCA_UMR_H
#define HCA_UMR_H

#include "hca_wqe.h"

/* @return HCA_OK, or what is wrong, logged. */
enum hca_check hca_umr_execute(struct hca_qp *qp, const struct hca_wqe *wqe);

enum hca_check hca_umr_local_inval(const struct hca_qp *qp,
                                   const struct hca_wqe *wqe);

#endif
