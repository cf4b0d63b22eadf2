/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * QUERY_DEVICE and its extended form: the device's capabilities. The limits are
 * those that other files check, and the sizes of tables.
 */
#define _GNU_SOURCE
#include "uverbs.h"
#include "uverbs_dm.h"
#include "uverbs_srq.h"
#include "softhca/exec/hca_qp_cmd.h"
#include "softhca/fabric/hca_dev.h"
#include "softhca/obj/hca_cq_mini.h"
#include "softhca/obj/hca_odp.h"
#include "softhca/obj/hca_tm.h"
#include "softhca/resp/hca_rndv.h"

#include <errno.h>

static void uverbs_device_limits(struct ib_uverbs_query_device_resp *resp)
{
    resp->max_mr_size         = UINT64_MAX;
    resp->page_size_cap       = ~4095ull;
    resp->max_qp              = hca_limit(HCA_LIMIT_QP, HCA_MAX_QPS);
    resp->max_qp_wr           = hca_limit(HCA_LIMIT_QP_WR, UVERBS_MAX_WR);
    resp->max_sge             = UVERBS_MAX_SGE;
    resp->max_sge_rd          = UVERBS_MAX_SGE;
    resp->max_cq              = UVERBS_MAX_CQ;
    resp->max_cqe             = hca_limit(HCA_LIMIT_CQE, UVERBS_MAX_CQE - 1);
    resp->max_mr              = UVERBS_MAX_MR;
    resp->max_pd              = UVERBS_MAX_PD;
    resp->max_qp_rd_atom      = HCA_MAX_RD_ATOMIC;
    resp->max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC;
    resp->max_res_rd_atom     = HCA_MAX_RD_ATOMIC * HCA_MAX_QPS;
    resp->max_mw              = UVERBS_MAX_MR;
    resp->max_ah              = UVERBS_MAX_AH;
    resp->max_srq             = UVERBS_MAX_SRQ;
    resp->max_srq_wr          = hca_limit(HCA_LIMIT_SRQ_WR, UVERBS_MAX_WR - 1);
    resp->max_srq_sge         = UVERBS_MAX_RQ_DESC / 16 - 1;
    resp->max_pkeys           = HCA_PKEY_TABLE_LEN;
    resp->local_ca_ack_delay  = 16;
    resp->phys_port_cnt       = 1;
}

static void uverbs_device_fill(const struct uverbs_ctx *ctx,
                               struct ib_uverbs_query_device_resp *resp)
{
    uverbs_device_limits(resp);
    resp->fw_ver           = UVERBS_FW_VER;
    resp->node_guid        = hca_dev_guid(ctx->dev);
    resp->sys_image_guid   = resp->node_guid;
    resp->vendor_id        = 0x2c9; /* Mellanox' OUI, not the PCI id */
    resp->vendor_part_id   = UVERBS_PART_ID;
    resp->atomic_cap       = hca_lacks(HCA_LACK_ATOMICS) ? IBV_ATOMIC_NONE :
                                                           IBV_ATOMIC_HCA;
    resp->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR |
                             IBV_DEVICE_BAD_QKEY_CNTR |
                             IBV_DEVICE_PORT_ACTIVE_EVENT |
                             IBV_DEVICE_SYS_IMAGE_GUID |
                             IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
                             IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC |
                             IBV_DEVICE_MEM_MGT_EXTENSIONS;
}

static int uverbs_query_device(struct uverbs_req *req)
{
    struct ib_uverbs_query_device_resp resp = {0};

    uverbs_device_fill(req->ctx, &resp);
    return uverbs_core_out(req, &resp);
}

/* Fills in the driver's part: none of the Ethernet offloads. There is no bit
 * for DC: programs find out by creating a DCI or a DCT. */
static int uverbs_query_device_uhw(struct uverbs_req *req)
{
    struct mlx5_ib_query_device_resp resp = {0};
    size_t len = uverbs_len(req, UVERBS_ATTR_UHW_OUT);

    if ((len != 0) && (len < offsetof(typeof(resp), tso_caps))) {
        return -EINVAL;
    }
    resp.response_length = (len < sizeof(resp)) ? len : sizeof(resp);
    resp.flags           = MLX5_IB_QUERY_DEV_RESP_FLAGS_SCAT2CQE_DCT |
                 MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
    resp.cqe_comp_caps.max_num          = HCA_MINIS_MAX;
    resp.cqe_comp_caps.supported_format = MLX5_IB_CQE_RES_FORMAT_HASH |
                                          MLX5_IB_CQE_RES_FORMAT_CSUM;
    resp.dci_streams_caps.max_log_num_concurent = hca_config.log_streams;
    resp.dci_streams_caps.max_log_num_errored   = hca_config.log_errored;
    return uverbs_uhw_out(req, &resp);
}

