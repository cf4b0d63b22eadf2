/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses of ports, and the ways to them: address vectors. Called when
 * endpoints are created, and by flow control for its answers.
 */
#ifndef UCT_DCX_PORT_ADDR_H
#define UCT_DCX_PORT_ADDR_H

#include "dcx_port.h"
#include "uct/dcx/dev/dcx_wqe.h"


/* The device address, as it travels: 22 bytes. */
typedef struct uct_dcx_dev_addr {
    uint8_t flags;    /* UCT_DCX_DEV_ADDR_*, LMC in the upper bits */
    uint8_t gid_type; /* RoCE: enum ibv_gid_type */
    __be16  lid;      /* InfiniBand */
    __be16  pkey;
    uint8_t gid[16];
} UCS_S_PACKED uct_dcx_dev_addr_t;

enum {
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


/* InfiniBand specification, "Local identifiers": others are multicast */
static inline int uct_dcx_port_is_lid(unsigned lid)
{
    return (lid > 0) && (lid < 0xc000);
}


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

/* Whether an address vector leads to the port of this address, by whatever
 * path. 'grh': its header, or NULL if it has none. */
int uct_dcx_port_is_av_to(const uct_dcx_av_t *av, const uct_dcx_grh_t *grh,
                          const uct_dcx_dev_addr_t *addr);

#endif
