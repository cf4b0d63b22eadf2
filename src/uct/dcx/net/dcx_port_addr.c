/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses of ports: our own on the wire, checks of reachability, and the
 * conversion of a peer's address to an address vector; see dcx_port.h. Called
 * for each endpoint that is created, a hundred thousand in a big job, and for
 * each request for credits. So it makes no system call, except for the MAC of
 * an unknown RoCE neighbour.
 */
#include "dcx_port_addr.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <ucs/debug/log.h>
#include <ucs/time/time.h>


/* UDP source ports of RoCE v2: the dynamic ones of RFC 6335, as in libmlx5
 * (IB_ROCE_UDP_ENCAP_VALID_PORT_MIN) */
#define UCT_DCX_UDP_PORT_MIN  0xc000
#define UCT_DCX_UDP_PORT_MASK 0x3fff

/* Seconds between queries of a neighbour that does not answer. A query may take
 * the kernel a second (its address resolution, rdma_addr_find_l2_eth_by_grh()):
 * progress spends at most a tenth of the time on each port of the network. */
#define UCT_DCX_NEIGH_PATIENCE 10.0

/* GRH bit of the kernel's "struct mlx5_av"; reserved on Ethernet */
#define UCT_DCX_GRH_FLAG UCS_BIT(30)


/* Returns non-zero for a unicast LID (InfiniBand specification, "Local
 * identifiers"). */
static int uct_dcx_port_is_lid(unsigned lid)
{
    return (lid > 0) && (lid < 0xc000);
}


void uct_dcx_port_get_address(const uct_dcx_port_t *port,
                              uct_dcx_dev_addr_t *addr)
{
    addr->flags = (uct_dcx_port_is_roce(port) ? UCT_DCX_DEV_ADDR_ETHERNET : 0) |
                  (port->is_global ? UCT_DCX_DEV_ADDR_GLOBAL : 0) |
                  (port->attr.lmc << UCT_DCX_DEV_ADDR_LMC_SHIFT);
    addr->gid_type = uct_dcx_port_is_roce(port) ? port->gid_type : 0;
    addr->lid      = htobe16(port->attr.lid);
    addr->pkey     = htobe16(port->pkey);
    memcpy(addr->gid, port->gid.raw, sizeof(addr->gid));
}


/* Returns non-zero if both ports are in one partition, and at least one is a
 * full member: limited members cannot communicate (InfiniBand specification,
 * "Partitioning"). */
static int uct_dcx_port_shares_partition(const uct_dcx_port_t *port,
                                         const uct_dcx_dev_addr_t *addr)
{
    uint16_t pkey = be16toh(addr->pkey);

    return !((port->pkey ^ pkey) & 0x7fff) && ((port->pkey | pkey) & 0x8000);
}


/* Returns non-zero for the same version of RoCE; version 2 also needs the same
 * version of IP, and the same subnet or a route if the options require it. */
static int uct_dcx_port_roce_reaches(const uct_dcx_port_t *port,
                                     const uct_dcx_dev_addr_t *addr)
{
    union ibv_gid gid;

    if (addr->gid_type != port->gid_type) {
        return 0;
    }

    memcpy(gid.raw, addr->gid, sizeof(gid.raw));
    return (port->gid_type != IBV_GID_TYPE_ROCE_V2) ||
           (uct_dcx_subnet_is_same(&port->gid, &gid, port->prefix_len) &&
            ((port->netdev == 0) ||
             uct_dcx_routes_lead(&port->routes, &gid, port->netdev)));
}


/* Returns the fault of a port's address in words, or NULL. */
static const char *uct_dcx_port_addr_fault(const uct_dcx_dev_addr_t *addr)
{
    static const uint8_t none[sizeof(addr->gid)];
    unsigned lid = be16toh(addr->lid);
    int is_roce  = !!(addr->flags & UCT_DCX_DEV_ADDR_ETHERNET);
    int has_gid  = memcmp(addr->gid, none, sizeof(none)) != 0;

    if (addr->flags & UCS_MASK(UCT_DCX_DEV_ADDR_LMC_SHIFT) &
        ~(UCT_DCX_DEV_ADDR_ETHERNET | UCT_DCX_DEV_ADDR_GLOBAL)) {
        return "unknown flags";
    }

    if (!has_gid && (is_roce || (addr->flags & UCT_DCX_DEV_ADDR_GLOBAL))) {
        return "no GID";
    }

    if (is_roce) {
        return ((addr->gid_type == IBV_GID_TYPE_ROCE_V1) ||
                (addr->gid_type == IBV_GID_TYPE_ROCE_V2)) ?
                   NULL :
                   "an unknown version of RoCE";
    }

    if (!uct_dcx_port_is_lid(lid)) {
        return "an invalid LID";
    }
    return (addr->gid_type == IBV_GID_TYPE_IB) ? NULL :
                                                 "both InfiniBand and RoCE";
}


