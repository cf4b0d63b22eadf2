/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The GID of a port, and its subnet; see dcx_port.h. Called when an interface
 * opens.
 */
#include "dcx_port.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>


/* Returns the rank of a GID: the highest is the default, 0 is unusable. */
static unsigned uct_dcx_port_rate_gid(const struct ibv_gid_entry *entry)
{
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
        return uct_dcx_subnet_is_ipv4(&entry->gid) ? 3 : 2;
    }
    return (entry->gid_type == IBV_GID_TYPE_ROCE_V1) ? 1 : 0;
}


/* Returns UCS_ERR_NO_ELEM for an empty entry; another error is logged. */
static ucs_status_t uct_dcx_port_query_gid(const uct_dcx_port_t *port,
                                           unsigned long index,
                                           struct ibv_gid_entry *entry)
{
    int ret = ibv_query_gid_ex(port->dev->ctx, port->num, index, entry, 0);

    if ((ret != 0) &&
        (uct_dcx_device_refusal_level(ret) != UCS_LOG_LEVEL_DEBUG)) {
        ucs_error("%s: failed to query GID %lu: %s", port->name, index,
                  strerror(ret));
        return UCS_ERR_IO_ERROR;
    }
    return (ret == 0) ? UCS_OK : UCS_ERR_NO_ELEM;
}


static ucs_status_t uct_dcx_port_select_roce_gid(uct_dcx_port_t *port,
                                                 struct ibv_gid_entry *best)
{
    unsigned rating, best_rating = 0;
    struct ibv_gid_entry entry;
    ucs_status_t status;
    int index;

    for (index = 0; index < port->attr.gid_tbl_len; ++index) {
        status = uct_dcx_port_query_gid(port, index, &entry);
        if (status == UCS_ERR_NO_ELEM) {
            continue;
        }
        if (status != UCS_OK) {
            return status;
        }

        rating = uct_dcx_port_rate_gid(&entry);
        if (rating > best_rating) {
            best_rating = rating;
            *best       = entry;
        }
    }

    if (best_rating == 0) {
        ucs_error("%s has no GID: give its network interface an address",
                  port->name);
        return UCS_ERR_NO_DEVICE;
    }
    return UCS_OK;
}


static ucs_status_t uct_dcx_port_find_gid(uct_dcx_port_t *port,
                                          unsigned long gid_index)
{
    struct ibv_gid_entry entry = {};
    ucs_status_t status;

    if ((gid_index == UCS_ULUNITS_AUTO) && uct_dcx_port_is_roce(port)) {
        status = uct_dcx_port_select_roce_gid(port, &entry);
        if (status != UCS_OK) {
            return status;
        }
    } else {
        gid_index = (gid_index == UCS_ULUNITS_AUTO) ? 0 : gid_index;
        status    = uct_dcx_port_query_gid(port, gid_index, &entry);
        if (status == UCS_ERR_NO_ELEM) {
            ucs_error("%s=%lu: %s has no such GID; 'ibv_devinfo -v' lists "
                      "them",
                      uct_dcx_config_variable("GID_INDEX"), gid_index,
                      port->name);
            return UCS_ERR_INVALID_PARAM;
        }
        if (status != UCS_OK) {
            return status;
        }
        entry.gid_index = gid_index;
    }

    port->gid       = entry.gid;
    port->gid_index = entry.gid_index;
    port->gid_type  = entry.gid_type;
    return UCS_OK;
}


/* Sets the prefix that reachable peers have to share, see the options. */
static ucs_status_t
uct_dcx_port_init_subnet(uct_dcx_port_t *port,
                         const uct_dcx_iface_config_t *config)
{
    unsigned addr_bits = uct_dcx_subnet_addr_bits(&port->gid);
    unsigned long bits = config->path.roce_prefix_len;
    int found;

    if (bits == UCS_ULUNITS_INF) {
        port->prefix_len = addr_bits;
        return UCS_OK;
    }

    if (bits == UCS_ULUNITS_AUTO) {
        found = uct_dcx_subnet_prefix_len(&port->gid);
        if (found < 0) {
            ucs_error("%s=y: no network interface has the address of %s, GID "
                      "%u: set UCX_DCX_ROCE_SUBNET_PREFIX_LEN",
                      uct_dcx_config_variable("ROCE_LOCAL_SUBNET"), port->name,
                      port->gid_index);
            return UCS_ERR_INVALID_PARAM;
        }
        bits = found;
    }

    if (bits > addr_bits) {
        ucs_error("%s=%lu is out of range: the address of %s, GID %u, has %u "
                  "bits",
                  uct_dcx_config_variable("ROCE_SUBNET_PREFIX_LEN"), bits,
                  port->name, port->gid_index, addr_bits);
        return UCS_ERR_INVALID_PARAM;
    }
    port->prefix_len = bits;
    return UCS_OK;
}


ucs_status_t uct_dcx_port_init_gid(uct_dcx_port_t *port,
                                   const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_dcx_port_find_gid(port, config->path.gid_index);
    if ((status != UCS_OK) || (port->gid_type != IBV_GID_TYPE_ROCE_V2) ||
        !config->path.roce_local_subnet) {
        return status;
    }
    return uct_dcx_port_init_subnet(port, config);
}
