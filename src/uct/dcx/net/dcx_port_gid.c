/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The GID of a port, and its subnet; see dcx_port.h. Called when an interface
 * opens.
 */
#include "dcx_port.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>


/* Index of the GID with an FLID on InfiniBand */
#define UCT_DCX_FLID_GID 1


/* Returns the rank of a GID: the highest is the default, 0 is unusable. The
 * order is UCX's (uct_ib_device_select_gid()). */
static unsigned uct_dcx_port_rate_gid(const struct ibv_gid_entry *entry)
{
    const struct in6_addr *addr = (const void *)entry->gid.raw;
    unsigned rank               = uct_dcx_subnet_is_ipv4(&entry->gid) ? 3 :
                                  IN6_IS_ADDR_LINKLOCAL(addr)         ? 1 :
                                                                        2;

    return (entry->gid_type == IBV_GID_TYPE_ROCE_V2) ? rank + 3 :
           (entry->gid_type == IBV_GID_TYPE_ROCE_V1) ? rank :
                                                       0;
}


/* A subnet of ROCE_SUBNETS */
typedef struct uct_dcx_port_subnet {
    union ibv_gid gid;
    unsigned bits;
} uct_dcx_port_subnet_t;


/* Reads all of ROCE_SUBNETS into @subnets. Logs errors. */
static ucs_status_t
uct_dcx_port_parse_subnets(const ucs_config_allow_list_t *list,
                           uct_dcx_port_subnet_t *subnets)
{
    unsigned i;

    for (i = 0; i < list->array.count; ++i) {
        if (!uct_dcx_subnet_parse(list->array.names[i], &subnets[i].gid,
                                  &subnets[i].bits)) {
            ucs_error("%s: '%s' is not a subnet: set it to addresses such as "
                      "10.1.0.0/16",
                      uct_dcx_config_variable("ROCE_SUBNETS"),
                      list->array.names[i]);
            return UCS_ERR_INVALID_PARAM;
        }
    }
    return UCS_OK;
}


