/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connects the two processes by TCP; see perf_boot.h. The connection stays
 * open: if it is closed, the peer has ended.
 */
#include "perf_boot.h"
#include "perf_say.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    /* seconds: limit of connect() for each address, and of a blocking recv() */
    PERF_TCP_PATIENCE = 20
};

static int perf_tcp_fd = -1;

static struct addrinfo *perf_tcp_resolve(const char *host, const char *port,
                                         int family)
{
    struct addrinfo hints = {
        .ai_family   = family,
        .ai_socktype = SOCK_STREAM,
        .ai_flags    = (host == NULL) ? AI_PASSIVE : 0,
    };
    struct addrinfo *list;
    int status = getaddrinfo(host, port, &hints, &list);

    if (status != 0) {
        perf_fail("failed to resolve host %s, port %s: %s",
                  (host == NULL) ? "(any)" : host, port,
                  (status == EAI_SYSTEM) ? strerror(errno) :
                                           gai_strerror(status));
    }
    return list;
}

static int perf_tcp_listen_to(const struct addrinfo *to)
{
    int fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
    int on = 1, off = 0;

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (to->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if ((bind(fd, to->ai_addr, to->ai_addrlen) != 0) || (listen(fd, 1) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int perf_tcp_connect_to(const struct addrinfo *to)
{
    const struct timeval patience = {.tv_sec = PERF_TCP_PATIENCE};
    int fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Opens the first address that works. @return -1 with errno if none does */
static int perf_tcp_try(const char *host, const char *port, int family,
                        int (*open_one)(const struct addrinfo *to))
{
    struct addrinfo *list = perf_tcp_resolve(host, port, family);
    int fd                = -1;

    for (struct addrinfo *to = list; (to != NULL) && (fd < 0);
         to                  = to->ai_next) {
        fd = open_one(to);
    }
    freeaddrinfo(list);
    return fd;
}

/* Listens by IPv6, which accepts IPv4 peers, too; by IPv4 if IPv6 fails. */
int perf_tcp_listen(const char *port)
{
    int fd = perf_tcp_try(NULL, port, AF_INET6, perf_tcp_listen_to);

    if (fd < 0) {
        fd = perf_tcp_try(NULL, port, AF_INET, perf_tcp_listen_to);
    }
    if (fd < 0) {
        perf_fail("failed to listen on port %s: %m; choose another one with "
                  "--port",
                  port);
    }
    printf("# waiting on port %s\n", port);
    fflush(stdout);
    return fd;
}

/* Limits blocking reads to PERF_TCP_PATIENCE, and turns off Nagle's algorithm,
 * so that short calls and answers are sent at once. @return @fd */
static int perf_tcp_configure(int fd)
{
    const struct timeval patience = {.tv_sec = PERF_TCP_PATIENCE};
    const int on                  = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

int perf_tcp_accept(int listener)
{
    int fd;

    do {
        fd = accept(listener, NULL, NULL);
    } while ((fd < 0) && (errno == EINTR));
    if (fd < 0) {
        perf_fail("failed to accept a connection: %m");
    }
    return perf_tcp_configure(fd);
}

int perf_tcp_connect(const char *host, const char *port)
{
    int fd = perf_tcp_try(host, port, AF_UNSPEC, perf_tcp_connect_to);

    if (fd < 0) {
        perf_fail("failed to connect to %s on port %s: %s; is %s waiting "
                  "there?",
                  host, port,
                  (errno == EINPROGRESS) ? "no answer" : strerror(errno),
                  program_invocation_short_name);
    }
    return perf_tcp_configure(fd);
}

static int perf_tcp_accept_one(const char *port)
{
    int listener = perf_tcp_listen(port);
    int fd       = perf_tcp_accept(listener);

    close(listener);
    return fd;
}

static void perf_tcp_swap(const void *mine, void *theirs, size_t length)
{
    if ((send(perf_tcp_fd, mine, length, MSG_NOSIGNAL) != (ssize_t)length) ||
        (recv(perf_tcp_fd, theirs, length, MSG_WAITALL) != (ssize_t)length)) {
        perf_fail("no answer from the peer: it is not %s of this version, has "
                  "ended, or sent nothing for %d seconds",
                  program_invocation_short_name, PERF_TCP_PATIENCE);
    }
}

static bool perf_tcp_is_gone(void)
{
    char byte;
    ssize_t got = recv(perf_tcp_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return (got == 0) || ((got < 0) && (errno != EAGAIN) && (errno != EINTR));
}

static void perf_tcp_close(void)
{
    close(perf_tcp_fd);
}

void perf_boot_tcp_open(struct perf_boot *boot, const char *host,
                        const char *port)
{
    perf_tcp_fd = (host == NULL) ? perf_tcp_accept_one(port) :
                                   perf_tcp_connect(host, port);
    *boot       = (struct perf_boot){.measures = (host != NULL),
                                     .swap     = perf_tcp_swap,
                                     .is_gone  = perf_tcp_is_gone,
                                     .close    = perf_tcp_close};
}
