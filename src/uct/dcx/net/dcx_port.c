/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports and their options; see dcx_port.h. Called when UCT lists devices or
 * opens an interface. Addresses are in dcx_port_addr.c.
 */
#include "dcx_port.h"
#include "common/prm_cmd.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>


int uct_dcx_port_in_subnet(const uct_dcx_md_t *md, unsigned num,
                           const struct ibv_port_attr *attr)
{
    union ibv_gid gid;

    return (md->subnet == 0) || (attr->link_layer == IBV_LINK_LAYER_ETHERNET) ||
           ((ibv_query_gid(md->dev.ctx, num, 0, &gid) == 0) &&
            (gid.global.subnet_prefix == md->subnet));
}


ucs_status_t uct_dcx_port_query_devices(uct_md_h tl_md,
                                        uct_tl_device_resource_t **devices_p,
                                        unsigned *num_devices_p)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    uct_tl_device_resource_t *devices, *device;
    struct ibv_port_attr attr;
    unsigned num, found = 0;

    if (!md->dev.has_dc) {
        return UCS_ERR_NO_DEVICE;
    }

    devices = ucs_calloc(ucs_max(md->dev.attr.phys_port_cnt, 1),
                         sizeof(*devices), "uct_dcx_devices");
    if (devices == NULL) {
        ucs_error("%s: out of memory for a list of ports",
                  uct_dcx_device_name(&md->dev));
        return UCS_ERR_NO_MEMORY;
    }

    for (num = 1; num <= md->dev.attr.phys_port_cnt; ++num) {
        if (ibv_query_port(md->dev.ctx, num, &attr) != 0) {
            ucs_log(uct_dcx_device_refusal_level(errno),
                    "%s:%u: ibv_query_port() failed: %m; continuing without it",
                    uct_dcx_device_name(&md->dev), num);
            continue;
        }

        if ((attr.state != IBV_PORT_ACTIVE) ||
            !uct_dcx_port_in_subnet(md, num, &attr)) {
            ucs_debug("%s:%u is not active, or in another subnet",
                      uct_dcx_device_name(&md->dev), num);
            continue;
        }

        device             = &devices[found++];
        device->type       = UCT_DEVICE_TYPE_NET;
        device->sys_device = md->dev.sys_device;
        ucs_snprintf_zero(device->name, sizeof(device->name), "%s:%u",
                          uct_dcx_device_name(&md->dev), num);
    }

    *devices_p     = devices;
    *num_devices_p = found;
    return UCS_OK;
}


static ucs_status_t uct_dcx_port_find(uct_dcx_port_t *port,
                                      const uct_dcx_md_t *md,
                                      const char *dev_name)
{
    const char *name = uct_dcx_device_name(port->dev);
    size_t length    = strlen(name);
    unsigned long num;
    char *end;

    num = strncmp(dev_name, name, length) || (dev_name[length] != ':') ?
              0 :
              strtoul(dev_name + length + 1, &end, 10);
    if ((num < 1) || (num > port->dev->attr.phys_port_cnt) || (*end != '\0')) {
        ucs_error("'%s' is not a port of device %s, which has %s:1 to %s:%u",
                  dev_name, name, name, name, port->dev->attr.phys_port_cnt);
        return UCS_ERR_NO_DEVICE;
    }

    port->num = num;
    ucs_strncpy_zero(port->name, dev_name, sizeof(port->name));
    if (ibv_query_port(port->dev->ctx, port->num, &port->attr) != 0) {
        ucs_error("%s: ibv_query_port() failed: %m", dev_name);
        return UCS_ERR_IO_ERROR;
    }

    if (port->attr.state != IBV_PORT_ACTIVE) {
        ucs_error("%s is not active (%s): check cable and subnet manager",
                  dev_name, ibv_port_state_str(port->attr.state));
        return UCS_ERR_UNREACHABLE;
    }

    if (!uct_dcx_port_in_subnet(md, num, &port->attr)) {
        ucs_error("%s is in another subnet than UCX_DCX_SUBNET_PREFIX",
                  dev_name);
        return UCS_ERR_UNREACHABLE;
    }
    return UCS_OK;
}


/* Returns non-zero if @pkey is in partition @wanted, with any membership; 0
 * means any partition with full membership (bit 15). */
static int uct_dcx_port_pkey_fits(uint16_t pkey, uint16_t wanted)
{
    return (wanted == 0) ? (pkey & 0x8000) : ((pkey & 0x7fff) == wanted);
}


static ucs_status_t uct_dcx_port_init_pkey(uct_dcx_port_t *port,
                                           const uct_dcx_iface_config_t *config)
{
    uint16_t wanted;
    __be16 pkey;
    int index, ret;

    uct_dcx_config_pkey(config->path.pkey, &wanted); /* was checked */

    for (index = 0; index < port->attr.pkey_tbl_len; ++index) {
        ret = ibv_query_pkey(port->dev->ctx, port->num, index, &pkey);
        if ((ret != 0) && (index == 0)) {
            ucs_error("%s: failed to read the partition keys: %m", port->name);
            return UCS_ERR_IO_ERROR;
        }

        if ((ret == 0) && uct_dcx_port_pkey_fits(be16toh(pkey), wanted)) {
            port->pkey       = be16toh(pkey);
            port->pkey_index = index;
            return UCS_OK;
        }
    }

    if (wanted == 0) {
        ucs_error("%s has no partition key with full membership: set "
                  "UCX_DCX_PKEY",
                  port->name);
    } else {
        ucs_error("%s=0x%x: %s is not in that partition",
                  uct_dcx_config_variable("PKEY"), wanted, port->name);
    }
    return UCS_ERR_INVALID_PARAM;
}


/* Queries the MAC of a neighbour, by creating an address handle: its vector is
 * the only result. */
