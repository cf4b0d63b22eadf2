/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DC targets. CREATE_QP only records the request. The target is created, and
 * gets its number, when it is modified to RTR (mlx5_ib_modify_dct()). Its
 * states are RESET, INIT and RTR.
 */
#define _GNU_SOURCE
#include "uverbs_dct.h"
#include "uverbs_ah.h"

#include <errno.h>

#define UVERBS_DCT_INIT \
    (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define UVERBS_DCT_RTR \
    (IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU)

/* Reads the local part of the address vector: SL, source GID, traffic class,
 * hop limit, flow label. Ignores the last four without a GRH, as ib_uverbs does
 * (copy_ah_attr_from_uverbs()). A DCT learns the address of a peer from its
 * packets: DLID and DGID are ignored. */
static void uverbs_dct_path(const struct ib_uverbs_qp_dest *dest,
                            struct hca_path *path)
{
    *path = (struct hca_path){.sl = dest->sl};
    if (dest->is_global) {
        path->grh        = true;
        path->sgid_index = dest->sgid_index;
        path->hop_limit  = dest->hop_limit;
        path->tclass     = dest->traffic_class;
        path->flow_label = dest->flow_label;
    }
}

/* Checks only the port; the step to RTR checks the rest, as CREATE_DCT does for
 * mlx5_ib_modify_dct(). */
static int uverbs_dct_init(struct uverbs_qp *qp,
                           const struct hca_qp_change *change)
{
    if ((change->mask != UVERBS_DCT_INIT) || (change->port != 1)) {
        return -EINVAL;
    }
    qp->spec.attr.access     = change->attr.access;
    qp->spec.attr.pkey_index = change->attr.pkey_index;
    qp->is_dct_init          = true;
    return 0;
}

static int uverbs_dct_rtr(struct uverbs_req *req, struct uverbs_qp *qp,
                          const struct hca_qp_change *change,
                          const struct ib_uverbs_qp_dest *dest)
{
    struct mlx5_ib_modify_qp_resp drv = {0};
    size_t min                        = offsetof(typeof(drv), ece_options);
    size_t len                        = uverbs_len(req, UVERBS_ATTR_UHW_OUT);
    uint32_t bad, events;
    int ret;

    if ((change->mask != UVERBS_DCT_RTR) || (dest->port_num != 1) ||
        (len < min)) {
        return -EINVAL;
    }
    qp->spec.attr.min_rnr_timer = change->attr.min_rnr_timer;
    qp->spec.attr.mtu           = change->attr.mtu;
    uverbs_dct_path(dest, &qp->spec.attr.path);
    ret = hca_dct_create(&qp->spec, &bad, &qp->qp);
    if (ret != 0) {
        return (ret == -ENOMEM) ? ret : -EINVAL;
    }
    drv.response_length = (len < sizeof(drv)) ? min : sizeof(drv);
    drv.dctn            = qp->qp->obj.num;
    if (uverbs_uhw_out(req, &drv) != 0) {
        hca_qp_destroy(qp->qp, &events);
        qp->qp = NULL;
        return -EFAULT;
    }
    return 0;
}

int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct hca_qp_change *change,
                      const struct ib_uverbs_qp_dest *dest)
{
    if (qp->qp != NULL) {
        return -EINVAL;
    }
    if (!qp->is_dct_init && (change->next == IBV_QPS_INIT)) {
        return uverbs_dct_init(qp, change);
    }
    return (qp->is_dct_init && (change->next == IBV_QPS_RTR)) ?
               uverbs_dct_rtr(req, qp, change, dest) :
               -EINVAL;
}

#define UVERBS_DCT_QUERY \
    (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_PKEY_INDEX | \
     IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU)

/* Answers as mlx5_ib_dct_query_qp() does: only in RTR, and only the attributes
 * in @mask. */
int uverbs_dct_query(const struct uverbs_qp *qp, uint32_t mask,
                     struct ib_uverbs_query_qp_resp *resp)
{
    struct hca_qp_info info;

    if ((qp->qp == NULL) || (mask & ~(uint32_t)UVERBS_DCT_QUERY)) {
        return -EINVAL;
    }
    hca_qp_query(qp->qp, &info);
    if (info.state != IBV_QPS_RTR) {
        return -EINVAL;
    }
    *resp = (struct ib_uverbs_query_qp_resp){
        .qp_state        = (mask & IBV_QP_STATE) ? IBV_QPS_RTR : 0,
        .qp_access_flags = (mask & IBV_QP_ACCESS_FLAGS) ?
                               info.attr.access & UVERBS_REMOTE_ACCESS :
                               0,
        .port_num        = (mask & IBV_QP_PORT) ? 1 : 0,
        .pkey_index = (mask & IBV_QP_PKEY_INDEX) ? info.attr.pkey_index : 0,
        .min_rnr_timer =
            (mask & IBV_QP_MIN_RNR_TIMER) ? info.attr.min_rnr_timer : 0,
        .path_mtu = (mask & IBV_QP_PATH_MTU) ? info.attr.mtu : 0,
    };
    if (mask & IBV_QP_AV) {
        uverbs_dest_out(&info.attr.path, 1, &resp->dest);
    }
    return 0;
}
