/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * DC targets. CREATE_QP only writes down what is asked for; the target exists,
 * and has its number, when it is modified to RTR (mlx5_ib_modify_dct()). It
 * goes RESET, INIT, RTR and no further.
 */
#define _GNU_SOURCE
#include "uverbs_dct.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_objs.h"
#include "softhca/exec/hca_qp_cmd.h"
#include "uverbs.h"

#include <errno.h>

#define UVERBS_DCT_INIT \
    (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define UVERBS_DCT_RTR \
    (IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU)

static int uverbs_dct_init(struct hca_qp *hw, const struct ibv_qp_attr *attr)
{
    hw->attr.qp_access_flags = hw->access     = attr->qp_access_flags;
    hw->attr.pkey_index      = hw->pkey_index = attr->pkey_index;
    hw->attr.port_num        = hw->port       = attr->port_num;
    hw->pkey = hca_dev_pkey(hw->obj.dev, attr->pkey_index);
    atomic_store(&hw->state, IBV_QPS_INIT);
    return 0;
}

/* A DCT learns its peers from their packets: of the address vector only what
 * is its own is meant (source GID, traffic class, hop limit, flow label), so
 * a DLID or DGID does not have to lead anywhere. */
static void uverbs_dct_path(struct hca_qp *hw, const struct ibv_qp_attr *attr)
{
    hw->path = (struct hca_path){
        .sl         = attr->ah_attr.sl,
        .grh        = attr->ah_attr.is_global != 0,
        .sgid_index = attr->ah_attr.grh.sgid_index,
        .hop_limit  = attr->ah_attr.grh.hop_limit,
        .tclass     = attr->ah_attr.grh.traffic_class,
        .flow_label = attr->ah_attr.grh.flow_label,
    };
}

static int uverbs_dct_rtr(struct uverbs_req *req, struct uverbs_qp *qp,
                          const struct ibv_qp_attr *attr)
{
    struct mlx5_ib_modify_qp_resp drv = {0};
    size_t min                        = offsetof(typeof(drv), ece_options);
    size_t len                        = uverbs_len(req, UVERBS_ATTR_UHW_OUT);
    struct hca_qp *hw                 = qp->qp;

    if (len < min) {
        return -EINVAL;
    }
    hw->attr.min_rnr_timer = hw->min_rnr_timer = attr->min_rnr_timer;
    hw->attr.path_mtu      = attr->path_mtu;
    hw->attr.ah_attr       = attr->ah_attr;
    hw->mtu                = attr->path_mtu;
    uverbs_dct_path(hw, attr);

    /* the answer before the target: nothing has to be undone */
    drv.response_length = (len < sizeof(drv)) ? min : sizeof(drv);
    drv.dctn            = hca_obj_number(HCA_KIND_QP, hw);
    if (uverbs_uhw_out(req, &drv) != 0) {
        return -EFAULT;
    }
    hca_obj_publish(HCA_KIND_QP, hw);
    qp->published = true;
    return hca_qp_set_state(hw, IBV_QPS_INIT, IBV_QPS_RTR);
}

int uverbs_dct_modify(struct uverbs_req *req, struct uverbs_qp *qp,
                      const struct ibv_qp_attr *attr, unsigned mask)
{
    enum ibv_qp_state cur = atomic_load(&qp->qp->state);

    if (!(mask & IBV_QP_STATE)) {
        return -EINVAL;
    }
    if ((cur == IBV_QPS_RESET) && (attr->qp_state == IBV_QPS_INIT)) {
        return (mask != UVERBS_DCT_INIT) ? -EINVAL :
               uverbs_dct_init(qp->qp, attr);
    }
    if ((cur == IBV_QPS_INIT) && (attr->qp_state == IBV_QPS_RTR)) {
        return (mask != UVERBS_DCT_RTR) ? -EINVAL :
               uverbs_dct_rtr(req, qp, attr);
    }
    return -EINVAL;
}