static ucs_status_t uct_dcx_port_resolve(void *arg, const union ibv_gid *gid,
                                         uct_dcx_mac_t *mac)
{
    const uct_dcx_port_t *port = arg;
    struct mlx5dv_ah dv_ah     = {};
    struct mlx5dv_obj obj      = {.ah = {.out = &dv_ah}};
    ucs_status_t status        = UCS_OK;
    char name[INET6_ADDRSTRLEN];
    struct ibv_ah_attr ah_attr;
    struct ibv_ah *ah;

    uct_dcx_port_fill_ah(port, &ah_attr);
    ah_attr.grh.dgid = *gid;
    ah               = ibv_create_ah(port->dev->pd, &ah_attr);
    if (ah == NULL) {
        ucs_error("%s: failed to find a path to the peer with GID %s: %m",
                  port->name,
                  inet_ntop(AF_INET6, gid->raw, name, sizeof(name)));
        return UCS_ERR_UNREACHABLE;
    }

    obj.ah.in = ah;
    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) == 0) {
        memcpy(mac->bytes, dv_ah.av->rmac, sizeof(mac->bytes));
    } else {
        ucs_error("%s: mlx5dv_init_obj(ah) failed: %m", port->name);
        status = UCS_ERR_IO_ERROR;
    }

    ibv_destroy_ah(ah);
    return status;
}


/* Returns the pkey of peers that uct_dcx_port_make_plain_av() can handle. */
static uint32_t uct_dcx_port_plain_pkey(const uct_dcx_port_t *port)
{
    return (port->is_global || !port->dev->compact_av ||
            !(port->pkey & 0x8000) || (port->path_bits[0] != 0)) ?
               UINT32_MAX :
               htobe16(port->pkey);
}


ucs_status_t uct_dcx_port_init(uct_dcx_port_t *port, uct_dcx_md_t *md,
                               const char *dev_name,
                               const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    memset(port, 0, sizeof(*port));
    port->dev = &md->dev;
    status    = uct_dcx_port_find(port, md, dev_name);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_gid(port, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_pkey(port, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_path(port, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_sl(port, config);
    if (status != UCS_OK) {
        return status;
    }

    if (port->netdev != 0) {
        status = uct_dcx_routes_init(&port->routes,
                                     uct_dcx_subnet_is_ipv4(&port->gid));
        if (status != UCS_OK) {
            return status;
        }
    }

    port->plain_pkey = uct_dcx_port_plain_pkey(port);
    uct_dcx_neigh_init(&port->neigh, uct_dcx_port_resolve, port);
    return UCS_OK;
}


void uct_dcx_port_cleanup(uct_dcx_port_t *port)
{
    uct_dcx_neigh_cleanup(&port->neigh);
    uct_dcx_routes_cleanup(&port->routes);
}


void uct_dcx_port_fill_ah(const uct_dcx_port_t *port,
                          struct ibv_ah_attr *ah_attr)
{
    memset(ah_attr, 0, sizeof(*ah_attr));
    ah_attr->port_num          = port->num;
    ah_attr->sl                = port->sl;
    ah_attr->is_global         = port->is_global;
    ah_attr->grh.sgid_index    = port->gid_index;
    ah_attr->grh.hop_limit     = port->hop_limit;
    ah_attr->grh.traffic_class = port->traffic_class;
}


/* Figures for each value of ibv_port_attr.active_speed: signal rate of a lane
 * in bit/s, less the line code; latency in seconds. They are equal to those of
 * UCX's own transports (ib_iface.c), so that UCX compares dcx with them
 * fairly. */
typedef struct uct_dcx_port_speed {
    unsigned active_speed;
    double rate;
    double latency;
} uct_dcx_port_speed_t;

static const uct_dcx_port_speed_t uct_dcx_port_speeds[] = {
    {UCT_DCX_SPEED_NDR, 100e9 * 64 / 66, 600e-9},
    {64, 51.5625e9 * 64 / 66, 600e-9},  /* HDR */
    {32, 25.78125e9 * 64 / 66, 600e-9}, /* EDR */
    {16, 14.0625e9 * 64 / 66, 700e-9},  /* FDR */
    {8, 10.3125e9 * 64 / 66, 700e-9},   /* FDR10 */
    {4, 10e9 * 8 / 10, 1300e-9},        /* QDR */
    {2, 5e9 * 8 / 10, 2500e-9},         /* DDR */
    {0, 2.5e9 * 8 / 10, 5000e-9},       /* SDR, or unknown */
};


static const uct_dcx_port_speed_t *
uct_dcx_port_speed(const uct_dcx_port_t *port)
{
    const uct_dcx_port_speed_t *speed = uct_dcx_port_speeds;

    while (speed->active_speed > port->attr.active_speed) {
        ++speed;
    }
    return speed;
}


double uct_dcx_port_latency(const uct_dcx_port_t *port)
{
    const double roce = 200e-9; /* added by Ethernet switches */
    const double dc   = 60e-9;  /* the connect packet */

    return uct_dcx_port_speed(port)->latency + dc +
           (uct_dcx_port_is_roce(port) ? roce : 0);
}


double uct_dcx_port_bandwidth(const uct_dcx_port_t *port)
{
    /* InfiniBand specification, PortInfo.LinkWidthActive */
    static const uint8_t widths[] =
        {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    unsigned width   = port->attr.active_width;
    unsigned headers = port->is_global ? 100 : 60; /* bytes of a packet */
    double mtu       = uct_dcx_port_mtu_bytes(port);
    unsigned lanes;

    lanes = ((width < ucs_static_array_size(widths)) && widths[width]) ?
                widths[width] :
                1;
    return uct_dcx_port_speed(port)->rate / 8 * lanes * mtu / (mtu + headers);
}
