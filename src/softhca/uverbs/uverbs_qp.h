/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_QP as a struct: uverbs_qp_params.c fills it in from the request and
 * checks it, uverbs_qp.c makes the QP.
 */
#ifndef UVERBS_QP_H
#define UVERBS_QP_H

#include "uverbs_objs.h"

/* What CREATE_QP asks for, checked. */
struct uverbs_qp_params {
    struct mlx5_ib_create_qp ucmd;
    struct ib_uverbs_qp_cap  cap;
    enum hca_qp_type         type;
    bool                     sig_all;
    struct uverbs_pd        *pd;
    struct uverbs_cq        *scq, *rcq;
    struct uverbs_srq       *srq;
    struct uverbs_xrcd      *xrcd;
};

/* @return 0 or -errno, those of ib_uverbs and mlx5_ib. */
int uverbs_qp_params(struct uverbs_req *req, struct uverbs_qp_params *p);

/* Whether the QP has a receive queue of its own. */
bool uverbs_qp_has_rq(const struct uverbs_qp_params *p);

#endif
