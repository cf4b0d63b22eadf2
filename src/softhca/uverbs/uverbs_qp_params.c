/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Reads and checks the parameters of CREATE_QP, by type of QP. Checks are those
 * of ib_uverbs (uverbs_std_types_qp.c) and mlx5_ib (qp.c).
 */
#define _GNU_SOURCE
#include "uverbs_qp.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/base/hca_log.h"
#include "uverbs_uar.h"

#include <errno.h>

/* Create flags of verbs; all others are for Ethernet offloads */
#define UVERBS_QP_FLAGS \
    (IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | \
     IB_UVERBS_QP_CREATE_SQ_SIG_ALL)

static int uverbs_qp_check_type(uint64_t type, uint32_t flags,
                                enum hca_qp_type *out)
{
    uint32_t dc = flags & (MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_TYPE_DCT);

    if ((dc != 0) && (type != IB_UVERBS_QPT_DRIVER)) {
        return -EINVAL;
    }
    switch (type) {
    case IB_UVERBS_QPT_RC:
        *out = HCA_QP_RC;
        return 0;
    case IB_UVERBS_QPT_UC:
        *out = HCA_QP_UC;
        return 0;
    case IB_UVERBS_QPT_UD:
        *out = HCA_QP_UD;
        return 0;
    case IB_UVERBS_QPT_XRC_INI:
        *out = HCA_QP_XRC_SEND;
        return 0;
    case IB_UVERBS_QPT_XRC_TGT:
        *out = HCA_QP_XRC_RECV;
        return 0;
    case IB_UVERBS_QPT_DRIVER:
        if ((dc != 0) && hca_lacks(HCA_LACK_DC)) {
            return -EOPNOTSUPP; /* check_qp_type() of mlx5_ib */
        }
        if ((dc == MLX5_QP_FLAG_TYPE_DCT) && hca_config.lag &&
            hca_lacks(HCA_LACK_LAG_DCT)) {
            return -EOPNOTSUPP; /* create_dct() */
        }
        *out = (dc == MLX5_QP_FLAG_TYPE_DCI) ? HCA_QP_DCI : HCA_QP_DCT;
        return ((dc == MLX5_QP_FLAG_TYPE_DCI) ||
                (dc == MLX5_QP_FLAG_TYPE_DCT)) ?
                   0 :
                   -EINVAL;
    case IB_UVERBS_QPT_RAW_PACKET:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

/* Checks that the objects are given that a QP of this type needs. */
static int uverbs_qp_check_objs(const struct uverbs_qp_params *p)
{
    if (p->type == HCA_QP_XRC_RECV) {
        return (p->xrcd == NULL) ? -ENOENT :
               ((p->pd != NULL) || (p->scq != NULL) || (p->rcq != NULL)) ?
                                   -EINVAL :
                                   0;
    }
    if (p->xrcd != NULL) {
        return -EINVAL;
    }
    if ((p->pd == NULL) || (p->scq == NULL)) {
        return -ENOENT;
    }

    switch (p->type) {
    case HCA_QP_XRC_SEND:
        return (p->srq != NULL) ? -EINVAL : 0;
    case HCA_QP_DCT:
        return ((p->srq == NULL) || (p->rcq == NULL)) ? -EINVAL : 0;
    case HCA_QP_DCI:
        return ((p->cap.max_recv_wr != 0) || (p->cap.max_recv_sge != 0)) ?
                   -EINVAL :
                   0;
    default:
        return (p->rcq == NULL) ? -ENOENT : 0;
    }
}

bool uverbs_qp_has_rq(const struct uverbs_qp_params *p)
{
    return (p->type <= HCA_QP_UD) && (p->srq == NULL) &&
           (p->cap.max_recv_wr != 0);
}

/* Checks the sizes of the rings, which libmlx5 has computed. */
static int uverbs_qp_check_rings(const struct uverbs_qp_params *p)
{
    const struct mlx5_ib_create_qp *ucmd = &p->ucmd;
    uint32_t sq = ucmd->sq_wqe_count, rq = ucmd->rq_wqe_count;
    uint32_t max_wr = hca_limit(HCA_LIMIT_QP_WR, UVERBS_MAX_WR);

    if ((p->cap.max_recv_wr > max_wr) || (sq & (sq - 1)) || (sq > max_wr)) {
        return -EINVAL;
    }
    return (uverbs_qp_has_rq(p) &&
            ((rq == 0) || (rq & (rq - 1)) || (rq > max_wr * 2) ||
             (ucmd->rq_wqe_shift < 4) || (ucmd->rq_wqe_shift > 9))) ?
               -EINVAL :
               0;
}

size_t uverbs_qp_rq_size(const struct uverbs_qp_params *p)
{
    return !uverbs_qp_has_rq(p) ?
               0 :
               (size_t)p->ucmd.rq_wqe_count << p->ucmd.rq_wqe_shift;
}

size_t uverbs_qp_ring_size(const struct uverbs_qp_params *p)
{
    return ((p->type == HCA_QP_DCT) || (p->type == HCA_QP_XRC_RECV)) ?
               0 :
               uverbs_qp_rq_size(p) + (size_t)p->ucmd.sq_wqe_count * 64;
}

static int uverbs_qp_check_ucmd(const struct uverbs_ctx *ctx,
                                const struct uverbs_qp_params *p)
{
    const struct mlx5_ib_create_qp *ucmd = &p->ucmd;
    uint32_t flags                       = ucmd->flags &
                     ~(MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_TYPE_DCI |
                       MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_SCATTER_CQE |
                       MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
                       MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_DCI_STREAM);

    if ((flags != 0) || (ucmd->reserved != 0)) {
        hca_info("qp: create flags 0x%x are not supported", flags);
        return -EINVAL;
    }
    if (p->type == HCA_QP_XRC_RECV) {
        return 0; /* it has neither rings nor CQs */
    }
    if (ucmd->uidx >= UVERBS_UIDX_MASK) {
        return -EINVAL;
    }
    if (p->type == HCA_QP_DCT) {
        return 0;
    }
    if (!(ucmd->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) ||
        !uverbs_uar_valid(ctx, ucmd->bfreg_index)) {
        return -EINVAL;
    }
    return uverbs_qp_check_rings(p);
}

int uverbs_qp_params(struct uverbs_req *req, struct uverbs_qp_params *p)
{
    uint64_t flags = uverbs_get_const(req, UVERBS_ATTR_CREATE_QP_FLAGS);
    int ret;

    ret = uverbs_get(req, UVERBS_ATTR_CREATE_QP_CAP, &p->cap, sizeof(p->cap));
    if (ret == 0) {
        ret = uverbs_uhw_in(req, &p->ucmd);
    }
    if (ret != 0) {
        return ret;
    }
    if ((uverbs_len(req, UVERBS_ATTR_UHW_IN) <
         offsetof(typeof(p->ucmd), ece_options)) ||
        (flags & ~(uint64_t)UVERBS_QP_FLAGS)) {
        return -EINVAL;
    }
    ret =
        uverbs_qp_check_type(uverbs_get_const(req, UVERBS_ATTR_CREATE_QP_TYPE),
                             p->ucmd.flags, &p->type);
    if (ret != 0) {
        return ret;
    }

    p->sig_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
    p->pd      = uverbs_get_obj(req, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
    p->scq     = uverbs_get_obj(req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
    p->rcq     = uverbs_get_obj(req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
    p->srq     = uverbs_get_obj(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
    p->xrcd    = uverbs_get_obj(req, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE);
    ret        = uverbs_qp_check_objs(p);
    return (ret != 0) ? ret : uverbs_qp_check_ucmd(req->ctx, p);
}
