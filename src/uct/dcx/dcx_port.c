/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ports, addresses and paths; see dcx_port.h. Called when UCT lists devices,
 * opens an interface or creates an endpoint, never on the data path.
 */
#include "dcx_port.h"

#include <errno.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>


ucs_status_t
uct_dcx_port_query_devices(uct_md_h tl_md,
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
        return UCS_ERR_NO_MEMORY;
    }

    for (num = 1; num <= md->dev.attr.phys_port_cnt; ++num) {
        if ((ibv_query_port(md->dev.ctx, num, &attr) != 0) ||
            (attr.state != IBV_PORT_ACTIVE)) {
            ucs_debug("%s:%u is not active", uct_dcx_device_name(&md->dev),
                      num);
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


static ucs_status_t
uct_dcx_port_find(uct_dcx_port_t *port, const char *dev_name)
{
    const char *name = uct_dcx_device_name(port->dev);
    size_t length    = strlen(name);
    unsigned long num;
    char *end;

    num = strncmp(dev_name, name, length) || (dev_name[length] != ':') ?
          0 : strtoul(dev_name + length + 1, &end, 10);
    if ((num < 1) || (num > port->dev->attr.phys_port_cnt) || (*end != '\0')) {
        ucs_error("'%s' is no port of device %s, which has %s:1 to %s:%u",
                  dev_name, name, name, name, port->dev->attr.phys_port_cnt);
        return UCS_ERR_NO_DEVICE;
    }

    port->num = num;
    if (ibv_query_port(port->dev->ctx, port->num, &port->attr) != 0) {
        ucs_error("%s: ibv_query_port() failed: %m", dev_name);
        return UCS_ERR_IO_ERROR;
    }

    if (port->attr.state != IBV_PORT_ACTIVE) {
        ucs_error("%s is not active (%s): check cable and subnet manager",
                  dev_name, ibv_port_state_str(port->attr.state));
        return UCS_ERR_UNREACHABLE;
    }
    return UCS_OK;
}


/* The higher, the better to take by default; 0 is not to be taken. */
static unsigned uct_dcx_port_rate_gid(const struct ibv_gid_entry *entry)
{
    const struct in6_addr *addr = (const struct in6_addr*)entry->gid.raw;

    if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
        return IN6_IS_ADDR_V4MAPPED(addr) ? 3 : 2;
    }
    return (entry->gid_type == IBV_GID_TYPE_ROCE_V1) ? 1 : 0;
}


static ucs_status_t
uct_dcx_port_select_roce_gid(uct_dcx_port_t *port, struct ibv_gid_entry *best)
{
    unsigned rating, best_rating = 0;
    struct ibv_gid_entry entry;
    int index;

    for (index = 0; index < port->attr.gid_tbl_len; ++index) {
        if (ibv_query_gid_ex(port->dev->ctx, port->num, index, &entry, 0)) {
            continue; /* an empty entry */
        }

        rating = uct_dcx_port_rate_gid(&entry);
        if (rating > best_rating) {
            best_rating = rating;
            *best       = entry;
        }
    }

    if (best_rating == 0) {
        ucs_error("%s:%u has no GID: give its network interface an address",
                  uct_dcx_device_name(port->dev), port->num);
        return UCS_ERR_NO_DEVICE;
    }
    return UCS_OK;
}


static ucs_status_t
uct_dcx_port_init_gid(uct_dcx_port_t *port, unsigned long gid_index)
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
        if ((gid_index > 255) ||
            ibv_query_gid_ex(port->dev->ctx, port->num, gid_index, &entry, 0)) {
            ucs_error("UCX_DCX_GID_INDEX=%lu: %s:%u has no such GID; "
                      "'ibv_devinfo -v' lists them", gid_index,
                      uct_dcx_device_name(port->dev), port->num);
            return UCS_ERR_INVALID_PARAM;
        }
        entry.gid_index = gid_index;
    }

    port->gid       = entry.gid;
    port->gid_index = entry.gid_index;
    port->gid_type  = entry.gid_type;
    return UCS_OK;
}


/* Bit 15 is full membership; a key asked for matches whichever it has. */
static int uct_dcx_port_pkey_fits(uint16_t pkey, size_t wanted)
{
    if (wanted == UCS_HEXUNITS_AUTO) {
        return (pkey & 0x8000) != 0;
    }
    return (pkey != 0) && ((pkey & 0x7fff) == (wanted & 0x7fff));
}


