/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Answers one request of RDMA netlink, by which alone libibverbs learns that a
 * forked child has copies of registered pages (ibv_is_fork_initialized(3)).
 * That is true here: nothing is pinned, and the device reaches the memory of a
 * process by its address. Refuses all other requests, so that libibverbs reads
 * sysfs and lists no device of the machine. Called like preload.c.
 *
 * The socket is one of NETLINK_USERSOCK, where no kernel listens: it can be
 * bound and read as it is. sendmsg() puts the answer into it before returning.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* no inline variants of functions defined here */
#include "preload.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>

/* nldev_sys_get_doit() of Linux 5.12 */
struct preload_sys_answer {
    struct nlmsghdr hdr;
    struct nlattr attr;
    uint8_t copy_on_fork, pad[3];
};

static_assert(sizeof(struct preload_sys_answer) ==
                  NLMSG_HDRLEN + NLA_HDRLEN + NLA_ALIGN(1),
              "no gap");

/* netlink_ack() */
struct preload_refusal {
    struct nlmsghdr hdr;
    struct nlmsgerr error;
};

PRELOAD_EXPORT int socket(int domain, int type, int protocol)
{
    if ((domain == AF_NETLINK) && (protocol == NETLINK_RDMA)) {
        protocol = NETLINK_USERSOCK;
    }
    return hca_sys()->socket(domain, type, protocol);
}

/* Sends the answer from the program's socket to itself; returns like
 * sendmsg(). */
static ssize_t preload_answer(int fd, const struct nlmsghdr *request)
{
    struct preload_sys_answer sys = {
        .hdr  = *request,
        .attr = {sizeof(sys.attr) + 1, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK},
        .copy_on_fork = 1,
    };
    struct preload_refusal refusal = {
        .hdr   = *request,
        .error = {-EOPNOTSUPP, *request},
    };
    bool is_sys = request->nlmsg_type ==
                  RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
    struct nlmsghdr *hdr  = is_sys ? &sys.hdr : &refusal.hdr;
    struct sockaddr_nl to = {0};
    socklen_t size        = sizeof(to);

    if (getsockname(fd, (struct sockaddr *)&to, &size) != 0) {
        return -1;
    }
    hdr->nlmsg_len   = is_sys ? sizeof(sys) : sizeof(refusal);
    hdr->nlmsg_type  = is_sys ? request->nlmsg_type : NLMSG_ERROR;
    hdr->nlmsg_flags = 0;
    hdr->nlmsg_pid   = to.nl_pid;
    return (sendto(fd, hdr, hdr->nlmsg_len, 0, (struct sockaddr *)&to, size) <
            0) ?
               -1 :
               (ssize_t)request->nlmsg_len;
}

/* Returns true for a message to the kernel's RDMA netlink client of devices,
 * RDMA_NL_NLDEV. */
static bool preload_is_request(const struct msghdr *msg)
{
    const struct sockaddr_nl *to = msg->msg_name;
    const struct nlmsghdr *request;

    if ((to == NULL) || (msg->msg_namelen != sizeof(*to)) ||
        (to->nl_family != AF_NETLINK) || (to->nl_pid != 0) ||
        (msg->msg_iovlen == 0) ||
        (msg->msg_iov[0].iov_len < sizeof(*request))) {
        return false;
    }
    request = msg->msg_iov[0].iov_base;
    return RDMA_NL_GET_CLIENT(request->nlmsg_type) == RDMA_NL_NLDEV;
}

PRELOAD_EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    int protocol;
    socklen_t size = sizeof(protocol);

    if (!preload_is_request(msg) ||
        (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) ||
        (protocol != NETLINK_USERSOCK)) {
        return hca_sys()->sendmsg(fd, msg, flags);
    }
    return preload_answer(fd, msg->msg_iov[0].iov_base);
}
