/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Executes UMR and LOCAL_INVAL WQEs. UMR binds memory windows, and changes
 * layouts and rights of indirect mkeys; nothing else is supported.
 */
#ifndef HCA_UMR_H
#define HCA_UMR_H

#include "hca_wqe.h"

/* Locks the mkey that @wqe names, and changes it.
 * @return HCA_OK, or an error, logged. */
enum hca_check hca_umr_execute(struct hca_qp *qp, const struct hca_wqe *wqe);

/* Takes the translation of the mkey that a UMR names, if it has one. */
void hca_umr_free(const struct hca_qp *qp, const struct hca_wqe *wqe);

/* Invalidates the mkey that @wqe names. @return HCA_OK, or an error, logged. */
enum hca_check hca_umr_local_inval(const struct hca_qp *qp,
                                   const struct hca_wqe *wqe);

#endif
