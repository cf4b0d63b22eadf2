/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * GET_CONTEXT and QUERY_CONTEXT: properties that libmlx5 asks for once, when it
 * opens or imports a device (rdma/mlx5-abi.h). Also the row of INVOKE_WRITE,
 * which carries the write commands.
 */
#define _GNU_SOURCE
#include "softhca/doorbell/hca_push.h"
#include "softhca/fabric/hca_caps.h"
#include "softhca/obj/hca_mkey.h"
#include "softhca/obj/hca_objs.h"
#include "uverbs.h"

#include <errno.h>

/* Checks as mlx5_ib does. */
static int uverbs_context_check(const struct mlx5_ib_alloc_ucontext_req_v2 *in)
{
    if ((in->flags & ~(uint32_t)MLX5_IB_ALLOC_UCTX_DEVX) != 0) {
        return -EINVAL;
    }
    if ((in->flags & MLX5_IB_ALLOC_UCTX_DEVX) && hca_lacks(HCA_LACK_DEVX)) {
        return -EINVAL; /* mlx5_ib_devx_create() */
    }
    if ((in->comp_mask != 0) || (in->reserved0 != 0) || (in->reserved1 != 0) ||
        (in->reserved2 != 0)) {
        return -EOPNOTSUPP;
    }
    /* without dynamic UARs the library maps UARs, and rings doorbells in them,
     * of which no ioctl tells */
    return (in->lib_caps & MLX5_LIB_CAP_DYN_UAR) ? 0 : -EOPNOTSUPP;
}

/* bf_reg_size is that of the capability log_bf_reg_size, or 0 on a platform
 * without write combining (mlx5_ib: wc_support). */
static void uverbs_ucontext(const struct uverbs_ctx *ctx,
                            struct mlx5_ib_alloc_ucontext_resp *resp)
{
    *resp = (struct mlx5_ib_alloc_ucontext_resp){
        .qp_tab_size     = HCA_MAX_QPS + 1,
        .bf_reg_size     = hca_lacks(HCA_LACK_WC) ? 0 : 2 * HCA_PUSH_HALF_SIZE,
        .cache_line_size = 64,
        .max_sq_desc_sz  = UVERBS_MAX_SQ_DESC,
        .max_rq_desc_sz  = UVERBS_MAX_RQ_DESC,
        .max_send_wqebb  = hca_limit(HCA_LIMIT_QP_WR, UVERBS_MAX_WR),
        .max_recv_wr     = hca_limit(HCA_LIMIT_QP_WR, UVERBS_MAX_WR),
        .max_srq_recv_wr = hca_limit(HCA_LIMIT_SRQ_WR, UVERBS_MAX_WR - 1) + 1,
        .num_ports       = 1,
        .comp_mask       = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY,
        .response_length = sizeof(*resp),
        .cqe_version     = 1,
        .cmds_supp_uhw   = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
                         MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
        .clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1,
        .eth_min_inline      = MLX5_USER_INLINE_MODE_NONE,
        .log_uar_size        = 12,
        .num_uars_per_page   = 1,
        .dump_fill_mkey      = hca_key(ctx->null_mkey),
    };
}

static const struct uverbs_attr_spec uverbs_get_context_attrs[] = {
    {UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, UVERBS_OUT, 0, 4, 4, 0},
    {UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, UVERBS_OUT, 0, 8, 8, 0},
};

static int uverbs_put_core(struct uverbs_req *req, uint16_t vectors_id,
                           uint16_t support_id)
{
    uint32_t vectors = UVERBS_NUM_VECTORS;
    uint64_t support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
    int ret;

    ret = uverbs_put(req, vectors_id, &vectors, sizeof(vectors));
    return (ret != 0) ? ret :
                        uverbs_put(req, support_id, &support, sizeof(support));
}

static int uverbs_context_init(struct uverbs_ctx *ctx)
{
    const struct hca_mkey_spec spec = {
        .dev    = ctx->dev,
        .type   = HCA_MKEY_NULL,
        .access = IBV_ACCESS_LOCAL_WRITE,
        .qpn    = HCA_ANY_QPN,
        .length = UINT64_MAX,
    };

    return hca_mkey_create(&spec, &ctx->null_mkey);
}

void uverbs_context_cleanup(struct uverbs_ctx *ctx)
{
    if (ctx->null_mkey != NULL) {
        hca_mkey_destroy(ctx->null_mkey);
        ctx->null_mkey = NULL;
    }
}

static int uverbs_get_context(struct uverbs_req *req)
{
    struct mlx5_ib_alloc_ucontext_req_v2 in;
    struct mlx5_ib_alloc_ucontext_resp resp;
    int ret;

    if (req->ctx->ready) {
        return -EINVAL;
    }
    if (uverbs_len(req, UVERBS_ATTR_UHW_IN) <
        sizeof(struct mlx5_ib_alloc_ucontext_req)) {
        return -EINVAL;
    }
    ret = uverbs_uhw_in(req, &in);
    if (ret != 0) {
        return ret;
    }
    ret = uverbs_context_check(&in);
    if (ret != 0) {
        return ret;
    }

    ret = uverbs_context_init(req->ctx);
    if (ret != 0) {
        return ret;
    }
    uverbs_ucontext(req->ctx, &resp);
    ret = uverbs_uhw_out(req, &resp);
    if (ret != 0) {
        goto err_cleanup;
    }
    ret = uverbs_put_core(req, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS,
                          UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT);
    if (ret != 0) {
        goto err_cleanup;
    }
    req->ctx->ready = true;
    return 0;

err_cleanup:
    uverbs_context_cleanup(req->ctx);
    return ret;
}

static const struct uverbs_attr_spec uverbs_query_context_attrs[] = {
    {UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, UVERBS_OUT, 0, 4, 4, 0},
    {UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, UVERBS_OUT, 0, 8, 8, 0},
    {MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, UVERBS_OUT, UVERBS_MANDATORY,
     offsetof(struct mlx5_ib_alloc_ucontext_resp, dump_fill_mkey) + 4,
     UINT16_MAX, 0},
};

static int uverbs_query_context(struct uverbs_req *req)
{
    struct mlx5_ib_alloc_ucontext_resp resp;
    int ret;

    ret = uverbs_put_core(req, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
                          UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT);
    if (ret != 0) {
        return ret;
    }
    uverbs_ucontext(req->ctx, &resp);
    return uverbs_put(req, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &resp,
                      sizeof(resp));
}

static const struct uverbs_attr_spec uverbs_write_attrs[] = {
    {UVERBS_ATTR_CORE_IN, UVERBS_IN, 0, 0, UINT16_MAX, 0},
    {UVERBS_ATTR_CORE_OUT, UVERBS_OUT, 0, 0, UINT16_MAX, 0},
    {UVERBS_ATTR_WRITE_CMD, UVERBS_IN, UVERBS_MANDATORY, 8, 8, 0},
};

const struct uverbs_method uverbs_context_methods[] = {
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_INVOKE_WRITE,
     .uhw     = true,
     .name    = "write",
     .may_end = true,
     .handler = uverbs_write,
     UVERBS_ATTRS(uverbs_write_attrs)},
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_GET_CONTEXT,
     .uhw     = true,
     .name    = "get_context",
     .handler = uverbs_get_context,
     UVERBS_ATTRS(uverbs_get_context_attrs)},
    {.object  = UVERBS_OBJECT_DEVICE,
     .id      = UVERBS_METHOD_QUERY_CONTEXT,
     .name    = "query_context",
     .handler = uverbs_query_context,
     UVERBS_ATTRS(uverbs_query_context_attrs)},
    {.handler = NULL},
};
