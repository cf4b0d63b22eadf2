/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface address that peers exchange, and its checks on arrival. UCT
 * passes addresses without their lengths. The address of the port is in
 * dcx_port_addr.h. Called when UCT queries an interface's own address, asks if
 * a peer is reachable, and creates endpoints.
 */
#ifndef UCT_DCX_ADDR_H
#define UCT_DCX_ADDR_H

#include "uct/dcx/base/dcx_crc.h"

#include <endian.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>


/* The interface address on the wire: 27 bytes */
typedef struct uct_dcx_iface_addr {
    uint8_t version; /* UCT_DCX_ADDR_VERSION */
    uint8_t flags;   /* UCT_DCX_ADDR_FLAG_* */
    uint8_t dctn[3]; /* number of the DCT, big endian */
    __be64 dc_key;
    __be16 credits;  /* initial credits of a peer's endpoint */
    __be32 pid;      /* of the process, for messages */
    __be32 seg_size; /* bytes of a receive buffer, the limit of a message with
                      * its header */
    __be32 check;    /* CRC of all fields before; last, so that bytes behind a
                      * truncated address do not match */
} UCS_S_PACKED uct_dcx_iface_addr_t;

enum { UCT_DCX_ADDR_VERSION = 10 };

enum {
    UCT_DCX_ADDR_FLAG_FC = UCS_BIT(0), /* uses flow control: peers have to
                                        * agree */
    UCT_DCX_ADDR_FLAG_TM = UCS_BIT(1), /* the target matches tags */
    UCT_DCX_ADDR_FLAGS   = UCS_MASK(2)
};


/* Returns the value for @check. */
static inline __be32 uct_dcx_addr_crc(const uct_dcx_iface_addr_t *addr)
{
    return htobe32(uct_dcx_crc(UCT_DCX_ADDR_VERSION, addr,
                               offsetof(uct_dcx_iface_addr_t, check)));
}


/* Properties of the own interface to compare an address with */
typedef struct uct_dcx_addr_own {
    uint8_t flags;   /* UCT_DCX_ADDR_FLAG_* on which peers have to agree */
    size_t am_short; /* bytes of the longest short message on the wire */
} uct_dcx_addr_own_t;


/* Returns non-zero if this interface can communicate with the peer. Otherwise
 * logs the reason at @level. */
int uct_dcx_addr_check(const uct_dcx_iface_addr_t *addr,
                       const uct_dcx_addr_own_t *own, ucs_log_level_t level);

#endif
