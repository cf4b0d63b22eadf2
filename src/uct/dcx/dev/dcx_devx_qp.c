/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_QP, RST2INIT_QP, INIT2RTR_QP, RTR2RTS_QP, 2ERR_QP, 2RST_QP, QUERY_QP;
 * see dcx_devx_qp.h. Parameters are those of UCX's own QPs (rc_mlx5_devx.c,
 * ib_mlx5_dv.c).
 */
#include "dcx_devx_qp.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <errno.h>
#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>


/* log2 of the longest message, in bytes; all mlx5 devices support it. */
#define UCT_DCX_DEVX_QP_LOG_MSG 30

/* Retry count and ACK timeout, which nothing needs, as nothing is sent:
 * infinite, 67 ms */
#define UCT_DCX_DEVX_QP_RETRIES 7
#define UCT_DCX_DEVX_QP_TIMEOUT 14

/* A page for doorbells only that is not write-combining
 * (MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED of mlx5dv.h). Newer than
 * MLX5DV_UAR_ALLOC_TYPE_NC, which returns a shared page. */
#define UCT_DCX_DEVX_UAR_NC_DEDICATED (1u << 31)

/* Bytes of half of a write-combining register (2^log_bf_reg_size bytes of the
 * device's capabilities in mlx5_ifc.h of Linux: 512 on each device) */
#define UCT_DCX_DEVX_BF_HALF 256


/* Allocates a doorbell page; one that is not write-combining if the platform
 * has no other. An older libmlx5 (Debian 12) shares a single page of that kind:
 * doorbells of eight bytes are stored as a whole, and need no lock there. */
