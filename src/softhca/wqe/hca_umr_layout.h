/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UMR of indirect keys: what they lead to, and what that may be used for.
 */
#ifndef HCA_UMR_LAYOUT_H
#define HCA_UMR_LAYOUT_H

#include "hca_umr_seg.h"

/* Changes a key that is locked, of the QP's device and PD.
 * @return HCA_OK, or what is wrong, logged; nothing is changed then, but that
 * the key is free if its translations cannot be read from memory. */
enum hca_check hca_umr_layout(const struct hca_umr *umr, struct hca_mkey *key);

#endif
