/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The options of a path: its MTU, traffic class, LIDs and UDP ports; see
 * dcx_port.h. Called when an interface opens. Options have the meaning that UCX
 * gives them (ib_iface.c).
 */
#include "dcx_port.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>


/* Traffic class of RoCE v2 without one of the port, as in UCX */
#define UCT_DCX_ROCE_TCLASS 106


/* Returns the traffic class that the administrator has set for all of the port,
 * as MLNX_OFED shows it; or the default. */
static uint8_t uct_dcx_port_roce_tclass(const uct_dcx_port_t *port)
{
    unsigned tclass;
    char text[64];

    return ((ucs_read_file_str(text, sizeof(text), 1,
                               "/sys/class/infiniband/%s/tc/%u/traffic_class",
                               uct_dcx_device_name(port->dev),
                               port->num) > 0) &&
            (sscanf(text, "Global tclass=%u", &tclass) == 1) &&
            (tclass <= UINT8_MAX)) ?
               tclass :
               UCT_DCX_ROCE_TCLASS;
}


/* Adds the values of a range, which may go down, to the bits of paths. Skips
 * values that the LMC does not allow. */
static void uct_dcx_port_add_bits(uct_dcx_port_t *port,
                                  const ucs_range_spec_t *range)
{
    unsigned max  = UCS_MASK(port->attr.lmc);
    unsigned low  = ucs_min(range->first, range->last);
    unsigned high = ucs_min(ucs_max(range->first, range->last), max);
    unsigned i, num = (low <= high) ? high - low + 1 : 0;

    for (i = 0; (i < num) && (port->num_bits < UCT_DCX_MAX_LIDS); ++i) {
        port->path_bits[port->num_bits++] = (range->first <= range->last) ?
                                                low + i :
                                                high - i;
    }
}


static ucs_status_t uct_dcx_port_init_bits(uct_dcx_port_t *port,
                                           const uct_dcx_iface_config_t *config)
{
    unsigned i;

    if (uct_dcx_port_is_roce(port)) {
        port->num_bits = 1;
        return UCS_OK;
    }

    for (i = 0; i < config->path.lid_path_bits.count; ++i) {
        uct_dcx_port_add_bits(port, &config->path.lid_path_bits.ranges[i]);
    }

    if (port->num_bits == 0) {
        ucs_error("%s has no value for port %s, whose LMC is %u: add one of "
                  "0-%u",
                  uct_dcx_config_variable("LID_PATH_BITS"), port->name,
                  port->attr.lmc, (unsigned)UCS_MASK(port->attr.lmc));
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


/* Returns the number of paths over different links; two on NDR, where a single
 * send queue does not fill the link. */
static unsigned uct_dcx_port_default_paths(const uct_dcx_port_t *port)
{
    if (uct_dcx_port_is_roce(port) && port->dev->is_lag) {
        return 2;
    }
    if (port->num_bits > 1) {
        return port->num_bits;
    }
    return (port->attr.active_speed >= UCT_DCX_SPEED_NDR) ? 2 : 1;
}


static uint8_t uct_dcx_port_tclass(const uct_dcx_port_t *port,
                                   unsigned long tclass)
{
    if (tclass != UCS_ULUNITS_AUTO) {
        return tclass;
    }
    return (uct_dcx_port_is_roce(port) &&
            (port->gid_type == IBV_GID_TYPE_ROCE_V2)) ?
               uct_dcx_port_roce_tclass(port) :
               0;
}


ucs_status_t uct_dcx_port_init_path(uct_dcx_port_t *port,
                                    const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    if (config->path.mtu > port->attr.active_mtu) {
        ucs_error("%s=%u exceeds the MTU of port %s: set it to at most %u",
                  uct_dcx_config_variable("PATH_MTU"), 128u << config->path.mtu,
                  port->name, 128u << port->attr.active_mtu);
        return UCS_ERR_INVALID_PARAM;
    }

    status = uct_dcx_port_init_bits(port, config);
    if (status != UCS_OK) {
        return status;
    }

    port->mtu       = (config->path.mtu != 0) ? (enum ibv_mtu)config->path.mtu :
                                                port->attr.active_mtu;
    port->hop_limit = config->path.hop_limit;
    port->traffic_class = uct_dcx_port_tclass(port, config->path.traffic_class);
    port->path_factor   = config->path.roce_path_factor;
    port->flid_route    = config->path.flid_route;
    port->is_global = uct_dcx_port_is_roce(port) || config->path.is_global ||
                      (port->attr.flags & IBV_QPF_GRH_REQUIRED) ||
                      uct_dcx_subnet_is_global(port->gid.raw);
    port->num_paths = (config->path.num_paths != UCS_ULUNITS_AUTO) ?
                          config->path.num_paths :
                          uct_dcx_port_default_paths(port);
    return UCS_OK;
}
