/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR of indirect mkeys: their layouts and rights.
 */
#ifndef HCA_UMR_LAYOUT_H
#define HCA_UMR_LAYOUT_H

#include "hca_umr_seg.h"

/* Changes an mkey that is locked, of the QP's device and PD.
 * @return HCA_OK, or an error, logged. After an error the mkey is unchanged; or
 * free, if reading the new translations failed while they replaced the old. */
enum hca_check hca_umr_layout(const struct hca_umr *umr, struct hca_mkey *key);

#endif
