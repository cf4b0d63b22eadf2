/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rows of a port; see info_port.h.
 */
#include "info_port.h"
#include "info_log.h"

#include <arpa/inet.h>

static void info_port_state(struct info_part *part,
                            const struct ibv_port_attr *attr)
{
    struct info_row *row;
    bool is_roce = attr->link_layer == IBV_LINK_LAYER_ETHERNET;

    row = info_part_add(part, "link layer", NULL);
    info_row_found(row, "%s", is_roce ? "Ethernet (RoCE)" : "InfiniBand");

    row = info_part_add(part, "state", NULL);
    info_row_found(row, "%s", ibv_port_state_str(attr->state));
    info_row_needs(row, "%s", ibv_port_state_str(IBV_PORT_ACTIVE));
    if (attr->state == IBV_PORT_INIT) {
        info_row_bad(part, row, "the port waits for a subnet manager");
        info_part_fix(part, "ask the administrator of the fabric for a subnet "
                            "manager, on a switch or as opensm on one node");
    } else if (attr->state != IBV_PORT_ACTIVE) {
        info_row_bad(part, row, "the port is down: %s",
                     is_roce ? "cable, or its network interface" :
                               "cable, or the switch");
    }

    row = info_part_add(part, "message, bytes", NULL);
    info_row_found(row, "%u", attr->max_msg_sz);
    if (!is_roce) {
        row = info_part_add(part, "LID", NULL);
        info_row_found(row, "%u", attr->lid);
    }
}

static void info_port_path(struct info_part *part, const uct_dcx_port_t *port)
{
    char gid[INET6_ADDRSTRLEN];
    struct info_row *row;

    row = info_part_add(part, "GID", "UCX_DCX_GID_INDEX");
    inet_ntop(AF_INET6, port->gid.raw, gid, sizeof(gid));
    info_row_found(row, "%s", gid);
    info_row_needs(row, "index %u%s", port->gid_index,
                   !uct_dcx_port_is_roce(port)              ? "" :
                   (port->gid_type == IBV_GID_TYPE_ROCE_V2) ? ", RoCE v2" :
                                                              ", RoCE v1");

    row = info_part_add(part, "P_Key", "UCX_DCX_PKEY");
    info_row_found(row, "0x%04x", port->pkey);
    info_row_needs(row, "index %u, %s member", port->pkey_index,
                   (port->pkey & 0x8000) ? "full" : "limited");

    row = info_part_add(part, "order of puts", "UCX_DCX_AR_ENABLE");
    info_row_found(row, "%s, SL %u", port->is_ordered ? "kept" : "may be lost",
                   port->sl);

    row = info_part_add(part, "MTU", "UCX_DCX_PATH_MTU");
    info_row_found(row, "%u", 128u << port->attr.active_mtu);
    info_row_needs(row, "%u", uct_dcx_port_mtu_bytes(port));

    row = info_part_add(part, "paths", "UCX_DCX_NUM_PATHS");
    info_row_found(row, "%u", port->num_paths);

    row = info_part_add(part, "bandwidth", NULL);
    info_row_found(row, "%.0f MB/s", uct_dcx_port_bandwidth(port) / 1e6);

    row = info_part_add(part, "GRH", "UCX_DCX_IS_GLOBAL");
    info_row_found(row, "%s",
                   (port->attr.flags & IBV_QPF_GRH_REQUIRED) ? "required" :
                                                               "not required");
    info_row_needs(row, "%s", port->is_global ? "sent" : "not sent");
}

/* Resolves the port's options as an interface does. */
static void info_port_resolve(struct info_part *part, uct_dcx_md_t *md,
                              const uct_dcx_iface_config_t *config)
{
    uct_dcx_port_t port;

    info_log_take();
    if (uct_dcx_port_init(&port, md, part->name, config) == UCS_OK) {
        info_port_path(part, &port);
        uct_dcx_port_cleanup(&port);
    } else {
        info_row_bad(part, info_part_add(part, "path", NULL), "%s",
                     info_log_take());
    }
}

void info_port_report(struct info_report *report, uct_dcx_md_t *md,
                      const uct_dcx_iface_config_t *config, unsigned num)
{
    struct ibv_port_attr attr;
    struct info_part *part;
    char name[64];

    snprintf(name, sizeof(name), "%s:%u", uct_dcx_device_name(&md->dev), num);
    part = info_report_add(report, true, name);
    if (ibv_query_port(md->dev.ctx, num, &attr) != 0) {
        info_row_bad(part, info_part_add(part, "state", NULL),
                     "the port cannot be queried: %m");
        return;
    }

    info_port_state(part, &attr);
    if (attr.state != IBV_PORT_ACTIVE) {
        return;
    }
    if (!uct_dcx_port_in_subnet(md, num, &attr)) {
        info_row_bad(part,
                     info_part_add(part, "subnet", "UCX_DCX_SUBNET_PREFIX"),
                     "the port is of another subnet than %s says",
                     uct_dcx_site_variable(uct_dcx_component.md_config.table,
                                           "SUBNET_PREFIX"));
    } else {
        info_port_resolve(part, md, config);
    }
}
