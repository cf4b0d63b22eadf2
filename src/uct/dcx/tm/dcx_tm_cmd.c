/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_QP, RST2INIT_QP, INIT2RTR_QP, RTR2RTS_QP; see dcx_tm_cmd.h. What they
 * say is what UCX says for its own (rc_mlx5_devx.c, ib_mlx5_dv.c).
 */
#include "dcx_tm_cmd.h"
#include "common/prm_cmd.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <errno.h>
#include <ucs/arch/bitops.h>
#include <ucs/debug/log.h>


/* WQEBBs for operations that belong to no buffer */
#define UCT_DCX_TM_CMD_SPARE    8

/* The longest message: all mlx5 devices take it. */
#define UCT_DCX_TM_CMD_LOG_MSG  30

/* What a send would have: retries without end, 67 ms */
#define UCT_DCX_TM_CMD_RETRIES  7
#define UCT_DCX_TM_CMD_TIMEOUT  14

/* A page for doorbells alone that is not write-combining: later than 0 and
 * MLX5DV_UAR_ALLOC_TYPE_NC, which gives one that is shared
 * (MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED of mlx5dv.h) */
#define UCT_DCX_TM_CMD_UAR_NC_DEDICATED  (1u << 31)


/* Where the platform has no write-combining, there is the other kind. */
static ucs_status_t
uct_dcx_tm_cmd_alloc_uar(uct_dcx_tm_cmd_t *cmd, const uct_dcx_device_t *dev)
{
    cmd->uar = mlx5dv_devx_alloc_uar(dev->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    if ((cmd->uar == NULL) && (errno == EOPNOTSUPP)) {
        cmd->uar = mlx5dv_devx_alloc_uar(dev->ctx,
                                         UCT_DCX_TM_CMD_UAR_NC_DEDICATED);
    }

    if (cmd->uar == NULL) {
        ucs_error("%s: no doorbell page for the queue of tagged buffers: %m",
                  uct_dcx_device_name(dev));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


static ucs_status_t
uct_dcx_tm_cmd_create_qp(uct_dcx_tm_cmd_t *cmd, const uct_dcx_queues_t *queues,
                         unsigned num_bb)
{
    const uct_dcx_device_t *dev = queues->port.dev;
    const uct_dcx_rx_t *rx      = &queues->rx;
    struct prm_create_qp_in in  = {.opcode = htobe16(PRM_CMD_CREATE_QP)};

    in.qpc.state        = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.pd           = htobe32(dev->pdn);
    in.qpc.sizes        = uct_dcx_devx_bits(PRM_QPC_LOG_SQ_SIZE,
                                            ucs_ilog2(num_bb));
    in.qpc.uar_page     = htobe32(cmd->uar->page_id);
    in.qpc.cqn_snd      = htobe32(rx->cq.cqn);
    in.qpc.cqn_rcv      = htobe32(rx->cq.cqn);
    in.qpc.dbr_addr     = htobe64(cmd->ring.offset);
    in.qpc.rq_type_srqn = htobe32(PRM_QPC_RQ_TYPE_SRQ | rx->xrq.obj.number);
    in.qpc.dbr_umem_id  = htobe32(cmd->ring.umem->umem_id);
    in.wq_umem_id       = htobe32(cmd->ring.umem->umem_id);
    return uct_dcx_devx_create(&cmd->qp, dev, "command QP", &in, sizeof(in));
}


static ucs_status_t
uct_dcx_tm_cmd_modify(const uct_dcx_tm_cmd_t *cmd, uint16_t opcode,
                      const char *name, struct prm_modify_qp_in *in)
{
    in->opcode = htobe16(opcode);
    in->qpn    = htobe32(cmd->qp.number);
    return uct_dcx_devx_modify(&cmd->qp, name, in, sizeof(*in));
}


static ucs_status_t uct_dcx_tm_cmd_to_init(const uct_dcx_tm_cmd_t *cmd,
                                           const uct_dcx_port_t *port)
{
    struct prm_modify_qp_in in = {};

    in.qpc.state           = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.path.port       = port->num;
    in.qpc.path.pkey_index = htobe16(port->pkey_index);
    return uct_dcx_tm_cmd_modify(cmd, PRM_CMD_RST2INIT_QP, "RST2INIT_QP", &in);
}


/* The way to the own port */
static ucs_status_t
uct_dcx_tm_cmd_make_av(uct_dcx_queues_t *queues, uct_dcx_av_t *av,
                       uct_dcx_grh_t *grh)
{
    uct_dcx_target_t target     = {};
    const uct_dcx_route_t route = {.target = &target};

    memset(grh, 0, sizeof(*grh));
    uct_dcx_port_get_address(&queues->port, &target.dev_addr);
    return uct_dcx_port_make_av(&queues->port, &route, av, grh);
}


/* As mlx5_set_path() of the kernel's mlx5_ib */
static void uct_dcx_tm_cmd_fill_path(const uct_dcx_port_t *port,
                                     const uct_dcx_av_t *av,
                                     const uct_dcx_grh_t *grh,
                                     struct prm_ads *path)
{
    path->port = port->num;
    if (uct_dcx_port_is_roce(port)) {
        path->udp_sport = av->rlid;
        path->dscp      = port->traffic_class >> 2;
        path->sl        = port->sl << PRM_ADS_ETH_PRIO;
        memcpy(path->rmac, grh->rmac, sizeof(path->rmac));
    } else {
        path->rlid     = av->rlid;
        path->grh_mlid = port->is_global ? PRM_ADS_GRH : 0;
        path->sl       = port->sl;
    }

    if (uct_dcx_port_is_roce(port) || port->is_global) {
        path->src_addr_index = port->gid_index;
        path->hop_limit      = port->hop_limit;
        path->tclass         = uct_dcx_devx_bits(PRM_ADS_TCLASS,
                                                 port->traffic_class);
        memcpy(path->rgid, grh->rgid, sizeof(path->rgid));
    }
}


static ucs_status_t uct_dcx_tm_cmd_to_rtr(const uct_dcx_tm_cmd_t *cmd,
                                          uct_dcx_queues_t *queues)
{
    const uct_dcx_port_t *port = &queues->port;
    struct prm_modify_qp_in in = {};
    ucs_status_t status;
    uct_dcx_grh_t grh;
    uct_dcx_av_t av;

    status = uct_dcx_tm_cmd_make_av(queues, &av, &grh);
    if (status != UCS_OK) {
        return status;
    }

    in.qpc.state      = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.sizes      = uct_dcx_devx_bits(PRM_QPC_MTU, port->mtu) |
                        uct_dcx_devx_bits(PRM_QPC_LOG_MSG_MAX,
                                          UCT_DCX_TM_CMD_LOG_MSG);
    in.qpc.remote_qpn = htobe32(cmd->qp.number);
    uct_dcx_tm_cmd_fill_path(port, &av, &grh, &in.qpc.path);
    return uct_dcx_tm_cmd_modify(cmd, PRM_CMD_INIT2RTR_QP, "INIT2RTR_QP", &in);
}


static ucs_status_t uct_dcx_tm_cmd_to_rts(const uct_dcx_tm_cmd_t *cmd)
{
    struct prm_modify_qp_in in = {};

    in.qpc.state            = htobe32(PRM_QPC_PM_MIGRATED);
    in.qpc.retry            = uct_dcx_devx_bits(PRM_QPC_RETRY_COUNT,
                                                UCT_DCX_TM_CMD_RETRIES) |
                              uct_dcx_devx_bits(PRM_QPC_RNR_RETRY,
                                                UCT_DCX_TM_CMD_RETRIES);
    in.qpc.path.ack_timeout = UCT_DCX_TM_CMD_TIMEOUT <<
                              PRM_ADS_ACK_TIMEOUT;
    return uct_dcx_tm_cmd_modify(cmd, PRM_CMD_RTR2RTS_QP, "RTR2RTS_QP", &in);
}


static ucs_status_t uct_dcx_tm_cmd_connect(const uct_dcx_tm_cmd_t *cmd,
                                           uct_dcx_queues_t *queues)
{
    ucs_status_t status;

    status = uct_dcx_tm_cmd_to_init(cmd, &queues->port);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_tm_cmd_to_rtr(cmd, queues);
    if (status != UCS_OK) {
        return status;
    }

    return uct_dcx_tm_cmd_to_rts(cmd);
}


static void uct_dcx_tm_cmd_init_sq(uct_dcx_tm_cmd_t *cmd, unsigned num_bb)
{
    uct_dcx_sq_t *sq = &cmd->sq;

    memset(sq, 0, sizeof(*sq));
    sq->start    = cmd->ring.start;
    sq->dbrec    = &uct_dcx_devx_ring_dbrec(&cmd->ring)[MLX5_SND_DBR];
    sq->bf       = (uintptr_t)cmd->uar->reg_addr;
    sq->qpn      = cmd->qp.number;
    sq->sender   = uct_dcx_wqe_sender(sq->qpn);
    sq->mask     = num_bb - 1;
    sq->capacity = num_bb - 1;
    sq->limit    = sq->capacity;
    uct_dcx_sq_reset(sq);
}


ucs_status_t uct_dcx_tm_cmd_init(uct_dcx_tm_cmd_t *cmd,
                                 uct_dcx_queues_t *queues, unsigned num_tags)
{
    const uct_dcx_device_t *dev = queues->port.dev;
    unsigned num_bb             = ucs_roundup_pow2((2 * num_tags) +
                                                   UCT_DCX_TM_CMD_SPARE);
    ucs_status_t status;

    status = uct_dcx_devx_ring_init(&cmd->ring, dev,
                                    (size_t)num_bb << MLX5_SEND_WQE_SHIFT);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_tm_cmd_alloc_uar(cmd, dev);
    if (status != UCS_OK) {
        goto err_cleanup_ring;
    }

    status = uct_dcx_tm_cmd_create_qp(cmd, queues, num_bb);
    if (status != UCS_OK) {
        goto err_free_uar;
    }

    status = uct_dcx_tm_cmd_connect(cmd, queues);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    uct_dcx_tm_cmd_init_sq(cmd, num_bb);
    return UCS_OK;

err_destroy_qp:
    uct_dcx_devx_destroy(&cmd->qp);
err_free_uar:
    mlx5dv_devx_free_uar(cmd->uar);
err_cleanup_ring:
    uct_dcx_devx_ring_cleanup(&cmd->ring);
    return status;
}


void uct_dcx_tm_cmd_cleanup(uct_dcx_tm_cmd_t *cmd)
{
    uct_dcx_devx_destroy(&cmd->qp);
    mlx5dv_devx_free_uar(cmd->uar);
    uct_dcx_devx_ring_cleanup(&cmd->ring);
}
