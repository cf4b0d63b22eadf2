/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queue pairs: creation and destruction. uverbs_qp_params.c and the device
 * check the parameters.
 */
#define _GNU_SOURCE
#include "uverbs_qp.h"
#include "softhca/wqe/hca_wqe.h"
#include "softhca/obj/hca_tm.h"
#include "uverbs_mmap.h"

#include <errno.h>

struct hca_qp *uverbs_qp_hw(const struct uverbs_qp *qp)
{
    return (qp->open_qpn != 0) ? hca_obj_peek(HCA_KIND_QP, qp->open_qpn) :
                                 qp->qp;
}

static int uverbs_qp_release(struct uverbs_obj *obj,
                             struct uverbs_events *events)
{
    struct uverbs_qp *qp = (struct uverbs_qp *)obj;
    uint32_t async       = 0;

    if ((qp->qp != NULL) && (hca_qp_destroy(qp->qp, &async) != 0)) {
        return -ETIMEDOUT;
    }
    if (events != NULL) {
        events->async = async;
    }
    uverbs_rings_unshare(&qp->rings);
    uverbs_drop(qp->pd);
    uverbs_drop(qp->scq);
    uverbs_drop(qp->rcq);
    uverbs_drop(qp->srq);
    uverbs_drop(qp->xrcd);
    uverbs_drop(qp->async);
    return 0;
}

const struct uverbs_type uverbs_qp_type = {
    UVERBS_OBJECT_QP,
    "queue pairs",
    .release = uverbs_qp_release,
};