/* Returns non-zero if routers may forward packets between both ports by FLIDs,
 * which make their prefixes differ even within a subnet. */
static int uct_dcx_port_has_flids(const uct_dcx_port_t *port,
                                  const uct_dcx_dev_addr_t *addr)
{
    return port->flid_route && (uct_dcx_subnet_flid(port->gid.raw) != 0) &&
           (uct_dcx_subnet_flid(addr->gid) != 0);
}


/* Returns the FLID of a port in another subnet; 0: send by its LID. The end of
 * a prefix with an FLID is the number of the subnet. */
static uint16_t uct_dcx_port_flid(const uct_dcx_port_t *port,
                                  const uct_dcx_dev_addr_t *addr)
{
    return (uct_dcx_port_has_flids(port, addr) &&
            memcmp(&addr->gid[6], &port->gid.raw[6], 2)) ?
               uct_dcx_subnet_flid(addr->gid) :
               0;
}


int uct_dcx_port_is_reachable(const uct_dcx_port_t *port,
                              const uct_dcx_dev_addr_t *addr)
{
    const size_t prefix_size = sizeof(port->gid.global.subnet_prefix);
    int is_roce              = !!(addr->flags & UCT_DCX_DEV_ADDR_ETHERNET);

    if ((uct_dcx_port_addr_fault(addr) != NULL) ||
        (is_roce != uct_dcx_port_is_roce(port)) ||
        !uct_dcx_port_shares_partition(port, addr)) {
        return 0;
    }

    if (is_roce) {
        return uct_dcx_port_roce_reaches(port, addr);
    }

    return !memcmp(addr->gid, port->gid.raw, prefix_size) ||
           uct_dcx_port_has_flids(port, addr) ||
           (port->is_global && (addr->flags & UCT_DCX_DEV_ADDR_GLOBAL));
}


static void uct_dcx_port_make_grh(const uct_dcx_port_t *port,
                                  const uct_dcx_dev_addr_t *addr,
                                  uct_dcx_grh_t *grh)
{
    uint32_t flag = uct_dcx_port_is_roce(port) ? 0 : UCT_DCX_GRH_FLAG;

    grh->tclass     = port->traffic_class;
    grh->hop_limit  = port->hop_limit;
    grh->grh_gid_fl = htobe32(flag | ((uint32_t)port->gid_index << 20));
    memcpy(grh->rgid, addr->gid, sizeof(grh->rgid));
}


/* Returns the service level of the target's answers, or on RoCE their priority,
 * as the address vector has it, in bits 27 to 24 (UCX,
 * uct_dc_mlx5_set_dgram_seg()). */
static UCS_F_ALWAYS_INLINE __be32
uct_dcx_port_answer_sl(const uct_dcx_port_t *port)
{
    return htobe32((uint32_t)port->reverse_sl << 24);
}


/* Makes an address vector on InfiniBand, identical to that of libmlx5's
 * mlx5_create_ah(), which calls neither the kernel nor the device here. Adds
 * the service level of answers, which only DC has. */
static void uct_dcx_port_make_ib_av(const uct_dcx_port_t *port,
                                    const uct_dcx_route_t *route,
                                    uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    const uct_dcx_dev_addr_t *addr = &route->target->dev_addr;
    uint16_t flid                  = uct_dcx_port_flid(port, addr);
    int is_global = port->is_global || (addr->flags & UCT_DCX_DEV_ADDR_GLOBAL);
    unsigned peer_lmc = addr->flags >> UCT_DCX_DEV_ADDR_LMC_SHIFT;
    uint8_t bits      = port->path_bits[route->path_index % port->num_bits];
    uint16_t peer_bits;

    /* The low bits of the LIDs select the path to a port. An FLID stays as it
     * is: a router may know only that one. */
    peer_bits        = bits & UCS_MASK(peer_lmc);
    av->stat_rate_sl = port->sl;
    av->fl_mlid      = bits;
    av->rlid = (flid != 0) ? htobe16(flid) : addr->lid | htobe16(peer_bits);
    if (is_global) {
        uct_dcx_port_make_grh(port, addr, grh);
    }
    av->dqp_dct = uct_dcx_port_answer_sl(port);
    if (is_global || !port->dev->compact_av) {
        av->dqp_dct |= htobe32(MLX5_EXTENDED_UD_AV);
    }
}


