/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A port of the device and the way through the network: which addresses it
 * has, how a peer's address becomes an address vector. Resolved when the
 * interface opens and read-only after that.
 */
#ifndef UCT_DCX_PORT_H
#define UCT_DCX_PORT_H

#include "dcx_config.h"
#include "dcx_md.h"
#include "dcx_neigh.h"
#include "dcx_wqe.h"


typedef struct uct_dcx_port {
    const uct_dcx_device_t *dev;
    uint8_t                num;
    struct ibv_port_attr   attr;
    enum ibv_mtu           mtu;
    union ibv_gid          gid;
    uint8_t                gid_index;
    uint8_t                gid_type;   /* enum ibv_gid_type */
    uint16_t               pkey;       /* bit 15: full member */
    uint16_t               pkey_index;
    uint8_t                sl;
    uint8_t                traffic_class;
    uint8_t                hop_limit;
    uint8_t                is_global;  /* each packet has a GRH */
    uint8_t                num_paths;
    uint8_t                prefix_len; /* RoCE v2: bits of the IP address that
                                          a peer has to share */
    uct_dcx_neigh_t        neigh;      /* RoCE */
    uint32_t               plain_pkey; /* as it travels in the addresses of
                                          those of whom nothing else has to be
                                          looked at; none has it if there are
                                          no such peers */
} uct_dcx_port_t;


/* The device address, as it travels: 22 bytes. */
typedef struct uct_dcx_dev_addr {
    uint8_t flags;    /* UCT_DCX_DEV_ADDR_*, LMC in the upper bits */
    uint8_t gid_type; /* RoCE: enum ibv_gid_type */
    __be16  lid;      /* InfiniBand */
    __be16  pkey;
    uint8_t gid[16];
} UCS_S_PACKED uct_dcx_dev_addr_t;

enum {
    UCT_DCX_PORT_NO_PKEY       = UINT16_MAX + 1,
    UCT_DCX_DEV_ADDR_ETHERNET = UCS_BIT(0),
    UCT_DCX_DEV_ADDR_GLOBAL   = UCS_BIT(1), /* wants a GRH */
    UCT_DCX_DEV_ADDR_LMC_SHIFT = 5          /* the port has 2^LMC LIDs */
};


/* One of the ways to a peer */
typedef struct uct_dcx_route {
    const uct_dcx_dev_addr_t *addr;
    unsigned                 path_index;
    uint16_t                 flow; /* RoCE v2: where 16 bits differ, switches
                                      may choose different links */
    int                      is_answer; /* called by progress */
} uct_dcx_route_t;


static inline int uct_dcx_port_is_roce(const uct_dcx_port_t *port)
{
    return port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static inline unsigned uct_dcx_port_mtu_bytes(const uct_dcx_port_t *port)
{
    return 128u << port->mtu;
}


/* InfiniBand specification, "Local identifiers": others are multicast */
static inline int uct_dcx_port_is_lid(unsigned lid)
{
    return (lid > 0) && (lid < 0xc000);
}


/* Lists the active ports of a domain as "mlx5_0:1" for UCT. */
ucs_status_t
uct_dcx_port_query_devices(uct_md_h md, uct_tl_device_resource_t **devices_p,
                           unsigned *num_devices_p);

/* Finds the port that 'dev_name' ("mlx5_0:1") means and resolves the options
 * of the path. Errors are logged and name the option. */
ucs_status_t
uct_dcx_port_init(uct_dcx_port_t *port, uct_dcx_md_t *md, const char *dev_name,
                  const uct_dcx_iface_config_t *config);
void uct_dcx_port_cleanup(uct_dcx_port_t *port);

/* Part of uct_dcx_port_init(), dcx_port_gid.c: the port's own GID and, on
 * RoCE, its subnet. */
ucs_status_t uct_dcx_port_init_gid(uct_dcx_port_t *port,
                                   const uct_dcx_iface_config_t *config);

void uct_dcx_port_get_address(const uct_dcx_port_t *port,
                              uct_dcx_dev_addr_t *addr);

int uct_dcx_port_is_reachable(const uct_dcx_port_t *port,
                              const uct_dcx_dev_addr_t *addr);

/* Most peers are on InfiniBand, need no route header and are members of our
 * partition as we are: makes the address vector of the first path to such a
 * one, number and key of the DCT left 0. Returns 0 if the peer is another. */
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

    av->key          = 0;
    av->dqp_dct      = 0;
    av->stat_rate_sl = port->sl;
    av->fl_mlid      = 0;
    av->rlid         = addr->lid;
    return 1;
}

/* What an address handle and a QP need for this port, a peer apart. */
void uct_dcx_port_fill_ah(const uct_dcx_port_t *port,
                          struct ibv_ah_attr *ah_attr);

/* Makes the address vector of a route, number and key of the DCT left 0.
 * With bit 31 of av->dqp_dct set, 'grh' belongs to it. On InfiniBand this is
 * a copy of bytes; on RoCE the first route to a GID takes a system call. If
 * that fails, the next one comes with the next endpoint of the user, or for
 * an answer when some time has passed. */
ucs_status_t
uct_dcx_port_make_av(uct_dcx_port_t *port, const uct_dcx_route_t *route,
                     uct_dcx_av_t *av, uct_dcx_grh_t *grh);

/* A peer of this GID failed: what is known of its whereabouts may be old. */
void uct_dcx_port_forget(uct_dcx_port_t *port, const uct_dcx_grh_t *grh);

/* One-way figures for the choice between transports: seconds, bytes/second */
double uct_dcx_port_latency(const uct_dcx_port_t *port);
double uct_dcx_port_bandwidth(const uct_dcx_port_t *port);

#endif
