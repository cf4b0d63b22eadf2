/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Subnets of RoCE v2, and the kernel's routes; see dcx_subnet.h. Called when an
 * interface opens, and for each address of a peer if routes are asked for.
 */
#include "dcx_subnet.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/sock.h>
#include <unistd.h>


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


/* --- routes --------------------------------------------------------------- */

/* A request for the route between two addresses (rtnetlink(7)) */
typedef struct uct_dcx_subnet_request {
    struct nlmsghdr msg;
    struct rtmsg route;
    char attrs[2 * RTA_SPACE(sizeof(struct in6_addr))];
} uct_dcx_subnet_request_t;


static void uct_dcx_subnet_add_addr(uct_dcx_subnet_request_t *request,
                                    unsigned short type,
                                    const union ibv_gid *gid)
{
    size_t size         = uct_dcx_subnet_addr_bits(gid) / 8;
    struct rtattr *attr = UCS_PTR_BYTE_OFFSET(request, request->msg.nlmsg_len);

    attr->rta_type = type;
    attr->rta_len  = RTA_LENGTH(size);
    memcpy(RTA_DATA(attr), gid->raw + sizeof(gid->raw) - size, size);
    request->msg.nlmsg_len += RTA_SPACE(size);
}


/* Returns non-zero if the answer @msg is a route from interface @netdev, or
 * stays on this machine. */
static int uct_dcx_subnet_is_from(const struct nlmsghdr *msg, size_t length,
                                  unsigned netdev)
{
    const struct rtmsg *route = NLMSG_DATA(msg);
    const struct rtattr *attr;
    size_t left;

    if (!NLMSG_OK(msg, length) || (msg->nlmsg_type != RTM_NEWROUTE)) {
        return 0;
    }

    left = RTM_PAYLOAD(msg);
    for (attr = RTM_RTA(route); RTA_OK(attr, left);
         attr = RTA_NEXT(attr, left)) {
        if ((attr->rta_type == RTA_OIF) &&
            (*(const uint32_t *)RTA_DATA(attr) == netdev)) {
            return 1;
        }
    }
    return route->rtm_type == RTN_LOCAL;
}


int uct_dcx_subnet_has_route(const union ibv_gid *own,
                             const union ibv_gid *peer, unsigned netdev)
{
    int is_ipv4                      = uct_dcx_subnet_is_ipv4(own);
    uct_dcx_subnet_request_t request = {
        .msg   = {.nlmsg_len   = NLMSG_LENGTH(sizeof(struct rtmsg)),
                  .nlmsg_type  = RTM_GETROUTE,
                  .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family  = is_ipv4 ? AF_INET : AF_INET6,
                  .rtm_src_len = uct_dcx_subnet_addr_bits(own),
                  .rtm_dst_len = uct_dcx_subnet_addr_bits(peer)},
    };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    char answer[1024] UCS_V_ALIGNED(NLMSG_ALIGNTO);
    ssize_t length = -1;

    if (fd < 0) {
        return 0;
    }

    uct_dcx_subnet_add_addr(&request, RTA_DST, peer);
    uct_dcx_subnet_add_addr(&request, RTA_SRC, own);
    if (send(fd, &request, request.msg.nlmsg_len, 0) > 0) {
        length = recv(fd, answer, sizeof(answer), 0);
    }
    close(fd);
    return (length > 0) &&
           uct_dcx_subnet_is_from((const void *)answer, length, netdev);
}
