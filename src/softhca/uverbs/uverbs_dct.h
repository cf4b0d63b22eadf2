/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DC targets: MODIFY_QP and QUERY_QP of one.
 */
#ifndef UVERBS_DCT_H
#define UVERBS_DCT_H

#include "uverbs_qp.h"

/* MODIFY_QP. @param dest  its address vector, or NULL. */
int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct hca_qp_change *change,
                      const struct ib_uverbs_qp_dest *dest);

/* QUERY_QP of the attributes in @mask. */
int uverbs_dct_query(const struct uverbs_qp *qp, uint32_t mask,
                     struct ib_uverbs_query_qp_resp *resp);

#endif
