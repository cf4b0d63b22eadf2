/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A copy of the kernel's routes; see dcx_routes.h.
 */
#include "dcx_routes.h"
#include "uct/dcx/base/dcx_subnet.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <unistd.h>


/* Index of "lo" in each network namespace (Linux: LOOPBACK_IFINDEX) */
#define UCT_DCX_ROUTES_LOOPBACK 1


/* The kernel puts at most so many bytes into a part of its answer
 * (netlink_dump()) */
#define UCT_DCX_ROUTES_PART 32768


static ucs_status_t uct_dcx_routes_add(uct_dcx_routes_t *routes,
                                       const uct_dcx_route_entry_t *entry)
{
    uct_dcx_route_entry_t *entries = routes->entries;

    /* the size doubles each time that the count is a power of two */
    if (!(routes->count & (routes->count - 1))) {
        entries = ucs_realloc(entries,
                              2 * (routes->count + 1) * sizeof(*entries),
                              "uct_dcx_routes");
        if (entries == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        routes->entries = entries;
    }
    entries[routes->count++] = *entry;
    return UCS_OK;
}


/* Adds a route. Skips routes of other types, such as "unreachable". Skips
 * routes of several next hops, which have no network interface here. */
static ucs_status_t uct_dcx_routes_parse(uct_dcx_routes_t *routes,
                                         const struct nlmsghdr *msg)
{
    const struct rtmsg *route   = NLMSG_DATA(msg);
    size_t left                 = RTM_PAYLOAD(msg);
    uct_dcx_route_entry_t entry = {.bits     = route->rtm_dst_len,
                                   .is_local = route->rtm_type == RTN_LOCAL};
    const struct rtattr *attr;
    size_t size = 16;

    if (route->rtm_family == AF_INET) {
        size                 = 4;
        entry.subnet.raw[10] = entry.subnet.raw[11] = 0xff;
    }

    for (attr = RTM_RTA(route); RTA_OK(attr, left);
         attr = RTA_NEXT(attr, left)) {
        if (attr->rta_type == RTA_OIF) {
            memcpy(&entry.netdev, RTA_DATA(attr), sizeof(entry.netdev));
        } else if ((attr->rta_type == RTA_DST) && (RTA_PAYLOAD(attr) >= size)) {
            memcpy(entry.subnet.raw + 16 - size, RTA_DATA(attr), size);
        }
    }
    return ((entry.netdev == 0) ||
            (!entry.is_local && (route->rtm_type != RTN_UNICAST))) ?
               UCS_OK :
               uct_dcx_routes_add(routes, &entry);
}


/* Reads the parts of the kernel's answer. */
static ucs_status_t uct_dcx_routes_read(uct_dcx_routes_t *routes, int fd,
                                        void *part)
{
    const struct nlmsghdr *msg;
    ucs_status_t status;
    ssize_t length;
    size_t left;

    for (;;) {
        do {
            length = recv(fd, part, UCT_DCX_ROUTES_PART, 0);
        } while ((length < 0) && (errno == EINTR));
        if (length <= 0) {
            return UCS_ERR_IO_ERROR;
        }

        left = length;
        for (msg = part; NLMSG_OK(msg, left); msg = NLMSG_NEXT(msg, left)) {
            if (msg->nlmsg_type == NLMSG_DONE) {
                return UCS_OK;
            }
            if (msg->nlmsg_type != RTM_NEWROUTE) {
                errno = EPROTO;
                return UCS_ERR_IO_ERROR;
            }
            status = uct_dcx_routes_parse(routes, msg);
            if (status != UCS_OK) {
                return status;
            }
        }
    }
}


static ucs_status_t uct_dcx_routes_dump(uct_dcx_routes_t *routes, int is_ipv4,
                                        int fd)
{
    struct {
        struct nlmsghdr msg;
        struct rtmsg route;
    } request = {
        .msg   = {.nlmsg_len   = sizeof(request),
                  .nlmsg_type  = RTM_GETROUTE,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .route = {.rtm_family = is_ipv4 ? AF_INET : AF_INET6},
    };
    ucs_status_t status = UCS_ERR_IO_ERROR;
    void *part = ucs_malloc(UCT_DCX_ROUTES_PART, "uct_dcx_routes_part");

    if (part == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    if (send(fd, &request, sizeof(request), 0) == sizeof(request)) {
        status = uct_dcx_routes_read(routes, fd, part);
    }
    ucs_free(part);
    return status;
}


ucs_status_t uct_dcx_routes_init(uct_dcx_routes_t *routes, int is_ipv4)
{
    ucs_status_t status = UCS_ERR_IO_ERROR;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    *routes = (uct_dcx_routes_t){};
    if (fd >= 0) {
        status = uct_dcx_routes_dump(routes, is_ipv4, fd);
    }
    if (status != UCS_OK) {
        ucs_error("failed to read the kernel's routes: %m; set "
                  "UCX_DCX_ROCE_REACHABILITY_MODE=all");
        uct_dcx_routes_cleanup(routes);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}


void uct_dcx_routes_cleanup(uct_dcx_routes_t *routes)
{
    ucs_free(routes->entries);
    *routes = (uct_dcx_routes_t){};
}


int uct_dcx_routes_lead(const uct_dcx_routes_t *routes,
                        const union ibv_gid *peer, unsigned netdev)
{
    int best = -1, own = -1;
    const uct_dcx_route_entry_t *entry;
    unsigned i;

    for (i = 0; i < routes->count; ++i) {
        entry = &routes->entries[i];
        if (!uct_dcx_subnet_is_same(peer, &entry->subnet, entry->bits)) {
            continue;
        }
        if (entry->is_local || (entry->netdev == UCT_DCX_ROUTES_LOOPBACK)) {
            return 1;
        }

        best = ucs_max(best, entry->bits);
        if (entry->netdev == netdev) {
            own = ucs_max(own, entry->bits);
        }
    }
    return (own >= 0) && (own == best);
}