static ucs_status_t
uct_dcx_port_init_pkey(uct_dcx_port_t *port, size_t wanted)
{
    __be16 pkey;
    int index;

    for (index = 0; index < port->attr.pkey_tbl_len; ++index) {
        if ((ibv_query_pkey(port->dev->ctx, port->num, index, &pkey) == 0) &&
            uct_dcx_port_pkey_fits(be16toh(pkey), wanted)) {
            port->pkey       = be16toh(pkey);
            port->pkey_index = index;
            return UCS_OK;
        }
    }

    if (wanted == UCS_HEXUNITS_AUTO) {
        ucs_error("%s:%u has no partition key with full membership: set "
                  "UCX_DCX_PKEY", uct_dcx_device_name(port->dev), port->num);
    } else {
        ucs_error("UCX_DCX_PKEY=0x%zx: %s:%u is not in that partition", wanted,
                  uct_dcx_device_name(port->dev), port->num);
    }
    return UCS_ERR_INVALID_PARAM;
}


static ucs_status_t uct_dcx_port_init_path(uct_dcx_port_t *port,
                                           const uct_dcx_iface_config_t *config)
{
    int roce_v2 = uct_dcx_port_is_roce(port) &&
                  (port->gid_type == IBV_GID_TYPE_ROCE_V2);

    if (uct_dcx_port_is_roce(port) && (config->path.sl > 7)) {
        ucs_error("UCX_DCX_SL=%u: on RoCE it is a priority, set it to 0-7",
                  config->path.sl);
        return UCS_ERR_INVALID_PARAM;
    }

    if (config->path.mtu > port->attr.active_mtu) {
        ucs_error("UCX_DCX_PATH_MTU=%u: port %s:%u has %u at most",
                  128u << config->path.mtu, uct_dcx_device_name(port->dev),
                  port->num, 128u << port->attr.active_mtu);
        return UCS_ERR_INVALID_PARAM;
    }

    port->mtu           = (config->path.mtu != 0) ?
                          (enum ibv_mtu)config->path.mtu :
                          port->attr.active_mtu;
    port->sl            = config->path.sl;
    port->hop_limit     = config->path.hop_limit;
    port->traffic_class = (config->path.traffic_class != UCS_ULUNITS_AUTO) ?
                          config->path.traffic_class : (roce_v2 ? 106 : 0);
    port->is_global     = uct_dcx_port_is_roce(port) ||
                          config->path.is_global ||
                          (port->attr.flags & IBV_QPF_GRH_REQUIRED);
    return UCS_OK;
}


ucs_status_t
uct_dcx_port_init(uct_dcx_port_t *port, uct_dcx_md_t *md, const char *dev_name,
                  const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    memset(port, 0, sizeof(*port));
    port->dev = &md->dev;
    status    = uct_dcx_port_find(port, dev_name);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_gid(port, config->path.gid_index);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init_pkey(port, config->path.pkey);
    if (status != UCS_OK) {
        return status;
    }

    return uct_dcx_port_init_path(port, config);
}


void uct_dcx_port_get_address(const uct_dcx_port_t *port,
                              uct_dcx_dev_addr_t *addr)
{
    addr->flags    = (uct_dcx_port_is_roce(port) ?
                      UCT_DCX_DEV_ADDR_ETHERNET : 0) |
                     (port->is_global ? UCT_DCX_DEV_ADDR_GLOBAL : 0);
    addr->gid_type = uct_dcx_port_is_roce(port) ? port->gid_type : 0;
    addr->lid      = htobe16(port->attr.lid);
    addr->pkey     = htobe16(port->pkey);
    memcpy(addr->gid, port->gid.raw, sizeof(addr->gid));
}


/* Both in one partition, and one of them a full member: limited members do not
 * hear each other (InfiniBand specification, "Partitioning"). */
static int uct_dcx_port_shares_partition(const uct_dcx_port_t *port,
                                         const uct_dcx_dev_addr_t *addr)
{
    uint16_t pkey = be16toh(addr->pkey);

    return !((port->pkey ^ pkey) & 0x7fff) && ((port->pkey | pkey) & 0x8000);
}