/* Returns a 16-bit hash of the pair of targets, ours and the peer's. */
static uint16_t uct_dcx_port_flow(const uct_dcx_route_t *route)
{
    uint32_t dctn = uct_dcx_target_dctn(route->target->dctn);

    return ((dctn ^ (route->own_dctn << 8)) * 0x9e3779b1u) >> 16;
}


/* Makes an address vector on RoCE. libmlx5 chooses the UDP port at random; here
 * the paths of a flow always have different ones. */
static ucs_status_t uct_dcx_port_make_roce_av(uct_dcx_port_t *port,
                                              const uct_dcx_route_t *route,
                                              uct_dcx_av_t *av,
                                              uct_dcx_grh_t *grh)
{
    const uct_dcx_dev_addr_t *addr = &route->target->dev_addr;
    unsigned udp_port =
        UCT_DCX_UDP_PORT_MIN |
        ((uct_dcx_port_flow(route) + route->path_index * port->path_factor) &
         UCT_DCX_UDP_PORT_MASK);
    ucs_time_t patience = route->is_answer ?
                              ucs_time_from_sec(UCT_DCX_NEIGH_PATIENCE) :
                              0;
    union ibv_gid gid;
    ucs_status_t status;
    uct_dcx_mac_t mac;

    memcpy(gid.raw, addr->gid, sizeof(gid.raw));
    status = uct_dcx_neigh_get(&port->neigh, &gid, patience, &mac);
    if (status != UCS_OK) {
        return status;
    }

    av->dqp_dct = uct_dcx_port_answer_sl(port) | htobe32(MLX5_EXTENDED_UD_AV);
    av->stat_rate_sl = port->sl << 1;
    av->rlid = (port->gid_type == IBV_GID_TYPE_ROCE_V2) ? htobe16(udp_port) : 0;
    uct_dcx_port_make_grh(port, addr, grh);
    memcpy(grh->rmac, mac.bytes, sizeof(grh->rmac));
    return UCS_OK;
}


static ucs_status_t uct_dcx_port_check_route(const uct_dcx_port_t *port,
                                             const uct_dcx_route_t *route)
{
    const uct_dcx_dev_addr_t *addr = &route->target->dev_addr;
    const char *fault              = uct_dcx_port_addr_fault(addr);
    int is_roce                    = uct_dcx_port_is_roce(port);

    if (is_roce != !!(addr->flags & UCT_DCX_DEV_ADDR_ETHERNET)) {
        ucs_error("%s: the peer's port is %s, this one is %s", port->name,
                  is_roce ? "InfiniBand" : "Ethernet",
                  is_roce ? "Ethernet" : "InfiniBand");
        return UCS_ERR_INVALID_ADDR;
    }

    if (fault != NULL) {
        ucs_error("%s: the peer's device address is damaged: it has %s",
                  port->name, fault);
        return UCS_ERR_INVALID_ADDR;
    }

    if (route->path_index >= port->num_paths) {
        ucs_error("%s: path index %u is out of range: UCX_DCX_NUM_PATHS is %u",
                  port->name, route->path_index, port->num_paths);
        return UCS_ERR_INVALID_PARAM;
    }

    if (!uct_dcx_port_shares_partition(port, addr)) {
        ucs_error("%s: the peer's port is in partition 0x%x, this one in 0x%x",
                  port->name, be16toh(addr->pkey), port->pkey);
        return UCS_ERR_UNREACHABLE;
    }
    return UCS_OK;
}


/* Makes the address vector of the first path to a typical peer: on InfiniBand,
 * without route header, in our partition, where we are a full member. Leaves
 * number and key of the DCT unset. Returns 0 for other peers. */
static UCS_F_ALWAYS_INLINE int
uct_dcx_port_make_plain_av(const uct_dcx_port_t *port,
                           const uct_dcx_dev_addr_t *addr, uct_dcx_av_t *av)
{
    uint8_t flags = addr->flags & UCS_MASK(UCT_DCX_DEV_ADDR_LMC_SHIFT);

    if (ucs_unlikely((addr->pkey != port->plain_pkey) ||
                     ((flags | addr->gid_type) != 0) ||
                     !uct_dcx_port_is_lid(be16toh(addr->lid)))) {
        return 0;
    }

    av->dqp_dct      = uct_dcx_port_answer_sl(port);
    av->stat_rate_sl = port->sl;
    av->fl_mlid      = 0;
    av->rlid         = addr->lid;
    return 1;
}