static ucs_status_t
uct_dcx_devx_qp_alloc_uar(uct_dcx_devx_qp_t *qp,
                          const uct_dcx_devx_qp_params_t *params)
{
    struct ibv_context *ctx = params->dev->ctx;
    unsigned bf_size        = UCT_DCX_DEVX_BF_HALF;

    qp->uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    if ((qp->uar == NULL) && (errno == EOPNOTSUPP)) {
        bf_size = 0;
        qp->uar = mlx5dv_devx_alloc_uar(ctx, UCT_DCX_DEVX_UAR_NC_DEDICATED);
    }

    if ((qp->uar == NULL) && (errno == EOPNOTSUPP)) {
        qp->uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    }

    if (qp->uar == NULL) {
        ucs_error("%s: failed to allocate a doorbell page for the %s: %m",
                  uct_dcx_device_name(params->dev), params->name);
        return UCS_ERR_IO_ERROR;
    }

    uct_dcx_bf_init(&qp->bf, qp->uar->reg_addr, bf_size);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_devx_qp_create(uct_dcx_devx_qp_t *qp,
                       const uct_dcx_devx_qp_params_t *params)
{
    struct prm_create_qp_in in = {.opcode = htobe16(PRM_CMD_CREATE_QP)};

    in.qpc.state = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.pd    = htobe32(params->dev->pdn);
    in.qpc.sizes = uct_dcx_devx_bits(PRM_QPC_LOG_SQ_SIZE,
                                     ucs_ilog2(params->num_bb)) |
                   htobe32(PRM_QPC_TS_DEFAULT);
    in.qpc.uar_page     = htobe32(qp->uar->page_id);
    in.qpc.cqn_snd      = htobe32(params->cqn);
    in.qpc.cqn_rcv      = htobe32(params->cqn);
    in.qpc.dbr_addr     = htobe64(qp->ring.offset);
    in.qpc.rq_type_srqn = htobe32((params->srqn != 0) ?
                                      (PRM_QPC_RQ_TYPE_SRQ | params->srqn) :
                                      PRM_QPC_RQ_TYPE_NONE);
    in.qpc.dbr_umem_id  = htobe32(qp->ring.umem->umem_id);
    in.wq_umem_id       = htobe32(qp->ring.umem->umem_id);
    return uct_dcx_devx_create(&qp->obj, params->dev, params->name, &in,
                               sizeof(in));
}


static ucs_status_t uct_dcx_devx_qp_modify(const uct_dcx_devx_qp_t *qp,
                                           uint16_t opcode, const char *what,
                                           struct prm_modify_qp_in *in)
{
    in->opcode = htobe16(opcode);
    in->qpn    = htobe32(qp->obj.number);
    return uct_dcx_devx_modify(&qp->obj, what, in, sizeof(*in));
}


static ucs_status_t uct_dcx_devx_qp_to_init(const uct_dcx_devx_qp_t *qp)
{
    struct prm_modify_qp_in in = {};

    in.qpc.state           = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.path.port       = qp->path.ads.port;
    in.qpc.path.pkey_index = qp->path.ads.pkey_index;
    return uct_dcx_devx_qp_modify(qp, PRM_CMD_RST2INIT_QP, "RST2INIT_QP", &in);
}


static ucs_status_t uct_dcx_devx_qp_to_rtr(const uct_dcx_devx_qp_t *qp)
{
    struct prm_modify_qp_in in = {};

    in.qpc.state = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.sizes = uct_dcx_devx_bits(PRM_QPC_MTU, qp->path.mtu) |
                   uct_dcx_devx_bits(PRM_QPC_LOG_MSG_MAX,
                                     UCT_DCX_DEVX_QP_LOG_MSG);
    in.qpc.remote_qpn      = htobe32(qp->obj.number);
    in.qpc.path            = qp->path.ads;
    in.qpc.path.pkey_index = 0; /* INIT has set it */
    return uct_dcx_devx_qp_modify(qp, PRM_CMD_INIT2RTR_QP, "INIT2RTR_QP", &in);
}


static ucs_status_t uct_dcx_devx_qp_to_rts(const uct_dcx_devx_qp_t *qp)
{
    struct prm_modify_qp_in in = {};

    in.qpc.state = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.retry =
        uct_dcx_devx_bits(PRM_QPC_RETRY_COUNT, UCT_DCX_DEVX_QP_RETRIES) |
        uct_dcx_devx_bits(PRM_QPC_RNR_RETRY, UCT_DCX_DEVX_QP_RETRIES);
    in.qpc.path.ack_timeout = UCT_DCX_DEVX_QP_TIMEOUT << PRM_ADS_ACK_TIMEOUT;
    return uct_dcx_devx_qp_modify(qp, PRM_CMD_RTR2RTS_QP, "RTR2RTS_QP", &in);
}


static ucs_status_t uct_dcx_devx_qp_connect(const uct_dcx_devx_qp_t *qp)
{
    ucs_status_t status;

    status = uct_dcx_devx_qp_to_init(qp);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_devx_qp_to_rtr(qp);
    if (status != UCS_OK) {
        return status;
    }

    return uct_dcx_devx_qp_to_rts(qp);
}


static void uct_dcx_devx_qp_init_sq(uct_dcx_devx_qp_t *qp,
                                    const uct_dcx_devx_qp_params_t *params)
{
    const uct_dcx_sq_params_t sq_params = {
        .start    = qp->ring.start,
        .dbrec    = &uct_dcx_devx_ring_dbrec(&qp->ring)[MLX5_SND_DBR],
        .bf       = &qp->bf,
        .qpn      = qp->obj.number,
        .num_bb   = params->num_bb,
        .capacity = params->num_bb - params->max_bb,
    };

    uct_dcx_sq_init(&qp->sq, &sq_params);
}


ucs_status_t uct_dcx_devx_qp_init(uct_dcx_devx_qp_t *qp,
                                  const uct_dcx_devx_qp_params_t *params)
{
    size_t length = (size_t)params->num_bb << MLX5_SEND_WQE_SHIFT;
    ucs_status_t status;

    qp->path = *params->path;
    status   = uct_dcx_devx_ring_init(&qp->ring, params->dev, length);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_devx_qp_alloc_uar(qp, params);
    if (status != UCS_OK) {
        goto err_cleanup_ring;
    }

    status = uct_dcx_devx_qp_create(qp, params);
    if (status != UCS_OK) {
        goto err_free_uar;
    }

    status = uct_dcx_devx_qp_connect(qp);
    if (status != UCS_OK) {
        goto err_destroy;
    }

    uct_dcx_devx_qp_init_sq(qp, params);
    return UCS_OK;

err_destroy:
    uct_dcx_devx_destroy(&qp->obj);
err_free_uar:
    mlx5dv_devx_free_uar(qp->uar);
err_cleanup_ring:
    uct_dcx_devx_ring_cleanup(&qp->ring);
    return status;
}


/* Runs 2ERR_QP or 2RST_QP, which have the same mailboxes. */
static ucs_status_t uct_dcx_devx_qp_stop(const uct_dcx_devx_qp_t *qp,
                                         uint16_t opcode, const char *what)
{
    const struct prm_2rst_qp_in in = {
        .opcode = htobe16(opcode),
        .qpn    = htobe32(qp->obj.number),
    };

    return uct_dcx_devx_modify(&qp->obj, what, &in, sizeof(in));
}


/* Goes through the error state: some devices cannot reset a QP that works. */
ucs_status_t uct_dcx_devx_qp_restart(uct_dcx_devx_qp_t *qp)
{
    ucs_status_t status;

    status = uct_dcx_devx_qp_stop(qp, PRM_CMD_2ERR_QP, "2ERR_QP");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_devx_qp_stop(qp, PRM_CMD_2RST_QP, "2RST_QP");
    if (status != UCS_OK) {
        return status;
    }

    uct_dcx_sq_reset(&qp->sq);
    uct_dcx_devx_ring_dbrec(&qp->ring)[MLX5_SND_DBR] = 0;
    return uct_dcx_devx_qp_connect(qp);
}


int uct_dcx_devx_qp_is_ready(const uct_dcx_devx_qp_t *qp)
{
    const struct prm_2rst_qp_in in = {
        .opcode = htobe16(PRM_CMD_QUERY_QP),
        .qpn    = htobe32(qp->obj.number),
    };
    struct prm_query_qp_out out = {};

    return (mlx5dv_devx_obj_query(qp->obj.obj, &in, sizeof(in), &out,
                                  sizeof(out)) == 0) &&
           ((be32toh(out.qpc.state) & PRM_QPC_STATE) == PRM_QPC_STATE_RTS);
}


void uct_dcx_devx_qp_cleanup(uct_dcx_devx_qp_t *qp)
{
    uct_dcx_devx_destroy(&qp->obj);
    mlx5dv_devx_free_uar(qp->uar);
    uct_dcx_devx_ring_cleanup(&qp->ring);
}
