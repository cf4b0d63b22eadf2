/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Subnets of RoCE v2; see dcx_subnet.h. Called when an interface opens.
 */
#include "dcx_subnet.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/sock.h>


int uct_dcx_subnet_is_same(const union ibv_gid *a, const union ibv_gid *b,
                           unsigned bits)
{
    return (uct_dcx_subnet_is_ipv4(a) == uct_dcx_subnet_is_ipv4(b)) &&
           ucs_bitwise_is_equal(a->raw, b->raw,
                                128 - uct_dcx_subnet_addr_bits(a) + bits);
}


int uct_dcx_subnet_parse(const char *text, union ibv_gid *gid, unsigned *bits)
{
    static const uint8_t mapped[] = {[10] = 0xff, [11] = 0xff};
    char addr[INET6_ADDRSTRLEN];
    int length = 0;

    if ((sscanf(text, "%45[0-9a-fA-F.:]/%3u%n", addr, bits, &length) != 2) ||
        (text[length] != '\0')) {
        return 0;
    }

    if (inet_pton(AF_INET, addr, gid->raw + sizeof(mapped)) == 1) {
        memcpy(gid->raw, mapped, sizeof(mapped));
    } else if (inet_pton(AF_INET6, addr, gid->raw) != 1) {
        return 0;
    }
    return *bits <= uct_dcx_subnet_addr_bits(gid);
}


static int uct_dcx_subnet_owns(const struct ifaddrs *ifa,
                               const union ibv_gid *gid)
{
    int family  = uct_dcx_subnet_is_ipv4(gid) ? AF_INET : AF_INET6;
    size_t size = uct_dcx_subnet_addr_bits(gid) / 8;

    return (ifa->ifa_addr != NULL) && (ifa->ifa_netmask != NULL) &&
           (ifa->ifa_addr->sa_family == family) &&
           !memcmp(ucs_sockaddr_get_inet_addr(ifa->ifa_addr),
                   gid->raw + sizeof(gid->raw) - size, size);
}


/* Returns the number of leading ones. Uses the family of the address: some
 * kernels leave the mask's unset. */
static int uct_dcx_subnet_mask_len(const struct ifaddrs *ifa, unsigned max)
{
    const uint8_t *mask;
    unsigned bits = 0;

    ifa->ifa_netmask->sa_family = ifa->ifa_addr->sa_family;
    mask                        = ucs_sockaddr_get_inet_addr(ifa->ifa_netmask);
    while ((bits < max) && (mask[bits / 8] & (0x80 >> (bits % 8)))) {
        ++bits;
    }
    return bits;
}


int uct_dcx_subnet_find(const union ibv_gid *gid, unsigned *bits,
                        unsigned *netdev)
{
    struct ifaddrs *list, *ifa;

    if (getifaddrs(&list) != 0) {
        return 0;
    }

    ifa = list;
    while ((ifa != NULL) && !uct_dcx_subnet_owns(ifa, gid)) {
        ifa = ifa->ifa_next;
    }

    if (ifa != NULL) {
        *bits   = uct_dcx_subnet_mask_len(ifa, uct_dcx_subnet_addr_bits(gid));
        *netdev = if_nametoindex(ifa->ifa_name);
    }
    freeifaddrs(list);
    return ifa != NULL;
}
