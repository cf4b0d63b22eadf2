/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DC targets: what MODIFY_QP is for them.
 */
#ifndef UVERBS_DCT_H
#define UVERBS_DCT_H

#include "uverbs_qp.h"

/* MODIFY_QP of a DCT. */
int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct ibv_qp_attr *attr, unsigned mask);

#endif
