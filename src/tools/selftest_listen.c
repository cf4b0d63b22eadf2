/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Serves the test of a peer, dcx_selftest --listen; see selftest_listen.h.
 */
#include "perf_say.h"
#include "selftest_listen.h"
#include "selftest_peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SELFTEST_SPARE = 5 /* seconds by which the target outlives the origin */
};

struct selftest_session {
    const struct selftest_probe *probes;
    const struct selftest_how *how;
    int fd; /* of the test; -1: none yet */
    int status;
};

static void selftest_serve_probe(struct selftest_session *session,
                                 const struct selftest_probe *probe, int fd,
                                 unsigned timeout)
{
    struct selftest_how how = *session->how;
    struct selftest_report report;

    how.serve   = fd;
    how.timeout = ucs_min(timeout, SELFTEST_TIMEOUT_MAX) + SELFTEST_SPARE;
    selftest_run(probe, &how, &report);
    if (report.result != SELFTEST_PASS) {
        session->status = PERF_BAD;
        printf("# %s did not pass here:\n%s", probe->name, report.reasons);
        fflush(stdout);
    }
}

static void selftest_connection(struct selftest_session *session, int fd)
{
    const struct selftest_probe *probe = session->probes;
    struct selftest_hello hello;

    if (selftest_peer_accept(fd, &hello) != 0) {
        close(fd);
        return;
    }
    while ((probe->name != NULL) && strcmp(probe->name, hello.probe)) {
        probe++;
    }
    if ((session->fd < 0) && (hello.probe[0] == '\0')) {
        session->fd = fd;
        printf("# a test has begun\n");
        fflush(stdout);
        return;
    }
    if ((session->fd >= 0) && (probe->name != NULL) && probe->needs_peer) {
        selftest_serve_probe(session, probe, fd, hello.timeout);
    }
    close(fd);
}

/* Ends a session. A last byte on the connection tells that the test has
 * completed. */
static int selftest_session_end(struct selftest_session *session)
{
    char byte;

    if (recv(session->fd, &byte, 1, 0) != 1) {
        fprintf(stderr, "%s: the peer has ended before its test\n",
                program_invocation_short_name);
        return PERF_BAD;
    }
    printf("# the test is over\n");
    return session->status;
}

int selftest_listen(const struct selftest_probe *probes,
                    const struct selftest_how *how)
{
    struct selftest_session session = {probes, how, -1, PERF_GOOD};
    struct pollfd fds[2]            = {
                   {.fd = perf_tcp_listen(how->port), .events = POLLIN},
                   {.events = POLLIN}};

    do {
        fds[1].fd      = session.fd; /* poll() ignores -1 */
        fds[1].revents = 0;
        if ((poll(fds, 2, -1) < 0) && (errno != EINTR)) {
            perf_fail("poll: %s", strerror(errno));
        }
        if (fds[0].revents != 0) {
            selftest_connection(&session, perf_tcp_accept(fds[0].fd));
        }
    } while (fds[1].revents == 0);
    return selftest_session_end(&session);
}
