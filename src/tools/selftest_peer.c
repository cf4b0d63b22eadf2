/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Connections to a target in another process, and calls to it; see
 * selftest_peer.h.
 */
#include "perf_say.h"
#include "selftest.h"
#include "selftest_peer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* "dcxself" and the version of the calls */
#define SELFTEST_MAGIC 0x64637873656c6601ull

/* --- connections ---------------------------------------------------------- */
static void selftest_hello(struct selftest_hello *hello, const char *probe,
                           unsigned timeout)
{
    *hello = (struct selftest_hello){.magic   = SELFTEST_MAGIC,
                                     .timeout = timeout};
    snprintf(hello->version, sizeof(hello->version), "%s", DCX_VERSION);
    snprintf(hello->probe, sizeof(hello->probe), "%s", probe);
}

/* Returns NULL if @hello is of this version, otherwise a description of the
 * fault. */
static const char *selftest_hello_fault(struct selftest_hello *hello,
                                        ssize_t length)
{
    static char text[96];

    if ((length != sizeof(*hello)) || (hello->magic != SELFTEST_MAGIC)) {
        return (length < 0)  ? "it does not answer" :
               (length == 0) ? "it has closed the connection" :
                               "it is not a dcx_selftest of this version";
    }
    hello->version[sizeof(hello->version) - 1] = '\0';
    hello->probe[sizeof(hello->probe) - 1]     = '\0';
    if (!strcmp(hello->version, DCX_VERSION)) {
        return NULL;
    }
    snprintf(text, sizeof(text), "it is version %.32s, this is " DCX_VERSION,
             hello->version);
    return text;
}

static ssize_t selftest_swap(int fd, const struct selftest_hello *mine,
                             struct selftest_hello *theirs)
{
    (void)send(fd, mine, sizeof(*mine), MSG_NOSIGNAL); /* recv() finds errors */
    return recv(fd, theirs, sizeof(*theirs), MSG_WAITALL);
}

int selftest_peer_connect(const char *host, const char *port, const char *probe,
                          unsigned timeout)
{
    struct selftest_hello mine, theirs;
    const char *fault;
    int fd;

    fd = perf_tcp_connect(host, port);
    selftest_hello(&mine, probe, timeout);
    fault = selftest_hello_fault(&theirs, selftest_swap(fd, &mine, &theirs));
    if (fault != NULL) {
        perf_fail("%s, port %s: %s", host, port, fault);
    }
    return fd;
}

int selftest_peer_accept(int fd, struct selftest_hello *hello)
{
    struct selftest_hello mine;
    const char *fault;

    selftest_hello(&mine, "", 0);
    fault = selftest_hello_fault(hello, selftest_swap(fd, &mine, hello));
    if (fault != NULL) {
        fprintf(stderr, "%s: a connection was closed: %s\n",
                program_invocation_short_name, fault);
        return -1;
    }
    return 0;
}

/* --- calls ---------------------------------------------------------------- */
/* Ends the process without a result: the peer or its host has ended, which
 * tells nothing about the device. */
static void __attribute__((noreturn)) selftest_peer_ended(void)
{
    fprintf(stderr, "%s: the peer's process has ended\n",
            program_invocation_short_name);
    exit(SELFTEST_NOT_RUN);
}

static void selftest_write(struct selftest_loop *loop, const void *bytes,
                           size_t size)
{
    ssize_t count;

    for (; size > 0; bytes = (const uint8_t *)bytes + count, size -= count) {
        count = send(loop->fd, bytes, size, MSG_NOSIGNAL);
        if (count < 0) {
            selftest_peer_ended();
        }
    }
}

/* Reads @size bytes, and progresses the interface meanwhile. Returns false if
 * the peer has ended. */
static bool selftest_read_all(struct selftest_loop *loop, void *bytes,
                              size_t size)
{
    ssize_t count;

    while (size > 0) {
        count = recv(loop->fd, bytes, size, MSG_DONTWAIT);
        if (count > 0) {
            bytes = (uint8_t *)bytes + count;
            size -= count;
        } else if ((count == 0) || ((errno != EAGAIN) && (errno != EINTR))) {
            return false;
        } else if (uct_worker_progress(loop->uct.worker) == 0) {
            sched_yield(); /* there may be fewer cores than processes */
        }
    }
    return true;
}

bool selftest_peer_is_gone(int fd)
{
    char byte;
    ssize_t count = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return (count == 0) ||
           ((count < 0) && (errno != EAGAIN) && (errno != EINTR));
}

void selftest_send_call(struct selftest_loop *loop,
                        const struct selftest_call *call, const void *data)
{
    selftest_write(loop, call, sizeof(*call));
    selftest_write(loop, data, call->length);
}

