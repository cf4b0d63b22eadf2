/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Addresses of ports and of targets behind them, and address vectors to them.
 * Called when endpoints are created, and by flow control for its answers.
 */
#ifndef UCT_DCX_PORT_ADDR_H
#define UCT_DCX_PORT_ADDR_H

#include "dcx_addr.h"
#include "dcx_port.h"
#include "uct/dcx/dev/dcx_devx_qp.h"
#include "uct/dcx/dev/dcx_wqe.h"


/* The address of a port */
typedef struct uct_dcx_dev_addr {
    uint8_t flags;    /* UCT_DCX_DEV_ADDR_*, LMC in the upper bits */
    uint8_t gid_type; /* RoCE: enum ibv_gid_type */
    __be16 lid;       /* InfiniBand */
    __be16 pkey;
    uint8_t gid[16];
} UCS_S_PACKED uct_dcx_dev_addr_t;

/* The device address on the wire: 26 bytes */
typedef struct uct_dcx_packed_dev_addr {
    uct_dcx_dev_addr_t addr;
    __be32 check; /* uct_dcx_dev_addr_crc() */
} UCS_S_PACKED uct_dcx_packed_dev_addr_t;

enum {
    UCT_DCX_DEV_ADDR_ETHERNET  = UCS_BIT(0),
    UCT_DCX_DEV_ADDR_GLOBAL    = UCS_BIT(1), /* requires a GRH */
    UCT_DCX_DEV_ADDR_LMC_SHIFT = 5           /* the port has 2^LMC LIDs */
};


/* Returns the checksum of a device address. */
static inline __be32 uct_dcx_dev_addr_crc(const uct_dcx_dev_addr_t *addr)
{
    return htobe32(uct_dcx_crc(UCT_DCX_ADDR_VERSION, addr, sizeof(*addr)));
}


/* The address of a target (DCT). A request for credits contains it, as a
 * receive completion does not name the sender. */
typedef struct uct_dcx_target {
    __be64 dc_key;
    uint8_t dctn[3];
    uct_dcx_dev_addr_t dev_addr;
} UCS_S_PACKED uct_dcx_target_t;


static inline void uct_dcx_target_set_dctn(uint8_t bytes[3], uint32_t dctn)
{
    bytes[0] = dctn >> 16;
    bytes[1] = dctn >> 8;
    bytes[2] = dctn;
}


static inline uint32_t uct_dcx_target_dctn(const uint8_t bytes[3])
{
    return ((uint32_t)bytes[0] << 16) | ((uint32_t)bytes[1] << 8) | bytes[2];
}


/* A path to a target */
typedef struct uct_dcx_route {
    const uct_dcx_target_t *target;
    uint32_t own_dctn; /* our own target: pairs of targets are
                        * spread over the links */
    unsigned path_index;
    int is_answer; /* for an answer of flow control: progress calls, and must
                    * not wait often */
} uct_dcx_route_t;


void uct_dcx_port_get_address(const uct_dcx_port_t *port,
                              uct_dcx_dev_addr_t *addr);

int uct_dcx_port_is_reachable(const uct_dcx_port_t *port,
                              const uct_dcx_dev_addr_t *addr);

/* Makes the address vector of a route. @grh is part of it if bit 31 of
 * av->dqp_dct is set. On InfiniBand this copies bytes; on RoCE the first route
 * to a GID takes a system call. If that fails, it is repeated for the user's
 * next endpoint, or for an answer after 10 seconds; before that, an answer gets
 * UCS_ERR_UNREACHABLE, not logged. Logs other errors. */
ucs_status_t uct_dcx_port_make_av(uct_dcx_port_t *port,
                                  const uct_dcx_route_t *route,
                                  uct_dcx_av_t *av, uct_dcx_grh_t *grh);

/* Returns in @path the path to the own port, for a QP that is connected to
 * itself. Takes as long as uct_dcx_port_make_av(); logs errors. */
ucs_status_t uct_dcx_port_own_path(uct_dcx_port_t *port,
                                   uct_dcx_devx_path_t *path);

/* Forgets the cached MAC of the GID in @grh, as a peer there has failed. Does
 * nothing on InfiniBand. */
void uct_dcx_port_forget(uct_dcx_port_t *port, const uct_dcx_grh_t *grh);

/* Returns non-zero if an address vector leads to the port of @addr, by any
 * path. @grh: its header, or NULL if it has none. */
int uct_dcx_port_is_av_to(const uct_dcx_av_t *av, const uct_dcx_grh_t *grh,
                          const uct_dcx_dev_addr_t *addr);

#endif