static const struct uverbs_attr_spec uverbs_create_qp_attrs[] = {
    {UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_NEW, UVERBS_MANDATORY, 0, 0, 0},
    {UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, UVERBS_IDR, 0, 0, 0,
     UVERBS_OBJECT_XRCD},
    {UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_IDR, 0, 0, 0, UVERBS_OBJECT_PD},
    {UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UVERBS_IDR, 0, 0, 0, UVERBS_OBJECT_SRQ},
    {UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_IDR, 0, 0, 0,
     UVERBS_OBJECT_CQ},
    {UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UVERBS_IDR, 0, 0, 0,
     UVERBS_OBJECT_CQ},
    {UVERBS_ATTR_CREATE_QP_USER_HANDLE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_CREATE_QP_CAP, UVERBS_IN, UVERBS_MANDATORY | UVERBS_TRAILING,
     sizeof(struct ib_uverbs_qp_cap), sizeof(struct ib_uverbs_qp_cap), 0},
    {UVERBS_ATTR_CREATE_QP_TYPE, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
    {UVERBS_ATTR_CREATE_QP_FLAGS, UVERBS_IN, 0, 4, 8, 0},
    {UVERBS_ATTR_CREATE_QP_EVENT_FD, UVERBS_FD, 0, 0, 0,
     UVERBS_OBJECT_ASYNC_EVENT},
    {UVERBS_ATTR_CREATE_QP_RESP_CAP, UVERBS_OUT,
     UVERBS_MANDATORY | UVERBS_TRAILING, sizeof(struct ib_uverbs_qp_cap),
     sizeof(struct ib_uverbs_qp_cap), 0},
    {UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, UVERBS_OUT, UVERBS_MANDATORY, 4, 4, 0},
};

/* Sets scatter to CQE as mlx5_ib does: always for a responder; for a requester
 * only if all of its work requests are signaled, or if the program allows
 * it. */
static void uverbs_qp_scatter_cqe(const struct uverbs_qp_params *p,
                                  struct hca_qp_spec *spec)
{
    if (!(p->ucmd.flags & MLX5_QP_FLAG_SCATTER_CQE)) {
        return;
    }
    if ((p->type == HCA_QP_RC) || (p->type == HCA_QP_UC)) {
        spec->cs_res = p->rcq->cqe_size / 2;
    } else if (p->type == HCA_QP_DCT) {
        spec->cs_res = 64;
    }
    if ((p->scq != NULL) && (p->type != HCA_QP_DCT) &&
        (p->sig_all || (p->ucmd.flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE))) {
        spec->cs_req = p->scq->cqe_size / 2;
    }
}

/* Shares ring and doorbell record; a QP without queues has none. */
static int uverbs_qp_share(struct uverbs_qp *qp,
                           const struct uverbs_qp_params *p)
{
    const struct uverbs_place place = {
        .what       = "qp",
        .variable   = "MLX_QP_ALLOC_TYPE",
        .ring       = p->ucmd.buf_addr,
        .ring_size  = uverbs_qp_ring_size(p),
        .dbrec      = p->ucmd.db_addr,
        .dbrec_size = 8,
    };

    return (place.ring_size == 0) ? 0 : uverbs_rings_share(&qp->rings, &place);
}

static void uverbs_qp_rings(const struct uverbs_rings *rings,
                            const struct uverbs_qp_params *p,
                            struct hca_qp_spec *spec)
{
    const struct mlx5_ib_create_qp *ucmd = &p->ucmd;

    spec->uar = ucmd->bfreg_index;
    if (rings->dbrec.mem == NULL) {
        return;
    }
    spec->dbrec = hca_off(rings->dbrec.mem);
    if (uverbs_qp_has_rq(p)) {
        spec->rq.buf        = hca_off(rings->ring.mem);
        spec->rq.log_cnt    = __builtin_ctz(ucmd->rq_wqe_count);
        spec->rq.log_stride = ucmd->rq_wqe_shift;
    }
    if (ucmd->sq_wqe_count != 0) {
        spec->sq.buf        = hca_off(rings->ring.mem) + uverbs_qp_rq_size(p);
        spec->sq.log_cnt    = __builtin_ctz(ucmd->sq_wqe_count);
        spec->sq.log_stride = 6;
    }
}

static void uverbs_qp_spec(struct uverbs_req *req, struct uverbs_qp *qp,
                           const struct uverbs_qp_params *p)
{
    struct hca_qp_spec *spec = &qp->spec;

    *spec = (struct hca_qp_spec){
        .dev         = req->ctx->dev,
        .type        = p->type,
        .pdn         = (p->pd != NULL) ? p->pd->pdn : 0,
        .scqn        = (p->scq != NULL) ? p->scq->cq->obj.num : 0,
        .rcqn        = (p->rcq != NULL) ? p->rcq->cq->obj.num : 0,
        .srqn        = (p->srq != NULL) ? p->srq->srq->obj.num : 0,
        .xrcdn       = (p->xrcd != NULL) ? p->xrcd->xrcdn : 0,
        .uidx        = p->ucmd.uidx,
        .wq_sig      = p->ucmd.flags & MLX5_QP_FLAG_SIGNATURE,
        .has_streams = p->ucmd.flags & MLX5_QP_FLAG_DCI_STREAM,
        .log_streams = p->ucmd.dci_streams.log_num_concurent,
        .log_errored = p->ucmd.dci_streams.log_num_errored,
        .attr        = {.log_msg_max = HCA_LOG_MSG_MAX},
        .user_handle = uverbs_get_const(req, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
    };
    /* as _create_user_qp() of mlx5_ib sets offload_type of qpc */
    spec->has_rndv = (p->type == HCA_QP_RC) && (p->ucmd.sq_wqe_count == 0) &&
                     hca_srq_has_tm(spec->srqn);
    uverbs_qp_scatter_cqe(p, spec);
    if (p->type == HCA_QP_DCT) {
        spec->dc_key = p->ucmd.access_key;
        return; /* the kernel reports no events of a DCT to verbs */
    }
    spec->async_chan = (qp->async != NULL) ? qp->async->chan : 0;
    if (p->type != HCA_QP_XRC_RECV) {
        uverbs_qp_rings(&qp->rings, p, spec);
    }
}

static void uverbs_qp_refs(struct uverbs_qp *qp,
                           const struct uverbs_qp_params *p)
{
    qp->pd   = p->pd;
    qp->scq  = p->scq;
    qp->rcq  = p->rcq;
    qp->srq  = p->srq;
    qp->xrcd = p->xrcd;
    uverbs_hold(qp->pd);
    uverbs_hold(qp->scq);
    uverbs_hold(qp->rcq);
    uverbs_hold(qp->srq);
    uverbs_hold(qp->xrcd);
    uverbs_hold(qp->async);
    qp->sig_all = p->sig_all;
    qp->cap     = (struct ibv_qp_cap){
            .max_send_wr     = p->cap.max_send_wr,
            .max_send_sge    = p->cap.max_send_sge,
            .max_inline_data = p->cap.max_inline_data,
    };
    if (uverbs_qp_has_rq(p)) { /* size of the ring (set_rq_size()) */
        qp->cap.max_recv_wr  = p->ucmd.rq_wqe_count;
        qp->cap.max_recv_sge = (1u << p->ucmd.rq_wqe_shift) / 16 -
                               ((p->ucmd.flags & MLX5_QP_FLAG_SIGNATURE) != 0);
    }
}

/* Creates the device's QP. A DCT is created at RTR, but its parameters are
 * checked now. */
static int uverbs_qp_make(struct uverbs_qp *qp)
{
    int ret = (qp->spec.type == HCA_QP_DCT) ? hca_qp_check(&qp->spec) :
                                              hca_qp_create(&qp->spec, &qp->qp);

    return ((ret == 0) || (ret == -ENOMEM)) ? ret : -EINVAL;
}

static int uverbs_qp_new(struct uverbs_req *req,
                         const struct uverbs_qp_params *p,
                         struct uverbs_qp **qpp)
{
    struct uverbs_qp *qp;
    int ret;

    ret = uverbs_obj_new(req->ctx, UVERBS_OBJECT_QP, sizeof(*qp), &qp);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_qp_share(qp, p);
    if (ret != 0) {
        uverbs_obj_delete(&qp->obj);
        return ret;
    }
    qp->async = uverbs_async(req, UVERBS_ATTR_CREATE_QP_EVENT_FD);
    uverbs_qp_spec(req, qp, p);
    ret = uverbs_qp_make(qp);
    if (ret != 0) {
        uverbs_rings_unshare(&qp->rings);
        uverbs_obj_delete(&qp->obj);
        return ret;
    }
    uverbs_qp_refs(qp, p);
    *qpp = qp;
    return 0;
}

static int uverbs_qp_respond(struct uverbs_req *req, const struct uverbs_qp *qp)
{
    struct mlx5_ib_create_qp_resp drv = {.bfreg_index = qp->spec.uar};
    struct ib_uverbs_qp_cap cap       = {
              .max_send_wr     = qp->cap.max_send_wr,
              .max_recv_wr     = qp->cap.max_recv_wr,
              .max_send_sge    = qp->cap.max_send_sge,
              .max_recv_sge    = qp->cap.max_recv_sge,
              .max_inline_data = qp->cap.max_inline_data,
    };
    uint32_t qpn = (qp->qp != NULL) ? qp->qp->obj.num : 0;
    int ret;

    ret = uverbs_uhw_out(req, &drv);
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap,
                         sizeof(cap));
    }
    if (ret == 0) {
        ret = uverbs_put(req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn,
                         sizeof(qpn));
    }
    if (ret == 0) {
        ret = uverbs_put_handle(req, UVERBS_ATTR_CREATE_QP_HANDLE,
                                qp->obj.handle);
    }
    return ret;
}