void selftest_answer(struct selftest_loop *loop, struct selftest_call *call,
                     void *data)
{
    if (!selftest_read_all(loop, call, sizeof(*call)) ||
        (call->length > SELFTEST_SIZE) ||
        !selftest_read_all(loop, data, call->length)) {
        selftest_peer_ended();
    }
    if (call->op == SELFTEST_END) {
        fprintf(stderr, "%s: the peer has failed; see its output\n",
                program_invocation_short_name);
        exit(call->status);
    }
}

void selftest_call(struct selftest_loop *loop, struct selftest_call *call,
                   const void *data, void *answer)
{
    selftest_send_call(loop, call, data);
    selftest_answer(loop, call, answer);
}

/* --- the target ----------------------------------------------------------- */
static struct selftest_mem *selftest_served_mem(struct selftest_loop *loop,
                                                struct selftest_call *call,
                                                size_t length)
{
    struct selftest_mem *mem = (call->mem == 0) ? &loop->far : &loop->taken;

    if ((call->a > mem->size) || (length > mem->size - call->a)) {
        perf_fail("the peer asks for bytes beyond the memory");
    }
    return mem;
}

void selftest_serve_write(struct selftest_loop *loop,
                          struct selftest_call *call, uint8_t *data)
{
    memcpy(selftest_served_mem(loop, call, call->length)->bytes + call->a, data,
           call->length);
    call->length = 0;
}

void selftest_serve_read(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data)
{
    memcpy(data, selftest_served_mem(loop, call, call->b)->bytes + call->a,
           call->b);
    call->length = call->b;
}

void selftest_serve_message(struct selftest_loop *loop,
                            struct selftest_call *call, uint8_t *data)
{
    call->a      = loop->count;
    call->length = loop->length;
    memcpy(data, loop->message, loop->length);
}

void selftest_serve_meet(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data)
{
    struct perf_address own = loop->address;

    memcpy(&loop->address, data, sizeof(loop->address));
    perf_uct_connect(&loop->uct, &loop->address);
    memcpy(data, &own, sizeof(own));
    call->a = loop->far.address;
    memcpy(call->key, loop->far.key, sizeof(call->key));
}

/* Tells the origin at exit that the target ends. If the target crashes, the
 * origin finds the connection closed. */
static void selftest_end(int status, void *arg)
{
    struct selftest_loop *loop      = arg;
    const struct selftest_call call = {.op = SELFTEST_END, .status = status};

    (void)send(loop->fd, &call, sizeof(call), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void selftest_serve(struct selftest_loop *loop)
{
    static uint8_t data[SELFTEST_SIZE];
    struct selftest_call call;

    while (selftest_read_all(loop, &call, sizeof(call)) &&
           (call.op < SELFTEST_OPS) && (loop->calls[call.op] != NULL) &&
           (call.length <= sizeof(data)) &&
           selftest_read_all(loop, data, call.length)) {
        loop->calls[call.op](loop, &call, data);
        selftest_send_call(loop, &call, data);
    }
    exit(SELFTEST_PASS);
}

/* --- both ----------------------------------------------------------------- */
static void selftest_fork(struct selftest_loop *loop)
{
    int fds[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        perf_fail("socketpair: %s", strerror(errno));
    }
    fflush(stdout);
    pid = fork();
    if (pid < 0) {
        perf_fail("fork: %s", strerror(errno));
    }
    loop->serves    = (pid == 0);
    loop->is_remote = (pid != 0);
    loop->fd        = fds[pid == 0];
    close(fds[pid != 0]);
}

void selftest_peer_begin(struct selftest_loop *loop)
{
    if (loop->forks && !loop->serves && (loop->host == NULL)) {
        selftest_fork(loop);
    } else if (loop->host != NULL) {
        loop->fd = selftest_peer_connect(loop->host, loop->port, loop->probe,
                                         loop->timeout);
        loop->is_remote = true;
    }
    if (loop->serves) {
        on_exit(selftest_end, loop);
    }
}

void selftest_peer_meet(struct selftest_loop *loop)
{
    struct selftest_call call = {.op     = SELFTEST_MEET,
                                 .length = sizeof(loop->address)};

    if (loop->serves) {
        selftest_serve(loop);
    }
    if (loop->is_remote) {
        selftest_call(loop, &call, &loop->address, loop->message);
        memcpy(&loop->address, loop->message, sizeof(loop->address));
        loop->far.address = call.a;
        memcpy(loop->far.key, call.key, sizeof(loop->far.key));
    }
}
