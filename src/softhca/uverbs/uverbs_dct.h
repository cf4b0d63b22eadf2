/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MODIFY_QP and QUERY_QP of a DC target
 */
#ifndef UVERBS_DCT_H
#define UVERBS_DCT_H

#include "uverbs_qp.h"

/* MODIFY_QP; creates the target on the way to RTR. @param dest  its address
 * vector, read only for that. Returns 0 or -errno. */
int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct hca_qp_change *change,
                      const struct ib_uverbs_qp_dest *dest);

/* QUERY_QP: other attributes than those in @mask are 0. Returns 0, or -errno
 * before RTR. */
int uverbs_dct_query(const struct uverbs_qp *qp, uint32_t mask,
                     struct ib_uverbs_query_qp_resp *resp);

#endif
