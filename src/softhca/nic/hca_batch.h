/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The copy between lists of any number of pieces, some hundred of them with a
 * system call.
 */
#ifndef HCA_BATCH_H
#define HCA_BATCH_H

#include "hca_sgl.h"

/* What hca_sgl_copy() does with lists of which one has a `via`. */
int hca_batch_copy(const struct hca_sgl *dst, const struct hca_sgl *src);

#endif