/* Makes the address vector to any peer, by any path. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_port_make_any_av(uct_dcx_port_t *port, const uct_dcx_route_t *route,
                         uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    ucs_status_t status;

    status = uct_dcx_port_check_route(port, route);
    if (status != UCS_OK) {
        return status;
    }

    memset(av, 0, sizeof(*av));
    memset(grh, 0, sizeof(*grh));
    if (uct_dcx_port_is_roce(port)) {
        return uct_dcx_port_make_roce_av(port, route, av, grh);
    }
    uct_dcx_port_make_ib_av(port, route, av, grh);
    return UCS_OK;
}


ucs_status_t uct_dcx_port_make_av(uct_dcx_port_t *port,
                                  const uct_dcx_route_t *route,
                                  uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    const uct_dcx_target_t *target = route->target;
    ucs_status_t status;

    if (ucs_unlikely(route->path_index != 0) ||
        !uct_dcx_port_make_plain_av(port, &target->dev_addr, av)) {
        status = uct_dcx_port_make_any_av(port, route, av, grh);
        if (status != UCS_OK) {
            return status;
        }
    }

    av->key = target->dc_key;
    av->dqp_dct |= htobe32(uct_dcx_target_dctn(target->dctn));
    return UCS_OK;
}


/* Fills a path like mlx5_set_path() of the kernel's mlx5_ib. */
static void uct_dcx_port_fill_path(const uct_dcx_port_t *port,
                                   const uct_dcx_av_t *av,
                                   const uct_dcx_grh_t *grh,
                                   struct prm_ads *ads)
{
    ads->port       = port->num;
    ads->pkey_index = htobe16(port->pkey_index);
    if (uct_dcx_port_is_roce(port)) {
        ads->udp_sport = av->rlid;
        ads->dscp      = port->traffic_class >> 2;
        ads->sl        = port->sl << PRM_ADS_ETH_PRIO;
        memcpy(ads->rmac, grh->rmac, sizeof(ads->rmac));
    } else {
        ads->rlid     = htobe16(port->attr.lid); /* path bits are 0 */
        ads->grh_mlid = port->is_global ? PRM_ADS_GRH : 0;
        ads->sl       = port->sl;
    }

    if (uct_dcx_port_is_roce(port) || port->is_global) {
        ads->src_addr_index = port->gid_index;
        ads->hop_limit      = port->hop_limit;
        ads->tclass = uct_dcx_devx_bits(PRM_ADS_TCLASS, port->traffic_class);
        memcpy(ads->rgid, grh->rgid, sizeof(ads->rgid));
    }
}


ucs_status_t uct_dcx_port_own_path(uct_dcx_port_t *port,
                                   uct_dcx_devx_path_t *path)
{
    uct_dcx_target_t target     = {};
    const uct_dcx_route_t route = {.target = &target};
    uct_dcx_grh_t grh           = {};
    ucs_status_t status;
    uct_dcx_av_t av;

    uct_dcx_port_get_address(port, &target.dev_addr);
    status = uct_dcx_port_make_av(port, &route, &av, &grh);
    if (status != UCS_OK) {
        return status;
    }

    memset(path, 0, sizeof(*path));
    path->mtu = port->mtu;
    uct_dcx_port_fill_path(port, &av, &grh, &path->ads);
    return UCS_OK;
}


int uct_dcx_port_is_av_to(const uct_dcx_av_t *av, const uct_dcx_grh_t *grh,
                          const uct_dcx_dev_addr_t *addr)
{
    int is_gid = (grh != NULL) &&
                 !memcmp(grh->rgid, addr->gid, sizeof(addr->gid));
    uint16_t path_bits;

    if (addr->flags & UCT_DCX_DEV_ADDR_ETHERNET) {
        return is_gid;
    }

    if (is_gid && (be16toh(av->rlid) == uct_dcx_subnet_flid(addr->gid))) {
        return 1;
    }

    path_bits = be16toh(av->rlid) - be16toh(addr->lid);
    return (path_bits < UCS_BIT(addr->flags >> UCT_DCX_DEV_ADDR_LMC_SHIFT)) &&
           (is_gid || (grh == NULL) ||
            !(grh->grh_gid_fl & htobe32(UCT_DCX_GRH_FLAG)));
}


void uct_dcx_port_forget(uct_dcx_port_t *port, const uct_dcx_grh_t *grh)
{
    union ibv_gid gid;

    if (uct_dcx_port_is_roce(port)) {
        memcpy(gid.raw, grh->rgid, sizeof(gid.raw));
        uct_dcx_neigh_forget(&port->neigh, &gid);
    }
}