/* Returns 1 if ROCE_SUBNETS allows a GID. */
static int uct_dcx_port_allows_gid(const ucs_config_allow_list_t *list,
                                   const uct_dcx_port_subnet_t *subnets,
                                   const union ibv_gid *gid)
{
    unsigned i = 0;

    if (list->mode == UCS_CONFIG_ALLOW_LIST_ALLOW_ALL) {
        return 1;
    }

    while ((i < list->array.count) &&
           !uct_dcx_subnet_is_same(gid, &subnets[i].gid, subnets[i].bits)) {
        ++i;
    }
    return (i < list->array.count) ==
           (list->mode == UCS_CONFIG_ALLOW_LIST_ALLOW);
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


/* Finds the best GID that ROCE_SUBNETS allows. Stores its rank in @best_rating,
 * 0 if there is none. */
static ucs_status_t
uct_dcx_port_search_gid(const uct_dcx_port_t *port,
                        const ucs_config_allow_list_t *list,
                        const uct_dcx_port_subnet_t *subnets,
                        struct ibv_gid_entry *best, unsigned *best_rating)
{
    struct ibv_gid_entry entry;
    ucs_status_t status;
    unsigned rating;
    int index;

    *best_rating = 0;
    for (index = 0; index < port->attr.gid_tbl_len; ++index) {
        status = uct_dcx_port_query_gid(port, index, &entry);
        if (status == UCS_ERR_NO_ELEM) {
            continue;
        }
        if (status != UCS_OK) {
            return status;
        }

        rating = uct_dcx_port_rate_gid(&entry);
        if ((rating > *best_rating) &&
            uct_dcx_port_allows_gid(list, subnets, &entry.gid)) {
            *best_rating = rating;
            *best        = entry;
        }
    }
    return UCS_OK;
}


static ucs_status_t
uct_dcx_port_select_roce_gid(uct_dcx_port_t *port,
                             const ucs_config_allow_list_t *list,
                             struct ibv_gid_entry *best)
{
    unsigned best_rating           = 0;
    uct_dcx_port_subnet_t *subnets = NULL;
    ucs_status_t status            = UCS_OK;

    if (list->mode != UCS_CONFIG_ALLOW_LIST_ALLOW_ALL) {
        subnets = ucs_calloc(list->array.count + 1, sizeof(*subnets),
                             "uct_dcx_port_subnets");
        status  = (subnets == NULL) ? UCS_ERR_NO_MEMORY :
                                      uct_dcx_port_parse_subnets(list, subnets);
    }
    if (status == UCS_OK) {
        status = uct_dcx_port_search_gid(port, list, subnets, best,
                                         &best_rating);
    }
    ucs_free(subnets);
    if (status != UCS_OK) {
        return status;
    }

    if (best_rating != 0) {
        return UCS_OK;
    }

    if (list->mode != UCS_CONFIG_ALLOW_LIST_ALLOW_ALL) {
        ucs_error("%s allows no GID of port %s; 'ibv_devinfo -v' lists them",
                  uct_dcx_config_variable("ROCE_SUBNETS"), port->name);
        return UCS_ERR_INVALID_PARAM;
    }

    ucs_error("%s has no GID: give its network interface an address",
              port->name);
    return UCS_ERR_NO_DEVICE;
}


/* Returns the index of the GID that routers know, which has an FLID and the
 * identifier that an OpenIB subnet manager gives (UCX,
 * uct_ib_iface_gid_index()); else 0. */
static unsigned uct_dcx_port_ib_gid_index(const uct_dcx_port_t *port,
                                          const uct_dcx_iface_config_t *config)
{
    static const uint8_t oui[] = {0x00, 0x14, 0x05};
    union ibv_gid gid;

    return config->path.flid_route &&
                   (port->attr.gid_tbl_len > UCT_DCX_FLID_GID) &&
                   (ibv_query_gid(port->dev->ctx, port->num, UCT_DCX_FLID_GID,
                                  &gid) == 0) &&
                   (uct_dcx_subnet_flid(gid.raw) != 0) &&
                   !memcmp(&gid.raw[8], oui, sizeof(oui)) ?
               UCT_DCX_FLID_GID :
               0;
}


static ucs_status_t uct_dcx_port_find_gid(uct_dcx_port_t *port,
                                          const uct_dcx_iface_config_t *config)
{
    const ucs_config_allow_list_t *subnets = &config->path.roce_subnets;
    unsigned long gid_index                = config->path.gid_index;
    struct ibv_gid_entry entry             = {};
    char variable[64];
    ucs_status_t status;

    if (uct_dcx_port_is_roce(port) && (gid_index != UCS_ULUNITS_AUTO) &&
        (subnets->mode != UCS_CONFIG_ALLOW_LIST_ALLOW_ALL)) {
        /* the name is overwritten by that of another option */
        ucs_strncpy_zero(variable, uct_dcx_config_variable("GID_INDEX"),
                         sizeof(variable));
        ucs_error("%s=%lu and %s both choose a GID: set UCX_DCX_GID_INDEX=auto "
                  "or UCX_DCX_ROCE_SUBNETS=all",
                  variable, gid_index, uct_dcx_config_variable("ROCE_SUBNETS"));
        return UCS_ERR_INVALID_PARAM;
    }

    if ((gid_index == UCS_ULUNITS_AUTO) && uct_dcx_port_is_roce(port)) {
        status = uct_dcx_port_select_roce_gid(port, subnets, &entry);
        if (status != UCS_OK) {
            return status;
        }
    } else {
        if (gid_index == UCS_ULUNITS_AUTO) {
            gid_index = uct_dcx_port_ib_gid_index(port, config);
        }
        status = uct_dcx_port_query_gid(port, gid_index, &entry);
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


/* Finds the network interface with the port's address, for
 * ROCE_SUBNET_PREFIX_LEN=auto, or if @is_route for the mode "route". Logs
 * errors. */
static ucs_status_t uct_dcx_port_find_netdev(const uct_dcx_port_t *port,
                                             int is_route, unsigned *bits,
                                             unsigned *netdev)
{
    if (uct_dcx_subnet_find(&port->gid, bits, netdev)) {
        return UCS_OK;
    }

    ucs_error("%s=%s: no network interface has the address of %s, GID %u: set "
              "UCX_DCX_%s",
              uct_dcx_config_variable(is_route ? "ROCE_REACHABILITY_MODE" :
                                                 "ROCE_SUBNET_PREFIX_LEN"),
              is_route ? "route" : "auto", port->name, port->gid_index,
              is_route ? "ROCE_REACHABILITY_MODE=all" :
                         "ROCE_SUBNET_PREFIX_LEN");
    return UCS_ERR_INVALID_PARAM;
}


/* Sets the prefix that reachable peers have to share, see the options. */
static ucs_status_t
uct_dcx_port_init_subnet(uct_dcx_port_t *port,
                         const uct_dcx_iface_config_t *config)
{
    unsigned addr_bits = uct_dcx_subnet_addr_bits(&port->gid);
    unsigned long bits = config->path.roce_prefix_len;
    unsigned found, netdev;
    ucs_status_t status;

    if (bits == UCS_ULUNITS_INF) {
        port->prefix_len = addr_bits;
        return UCS_OK;
    }

    if (bits == UCS_ULUNITS_AUTO) {
        status = uct_dcx_port_find_netdev(port, 0, &found, &netdev);
        if (status != UCS_OK) {
            return status;
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
    unsigned bits;

    status = uct_dcx_port_find_gid(port, config);
    if ((status != UCS_OK) || (port->gid_type != IBV_GID_TYPE_ROCE_V2)) {
        return status;
    }

    if (config->path.roce_local_subnet &&
        (config->path.roce_reach != UCT_DCX_REACH_LOCAL_SUBNET)) {
        ucs_info("%s=y limits port %s to peers of its subnet, as if "
                 "ROCE_REACHABILITY_MODE were local_subnet",
                 uct_dcx_config_variable("ROCE_LOCAL_SUBNET"), port->name);
    }

    if (config->path.roce_local_subnet ||
        (config->path.roce_reach == UCT_DCX_REACH_LOCAL_SUBNET)) {
        return uct_dcx_port_init_subnet(port, config);
    }

    return (config->path.roce_reach == UCT_DCX_REACH_ROUTE) ?
               uct_dcx_port_find_netdev(port, 1, &bits, &port->netdev) :
               UCS_OK;
}