/* Reports tag matching as mlx5_ib_query_device() does. */
static void uverbs_device_tm(struct ib_uverbs_tm_caps *caps)
{
    if (hca_lacks(HCA_LACK_TM)) {
        return;
    }
    caps->max_num_tags      = uverbs_max_tags();
    caps->max_ops           = UVERBS_MAX_WR;
    caps->max_sge           = HCA_TM_MAX_SGE;
    caps->flags             = IBV_TM_CAP_RC; /* rendezvous offload on RC */
    caps->max_rndv_hdr_size = HCA_RNDV_MAX_HDR;
}

static void uverbs_device_odp(struct ib_uverbs_ex_query_device_resp *resp)
{
    struct ib_uverbs_odp_caps *caps = &resp->odp_caps;

    if (hca_lacks(HCA_LACK_ODP)) {
        return;
    }
    caps->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    caps->per_transport_caps.rc_odp_caps = hca_odp_caps(HCA_QP_RC);
    caps->per_transport_caps.uc_odp_caps = hca_odp_caps(HCA_QP_UC);
    caps->per_transport_caps.ud_odp_caps = hca_odp_caps(HCA_QP_UD);
    resp->xrc_odp_caps                   = hca_odp_caps(HCA_QP_XRC_SEND);
}

static void uverbs_device_fill_ex(struct ib_uverbs_ex_query_device_resp *resp)
{
    uverbs_device_tm(&resp->tm_caps);
    uverbs_device_odp(resp);
    resp->timestamp_mask      = UVERBS_CLOCK_MASK;
    resp->hca_core_clock      = UVERBS_CLOCK_KHZ;
    resp->device_cap_flags_ex = resp->base.device_cap_flags;
    resp->max_dm_size         = uverbs_max_dm();
    resp->cq_moderation_caps.max_cq_moderation_count  = UINT16_MAX;
    resp->cq_moderation_caps.max_cq_moderation_period = 0xfff;
}

static int uverbs_query_device_ex(struct uverbs_req *req)
{
    struct ib_uverbs_ex_query_device_resp resp = {0};
    struct ib_uverbs_ex_query_device cmd;
    size_t len = uverbs_len(req, UVERBS_ATTR_CORE_OUT);
    int ret;

    ret = uverbs_core_in(req, &cmd);
    if (ret != 0) {
        return ret;
    }
    if ((cmd.comp_mask != 0) || (cmd.reserved != 0)) {
        return -EINVAL;
    }

    uverbs_device_fill(req->ctx, &resp.base);
    uverbs_device_fill_ex(&resp);
    resp.response_length = (len < sizeof(resp)) ? len : sizeof(resp);
    ret                  = uverbs_query_device_uhw(req);
    return (ret != 0) ? ret : uverbs_core_out(req, &resp);
}

/* Refuses GET_CONTEXT as a write command, which would have to return an async
 * descriptor. The row is there only for the probe of libibverbs, which
 * uverbs_write() answers. */
static int uverbs_write_get_context(struct uverbs_req *req)
{
    (void)req;
    return -EOPNOTSUPP;
}

const struct uverbs_write uverbs_device_writes[] = {
    {IB_USER_VERBS_CMD_GET_CONTEXT, "get_context",
     sizeof(struct ib_uverbs_get_context),
     sizeof(struct ib_uverbs_get_context_resp), uverbs_write_get_context},
    {IB_USER_VERBS_CMD_QUERY_DEVICE, "query_device",
     sizeof(struct ib_uverbs_query_device),
     sizeof(struct ib_uverbs_query_device_resp), uverbs_query_device},
    {UVERBS_EX(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), "query_device_ex",
     sizeof(struct ib_uverbs_ex_query_device),
     offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps),
     uverbs_query_device_ex},
    {.handler = NULL},
};
