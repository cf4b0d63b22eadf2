/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queue pairs. For CREATE_QP, uverbs_qp_params.c reads and checks the
 * parameters, and uverbs_qp.c makes the QP.
 */
#ifndef UVERBS_QP_H
#define UVERBS_QP_H

#include "softhca/exec/hca_qp_cmd.h"
#include "uverbs_srq.h"

struct uverbs_qp {
    struct uverbs_obj obj;
    struct hca_qp *qp; /* NULL: see uverbs_qp_hw() */
    uint32_t open_qpn; /* number of the QP that OPEN_QP named, or 0 */
    struct hca_qp_spec spec;
    bool is_dct_init; /* a DCT that has reached INIT: uverbs_dct.c */
    struct uverbs_pd *pd;
    struct uverbs_cq *scq, *rcq;
    struct uverbs_srq *srq;
    struct uverbs_xrcd *xrcd;
    struct uverbs_event *async;
    struct uverbs_rings rings;
    struct ibv_qp_cap cap;
    bool sig_all;
};

/* The parameters of CREATE_QP, checked. An object not given is NULL. */
struct uverbs_qp_params {
    struct mlx5_ib_create_qp ucmd;
    struct ib_uverbs_qp_cap cap;
    enum hca_qp_type type;
    bool sig_all;
    struct uverbs_pd *pd;
    struct uverbs_cq *scq, *rcq;
    struct uverbs_srq *srq;
    struct uverbs_xrcd *xrcd;
};

/* Fills in all of @p. @return 0, or the -errno of ib_uverbs and mlx5_ib. */
int uverbs_qp_params(struct uverbs_req *req, struct uverbs_qp_params *p);

/* Return the bytes of the receive queue, and of the whole ring: the receive
 * queue, then the send queue. 0: the QP has none. */
size_t uverbs_qp_rq_size(const struct uverbs_qp_params *p);
size_t uverbs_qp_ring_size(const struct uverbs_qp_params *p);

/* Returns true if the QP has a receive queue of its own. */
bool uverbs_qp_has_rq(const struct uverbs_qp_params *p);

/* Returns the device's QP behind a handle; NULL if it is gone (OPEN_QP), or
 * does not exist yet (a DCT before RTR). */
struct hca_qp *uverbs_qp_hw(const struct uverbs_qp *qp);

/* Access flags that the context of a QP holds (rre, rwe, rae) */
#define UVERBS_REMOTE_ACCESS \
    (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_ATOMIC)

/* Handler of the write command QUERY_QP. */
int uverbs_qp_query(struct uverbs_req *req);

#endif
