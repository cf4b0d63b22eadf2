/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creating the target; see dcx_dct.h.
 */
#include "dcx_dct.h"
#include "common/prm_cmd.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>


/* --- by verbs ------------------------------------------------------------ */

static ucs_status_t uct_dcx_dct_modify(uct_dcx_queues_t *queues,
                                       const uct_dcx_iface_config_t *config)
{
    struct ibv_qp *dct      = queues->rx.dct;
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .pkey_index      = queues->port.pkey_index,
        .port_num        = queues->port.num,
        .qp_access_flags = queues->port.dev->mem_access &
                           (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC),
    };

    if (ibv_modify_qp(dct, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                          IBV_QP_ACCESS_FLAGS) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    attr.qp_state      = IBV_QPS_RTR;
    attr.path_mtu      = queues->port.mtu;
    attr.min_rnr_timer = uct_dcx_config_rnr_code(config->rx.rnr_timeout);
    uct_dcx_port_fill_ah(&queues->port, &attr.ah_attr);
    return (ibv_modify_qp(dct, &attr,
                          IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV |
                              IBV_QP_PATH_MTU) != 0) ?
               UCS_ERR_IO_ERROR :
               UCS_OK;
}


/* Creates the target by verbs. Without the flag libmlx5 requests data in the
 * completion, and the device puts up to 64 bytes there if the completion has
 * 128 (create_dct in libmlx5 and in the kernel's mlx5_ib); it refuses the flag
 * that forces it. */
static ucs_status_t
uct_dcx_dct_create_verbs(uct_dcx_queues_t *queues,
                         const uct_dcx_iface_config_t *config)
{
    uct_dcx_rx_t *rx                = &queues->rx;
    struct ibv_qp_init_attr_ex attr = {
        .qp_type   = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd        = queues->port.dev->pd,
        .send_cq   = queues->rx.cq.cq,
        .recv_cq   = queues->rx.cq.cq,
        .srq       = rx->srq,
    };
    struct mlx5dv_qp_init_attr dv_attr = {
        .comp_mask    = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type        = MLX5DV_DCTYPE_DCT,
                         .dct_access_key = rx->dc_key},
    };

    if (config->rx.inl == 0) {
        dv_attr.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
        dv_attr.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    }

    rx->dct = mlx5dv_create_qp(queues->port.dev->ctx, &attr, &dv_attr);
    if (rx->dct == NULL) {
        ucs_error("%s: failed to create a DCT: %m", queues->port.name);
        return UCS_ERR_IO_ERROR;
    }

    if (uct_dcx_dct_modify(queues, config) != UCS_OK) {
        ucs_error("%s: failed to modify the DCT to RTR: %m", queues->port.name);
        ibv_destroy_qp(rx->dct);
        return UCS_ERR_IO_ERROR;
    }

    rx->dctn = rx->dct->qp_num;
    return UCS_OK;
}


/* --- by DEVX ------------------------------------------------------------- */

/* Returns the rights of peers; atomics like get_atomic_mode() of mlx5_ib:
 * extended ones, or standard ones (UCX: uct_ib_mlx5_get_atomic_mode()). */
static __be32 uct_dcx_dct_rights(const uct_dcx_atomic_caps_t *atomic)
{
    unsigned mode = atomic->ext ? PRM_ATOMIC_MODE_8B :
                    atomic->std ? PRM_ATOMIC_MODE_IB_COMP :
                                  PRM_ATOMIC_MODE_NONE;

    return htobe32(PRM_DCTC_RRE | PRM_DCTC_RWE |
                   ((mode != PRM_ATOMIC_MODE_NONE) ? PRM_DCTC_RAE : 0)) |
           uct_dcx_devx_bits(PRM_DCTC_ATOMIC_MODE, mode);
}


/* Fills the path as for a DCT of verbs, with the values of the kernel's mlx5_ib
 * (mlx5_ib_modify_dct()). The code point of RoCE v2 is that of the traffic
 * class (UCX: dc_mlx5_devx.c). */
