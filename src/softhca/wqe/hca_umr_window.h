/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR of memory windows.
 */
#ifndef HCA_UMR_WINDOW_H
#define HCA_UMR_WINDOW_H

#include "hca_umr_seg.h"

/* Binds or unbinds a window that is locked, of the QP's device and PD.
 * @return HCA_OK, or an error, logged; nothing is changed then. */
enum hca_check hca_umr_window(const struct hca_umr *umr,
                              struct hca_mkey *window);

#endif
