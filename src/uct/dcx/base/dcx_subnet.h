/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The subnets of GIDs. On RoCE v2 a GID is an IP address: the length of its
 * prefix, and a comparison of subnets. On InfiniBand its prefix may have an
 * FLID. Knows no port, so that a test needs no device.
 */
#ifndef UCT_DCX_SUBNET_H
#define UCT_DCX_SUBNET_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>


/* Returns non-zero for an IPv4 address, which is mapped to IPv6 by a prefix of
 * 96 bits (RFC 4291). */
static inline int uct_dcx_subnet_is_ipv4(const union ibv_gid *gid)
{
    return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

/* Returns the bits of the address: of IPv4 without that prefix. */
static inline unsigned uct_dcx_subnet_addr_bits(const union ibv_gid *gid)
{
    return uct_dcx_subnet_is_ipv4(gid) ? 32 : 128;
}

/* Returns the FLID of an InfiniBand GID: the LID by which routers lead from
 * other subnets to its port; 0: it has none. The prefix is
 * fec0:0:<flid>:<subnet> (UCX, uct_ib_iface_gid_extract_flid()). */
static inline uint16_t uct_dcx_subnet_flid(const uint8_t *gid)
{
    static const uint8_t prefix[] = {0xfe, 0xc0, 0, 0};

    return memcmp(gid, prefix, sizeof(prefix)) ? 0 : (gid[4] << 8) | gid[5];
}

/* Returns non-zero for an InfiniBand GID whose packets need a route header: its
 * prefix is not the link-local one, nor site-local without an FLID (UCX,
 * uct_ib_address_gid_is_global()). */
static inline int uct_dcx_subnet_is_global(const uint8_t *gid)
{
    static const uint8_t link_local[8] = {0xfe, 0x80};
    static const uint8_t site_local[6] = {0xfe, 0xc0};

    return memcmp(gid, link_local, sizeof(link_local)) &&
           memcmp(gid, site_local, sizeof(site_local));
}

/* Returns non-zero if both addresses are of one family, and their first @bits
 * bits are equal. */
int uct_dcx_subnet_is_same(const union ibv_gid *a, const union ibv_gid *b,
                           unsigned bits);

/* Finds the network interface that has a local address: stores the length of
 * its subnet prefix in @bits, and its index in @netdev. Returns 0 if no
 * interface in this process' network namespace has the address, or they cannot
 * be listed. */
int uct_dcx_subnet_find(const union ibv_gid *gid, unsigned *bits,
                        unsigned *netdev);

/* Reads "10.1.0.0/16" or "fd00::/8" into @gid and @bits. Returns 0 if @text is
 * no subnet. */
int uct_dcx_subnet_parse(const char *text, union ibv_gid *gid, unsigned *bits);

#endif
