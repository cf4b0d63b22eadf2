/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queue pairs. CREATE_QP is a struct: uverbs_qp_params.c fills it in from the
 * request and checks it, uverbs_qp.c makes the QP.
 */
#ifndef UVERBS_QP_H
#define UVERBS_QP_H

#include "softhca/fabric/hca_caps.h"
#include "uverbs_srq.h"

struct uverbs_qp {
    struct uverbs_obj    obj;
    struct hca_qp       *qp;
    uint32_t             open_qpn;  /* not 0: another's, by OPEN_QP */
    bool                 published; /* a DCT is only after RTR */
    struct uverbs_pd    *pd;
    struct uverbs_cq    *scq, *rcq;
    struct uverbs_srq   *srq;
    struct uverbs_xrcd  *xrcd;
    struct uverbs_event *async;
    struct uverbs_rings  rings;
    struct ibv_qp_cap    cap;
};

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

/* Bytes of its rings: the receive queue, and with the send queue behind. */
size_t uverbs_qp_rq_size(const struct uverbs_qp_params *p);
size_t uverbs_qp_ring_size(const struct uverbs_qp_params *p);

/* Whether the QP has a receive queue of its own. */
bool uverbs_qp_has_rq(const struct uverbs_qp_params *p);

/* A fresh QP, as from hca_obj_alloc(). @return NULL if the device has as many
 * as it may. */
struct hca_qp *uverbs_qp_alloc(unsigned dev);

/* The device's QP behind a handle; NULL if it is gone (OPEN_QP). */
struct hca_qp *uverbs_qp_hw(const struct uverbs_qp *qp);

/* Stops all work on a QP that peers can find: the caller may free it then. */
void uverbs_qp_stop(struct hca_qp *hw);

/* Gives a QP up that a stopped peer holds. @return false if none does. */
bool uverbs_qp_abandon(struct hca_qp *hw);

/* Changes a QP that is no DCT. @param path of attr->ah_attr, checked.
 * @return 0, -EINVAL if it is in no state for that, or -ETIMEDOUT if a stopped
 * peer holds it. */
int uverbs_qp_modify_hw(struct hca_qp *hw, const struct ibv_qp_attr *attr,
                        unsigned mask, const struct hca_path *path);

/* Whether a QP may go from cur to next with these attributes. */
bool uverbs_qp_modify_ok(enum hca_qp_type type, enum ibv_qp_state cur,
                         enum ibv_qp_state next, unsigned mask);

/* QUERY_QP, the handler of the write command. */
int uverbs_qp_query(struct uverbs_req *req);

/* Reads and atomics that a DCI may have under way: log_max_ra_req_dc */
static inline uint32_t uverbs_max_rd_atomic_dc(void)
{
    return hca_limit(HCA_LIMIT_RD_ATOMIC, UVERBS_MAX_RD_ATOMIC);
}

#endif
