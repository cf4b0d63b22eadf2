/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR and LOCAL_INVAL: effects of WQEs on memory keys. Of UMR, the parts that
 * memory windows and layouts of indirect mkeys need.
 */
#ifndef HCA_UMR_H
#define HCA_UMR_H

#include "hca_wqe.h"

/* @return HCA_OK, or an error, logged. */
enum hca_check hca_umr_execute(struct hca_qp *qp, const struct hca_wqe *wqe);

enum hca_check hca_umr_local_inval(const struct hca_qp *qp,
                                   const struct hca_wqe *wqe);

#endif
