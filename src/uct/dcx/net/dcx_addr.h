/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface address: what peers tell each other of an interface, and what
 * can be known to be wrong with one that came. UCT hands addresses over without
 * their lengths. That of the port is in dcx_port_addr.h. Called when an
 * interface is asked for its own, and when endpoints are created.
 */
#ifndef UCT_DCX_ADDR_H
#define UCT_DCX_ADDR_H

#include <assert.h>
#include <endian.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>


/* The interface address, as it travels: 24 bytes. */
typedef struct uct_dcx_iface_addr {
    uint8_t version;  /* UCT_DCX_ADDR_VERSION */
    uint8_t flags;    /* UCT_DCX_ADDR_FLAG_* */
    uint8_t dctn[3];  /* number of the DCT, big endian */
    __be64  dc_key;
    __be16  credits;  /* what an endpoint to here begins with */
    __be32  pid;      /* of the process, for messages */
    __be32  seg_size; /* receive buffer: no longer message may be sent */
    uint8_t check;    /* of all that is before; last, as what stands behind a
                       * truncated address is not it */
} UCS_S_PACKED uct_dcx_iface_addr_t;

enum {
    UCT_DCX_ADDR_VERSION = 8
};

enum {
    UCT_DCX_ADDR_FLAG_FC = UCS_BIT(0), /* speaks flow control: peers have to
                                        * agree */
    UCT_DCX_ADDR_FLAG_TM = UCS_BIT(1), /* the target matches tags */
    UCT_DCX_ADDR_FLAGS   = UCS_MASK(2)
};


/* Returns the value for 'check': the highest byte of a hash. */
static inline uint8_t uct_dcx_addr_hash(uct_dcx_iface_addr_t addr)
{
    const uint64_t factor = 0x9e3779b97f4a7c15ull;
    uint64_t word[3];

    static_assert(sizeof(addr) == sizeof(word), "all of the address");
    addr.check = 0;
    memcpy(word, &addr, sizeof(word));
    return ((((word[0] * factor) ^ word[1]) * factor ^ word[2]) * factor) >> 56;
}


/* Properties of the own interface that an address is compared with */
typedef struct uct_dcx_addr_own {
    uint8_t flags;    /* UCT_DCX_ADDR_FLAG_* in which peers have to agree */
    size_t  am_short; /* longest short message on the wire */
} uct_dcx_addr_own_t;


/* Returns non-zero if the address is of a peer that this interface can speak
 * to. Else logs the reason at @level. */
int uct_dcx_addr_check(const uct_dcx_iface_addr_t *addr,
                       const uct_dcx_addr_own_t *own, ucs_log_level_t level);

#endif