static void uct_dcx_dct_fill_path(const uct_dcx_port_t *port,
                                  struct prm_dctc *dctc)
{
    dctc->tclass        = port->traffic_class;
    dctc->mtu           = port->mtu;
    dctc->port          = port->num;
    dctc->pkey_index    = htobe16(port->pkey_index);
    dctc->my_addr_index = port->gid_index;
    dctc->hop_limit     = port->hop_limit;
    if (uct_dcx_port_is_roce(port)) {
        dctc->prio_dscp = htobe16((port->sl << 8 & PRM_DCTC_ETH_PRIO) |
                                  port->traffic_class >> 2);
    }
}


/* Logs errors at @level. The target belongs to no counter set: the port's
 * hw_counters do not count it. */
static ucs_status_t
uct_dcx_dct_create_devx(uct_dcx_queues_t *queues,
                        const uct_dcx_iface_config_t *config,
                        int full_handshake, ucs_log_level_t level)
{
    const uct_dcx_device_t *dev = queues->port.dev;
    uct_dcx_rx_t *rx            = &queues->rx;
    struct prm_create_dct_in in = {.opcode = htobe16(PRM_CMD_CREATE_DCT)};
    struct prm_dctc *dctc       = &in.dctc;
    ucs_status_t status;

    dctc->offload = htobe32((rx->num_tags > 0) ? PRM_OFFLOAD_RNDV : 0);
    dctc->cqn     = htobe32(rx->cq.cqn);
    dctc->rights  = uct_dcx_dct_rights(&dev->atomic) |
                   htobe32(full_handshake ? PRM_DCTC_HANDSHAKE : 0);
    dctc->cs_res      = (config->rx.inl == 0) ? 0 : PRM_DCTC_CS_RES_64;
    dctc->min_rnr_nak = uct_dcx_config_rnr_code(config->rx.rnr_timeout);
    dctc->srqn = htobe32((rx->num_tags > 0) ? rx->xrq.obj.number : rx->srqn);
    dctc->pd   = htobe32(dev->pdn);
    dctc->dc_access_key = htobe64(rx->dc_key);
    uct_dcx_dct_fill_path(&queues->port, dctc);

    status = uct_dcx_devx_try_create(&rx->dct_obj, dev, "DCT", &in, sizeof(in),
                                     level);
    if (status != UCS_OK) {
        return status;
    }

    rx->dctn         = rx->dct_obj.number;
    rx->has_devx_dct = 1;
    return UCS_OK;
}


/* Creates the target by DEVX for full handshakes. */
static ucs_status_t
uct_dcx_dct_create_handshake(uct_dcx_queues_t *queues,
                             const uct_dcx_iface_config_t *config)
{
    int is_forced = config->rx.full_handshake == UCS_YES;
    ucs_status_t status;

    status = !queues->port.dev->answers ?
                 UCS_ERR_UNSUPPORTED :
                 uct_dcx_dct_create_devx(queues, config, 1,
                                         is_forced ? UCS_LOG_LEVEL_ERROR :
                                                     UCS_LOG_LEVEL_DEBUG);
    if ((status != UCS_OK) && is_forced) {
        ucs_error("%s=y: %s has no DEVX, or refuses full handshakes; set it to "
                  "try or n",
                  uct_dcx_config_variable("DCT_FULL_HANDSHAKE"),
                  queues->port.name);
        return UCS_ERR_UNSUPPORTED;
    }
    return status;
}


ucs_status_t uct_dcx_dct_init(uct_dcx_queues_t *queues,
                              const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    queues->rx.has_devx_dct = 0;
    if (config->rx.full_handshake != UCS_NO) {
        status = uct_dcx_dct_create_handshake(queues, config);
        if ((status == UCS_OK) || (config->rx.full_handshake == UCS_YES)) {
            return status;
        }
        ucs_debug("%s: without full handshakes", queues->port.name);
    }
    return (queues->rx.num_tags > 0) ?
               uct_dcx_dct_create_devx(queues, config, 0, UCS_LOG_LEVEL_ERROR) :
               uct_dcx_dct_create_verbs(queues, config);
}


void uct_dcx_dct_cleanup(uct_dcx_queues_t *queues)
{
    struct ibv_qp *dct = queues->rx.dct;

    if (queues->rx.has_devx_dct) {
        uct_dcx_devx_destroy(&queues->rx.dct_obj);
    } else if ((dct != NULL) && (ibv_destroy_qp(dct) != 0)) {
        ucs_warn("%s: failed to destroy the DCT: %m", queues->port.name);
    }
    queues->rx.dct = NULL;
}
