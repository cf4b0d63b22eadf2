/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The service level of a port, and the order that RDMA keeps on it; see
 * dcx_port.h. Called when an interface opens. UCX_DCX_AR_ENABLE chooses like
 * UCX_IB_AR_ENABLE (UCX, uct_ib_mlx5_select_sl()). Queues are created by verbs,
 * which leave dp_ordering at the device's own setting.
 */
#include "dcx_port.h"
#include "common/prm_cmd.h"

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>

#define UCT_DCX_PORT_SLS UCS_MASK(16)


/* Finds the service levels with adaptive routing, and those without; a level is
 * in neither set if it is unknown. */
static void uct_dcx_port_query_sls(const uct_dcx_port_t *port,
                                   uint16_t *adaptive_p, uint16_t *plain_p)
{
    struct prm_query_hca_vport_in in = {
        .opcode = htobe16(PRM_CMD_QUERY_HCA_VPORT_CONTEXT),
        .port   = htobe16(port->num),
    };
    struct prm_query_hca_vport_out out = {};

    *adaptive_p = *plain_p = 0;
    if (port->dev->has_sl_mask &&
        (mlx5dv_devx_general_cmd(port->dev->ctx, &in, sizeof(in), &out,
                                 sizeof(out)) == 0)) {
        *adaptive_p = be16toh(out.ooo_sl_mask);
        *plain_p    = UCT_DCX_PORT_SLS & ~*adaptive_p;
    }
}


/* Refuses a service level that is no priority. */
static ucs_status_t uct_dcx_port_check_priority(const char *option,
                                                unsigned long level)
{
    if ((level == UCS_ULUNITS_AUTO) || (level <= 7)) {
        return UCS_OK;
    }

    ucs_error("%s=%lu is out of range: on RoCE it is the priority, set it to "
              "0-7",
              uct_dcx_config_variable(option), level);
    return UCS_ERR_INVALID_PARAM;
}


/* Sets the priority on Ethernet, which does not affect routes: ignores
 * AR_ENABLE, as UCX does. */
static ucs_status_t
uct_dcx_port_init_priority(uct_dcx_port_t *port,
                           const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_dcx_port_check_priority("SL", config->path.sl);
    if (status == UCS_OK) {
        status = uct_dcx_port_check_priority("REVERSE_SL",
                                             config->path.reverse_sl);
    }
    if (status != UCS_OK) {
        return status;
    }

    port->sl = (config->path.sl == UCS_ULUNITS_AUTO) ? 0 : config->path.sl;
    port->is_ordered = !port->dev->may_reorder;
    return UCS_OK;
}


static ucs_status_t uct_dcx_port_choose_sl(uct_dcx_port_t *port,
                                           const uct_dcx_iface_config_t *config)
{
    uint16_t allowed = (config->path.sl == UCS_ULUNITS_AUTO) ?
                           UCT_DCX_PORT_SLS :
                           UCS_BIT(config->path.sl);
    int ar           = config->path.ar_enable;
    uint16_t adaptive, plain, chosen;

    uct_dcx_port_query_sls(port, &adaptive, &plain);
    chosen = (ar == UCS_AUTO) ? allowed :
                                (allowed & ((ar == UCS_NO) ? plain : adaptive));
    if ((chosen == 0) && (ar == UCS_TRY)) {
        chosen = allowed;
    }
    if (chosen == 0) {
        ucs_error("%s=%c matches no service level of mask 0x%x: port %s has "
                  "0x%x with adaptive routing and 0x%x without; set another "
                  "UCX_DCX_SL, or UCX_DCX_AR_ENABLE=auto",
                  uct_dcx_config_variable("AR_ENABLE"),
                  (ar == UCS_YES) ? 'y' : 'n', allowed, port->name, adaptive,
                  plain);
        return UCS_ERR_UNSUPPORTED;
    }

    port->sl         = ucs_ffs64(chosen);
    port->is_ordered = !port->dev->may_reorder && (plain & UCS_BIT(port->sl));
    return UCS_OK;
}


ucs_status_t uct_dcx_port_init_sl(uct_dcx_port_t *port,
                                  const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    if (config->path.ddp_enable == UCS_YES) {
        ucs_error("UCX_DCX_DDP_ENABLE=y: dcx does not support direct data "
                  "placement, set it to try or n");
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_dcx_port_is_roce(port) ?
                 uct_dcx_port_init_priority(port, config) :
                 uct_dcx_port_choose_sl(port, config);
    if (status != UCS_OK) {
        return status;
    }

    port->reverse_sl = (config->path.reverse_sl == UCS_ULUNITS_AUTO) ?
                           port->sl :
                           config->path.reverse_sl;
    ucs_debug("%s: SL %u, RDMA %s", port->name, port->sl,
              port->is_ordered ? "in order" : "in any order");
    return UCS_OK;
}