int uct_dcx_port_is_reachable(const uct_dcx_port_t *port,
                              const uct_dcx_dev_addr_t *addr)
{
    const size_t prefix_size = sizeof(port->gid.global.subnet_prefix);
    int is_roce              = !!(addr->flags & UCT_DCX_DEV_ADDR_ETHERNET);

    if ((is_roce != uct_dcx_port_is_roce(port)) ||
        !uct_dcx_port_shares_partition(port, addr)) {
        return 0;
    }

    if (is_roce) {
        return addr->gid_type == port->gid_type;
    }

    return !memcmp(addr->gid, port->gid.raw, prefix_size) ||
           (port->is_global && (addr->flags & UCT_DCX_DEV_ADDR_GLOBAL));
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


ucs_status_t
uct_dcx_port_make_av(const uct_dcx_port_t *port,
                     const uct_dcx_dev_addr_t *addr, uct_dcx_av_t *av,
                     uct_dcx_grh_t *grh)
{
    struct mlx5dv_ah dv_ah = {};
    struct mlx5dv_obj obj  = {.ah = {.out = &dv_ah}};
    struct ibv_ah_attr ah_attr;
    struct ibv_ah *ah;

    uct_dcx_port_fill_ah(port, &ah_attr);
    ah_attr.dlid       = be16toh(addr->lid);
    ah_attr.is_global |= !!(addr->flags & UCT_DCX_DEV_ADDR_GLOBAL);
    memcpy(ah_attr.grh.dgid.raw, addr->gid, sizeof(addr->gid));

    ah = ibv_create_ah(port->dev->pd, &ah_attr);
    if (ah == NULL) {
        ucs_error("%s:%u: no address handle to lid %u: %m",
                  uct_dcx_device_name(port->dev), port->num, ah_attr.dlid);
        return UCS_ERR_INVALID_ADDR;
    }

    obj.ah.in = ah;
    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) != 0) {
        ucs_error("%s:%u: mlx5dv_init_obj(ah) failed: %m",
                  uct_dcx_device_name(port->dev), port->num);
        ibv_destroy_ah(ah);
        return UCS_ERR_IO_ERROR;
    }

    /* the vector is all there is to an address handle of this device */
    memcpy(av, dv_ah.av, sizeof(*av));
    memcpy(grh, (const char*)dv_ah.av + sizeof(*av), sizeof(*grh));
    ibv_destroy_ah(ah);

    av->key     = 0;
    av->dqp_dct = (ah_attr.is_global || !port->dev->compact_av) ?
                  htobe32(MLX5_EXTENDED_UD_AV) : 0;
    return UCS_OK;
}


/* One entry for each value of ibv_port_attr.active_speed: signal rate of a
 * lane in bit/s less the line code, latency in seconds. The figures are those
 * that UCX's own transports announce (ib_iface.c), so that the choice between
 * them and dcx is one of like with like. */
typedef struct uct_dcx_port_speed {
    unsigned active_speed;
    double   rate;
    double   latency;
} uct_dcx_port_speed_t;

static const uct_dcx_port_speed_t uct_dcx_port_speeds[] = {
    {128, 100e9 * 64 / 66, 600e-9},      /* NDR */
    {64, 51.5625e9 * 64 / 66, 600e-9},   /* HDR */
    {32, 25.78125e9 * 64 / 66, 600e-9},  /* EDR */
    {16, 14.0625e9 * 64 / 66, 700e-9},   /* FDR */
    {8, 10.3125e9 * 64 / 66, 700e-9},    /* FDR10 */
    {4, 10e9 * 8 / 10, 1300e-9},         /* QDR */
    {2, 5e9 * 8 / 10, 2500e-9},          /* DDR */
    {0, 2.5e9 * 8 / 10, 5000e-9}         /* SDR, or not known */
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
    const double roce = 200e-9; /* more on Ethernet switches */
    const double dc   = 60e-9;  /* the connect packet */

    return uct_dcx_port_speed(port)->latency + dc +
           (uct_dcx_port_is_roce(port) ? roce : 0);
}


double uct_dcx_port_bandwidth(const uct_dcx_port_t *port)
{
    /* InfiniBand specification, PortInfo.LinkWidthActive */
    static const uint8_t widths[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12,
                                     [16] = 2};
    unsigned width   = port->attr.active_width;
    unsigned headers = port->is_global ? 100 : 60; /* of a packet, bytes */
    double mtu       = uct_dcx_port_mtu_bytes(port);
    unsigned lanes;

    lanes = ((width < ucs_static_array_size(widths)) && widths[width]) ?
            widths[width] : 1;
    return uct_dcx_port_speed(port)->rate / 8 * lanes * mtu / (mtu + headers);
}