static int uverbs_create_qp(struct uverbs_req *req)
{
    struct uverbs_qp_params params;
    struct uverbs_qp *qp;
    int ret;

    ret = uverbs_qp_params(req, &params);
    if (ret != 0) {
        return ret;
    }
    uverbs_map_resolve(req->ctx);
    ret = uverbs_qp_new(req, &params, &qp);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_qp_respond(req, qp);
    if (ret != 0) {
        uverbs_obj_destroy(&qp->obj, NULL);
    }
    return ret;
}

static const struct uverbs_attr_spec uverbs_destroy_qp_attrs[] = {
    {UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_IDR, UVERBS_MANDATORY, 0, 0,
     UVERBS_OBJECT_QP},
    {UVERBS_ATTR_DESTROY_QP_RESP, UVERBS_OUT, UVERBS_MANDATORY,
     sizeof(struct ib_uverbs_destroy_qp_resp),
     sizeof(struct ib_uverbs_destroy_qp_resp), 0},
};

const struct uverbs_method uverbs_qp_methods[] = {
    {.object  = UVERBS_OBJECT_QP,
     .id      = UVERBS_METHOD_QP_CREATE,
     .uhw     = true,
     .name    = "create_qp",
     .handler = uverbs_create_qp,
     UVERBS_ATTRS(uverbs_create_qp_attrs)},
    {.object  = UVERBS_OBJECT_QP,
     .id      = UVERBS_METHOD_QP_DESTROY,
     .name    = "destroy_qp",
     .is_end  = true,
     .handler = uverbs_destroy_counted,
     UVERBS_ATTRS(uverbs_destroy_qp_attrs)},
    {.handler = NULL},
};
