/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A target in another process. A probe is the same function on both sides: at
 * the target it gets no further than selftest_loop_meet(), which serves the
 * calls of the origin until that ends, by the table that the program gave it.
 * Calls go over TCP, or over a pair of sockets if the target was forked; data
 * of probes goes over dcx alone. Both sides are of one version and byte order
 * (struct selftest_hello), so that structs go as they are.
 */
#ifndef DCX_SELFTEST_PEER_H
#define DCX_SELFTEST_PEER_H

#include "selftest_loop.h"

enum selftest_op {
    SELFTEST_MEET,      /* a, answer: far's address, key; data: addresses */
    SELFTEST_WRITE,     /* mem, a: offset; data */
    SELFTEST_READ,      /* mem, a: offset, b: length; answer: data */
    SELFTEST_TAKE,      /* answer: a: address, key, of "taken" */
    SELFTEST_TAKE_BACK,
    SELFTEST_LAYOUT,    /* a: repeat; data: blocks; answer: a: its number, b: size,
                         * key; status */
    SELFTEST_MESSAGE,   /* answer: a: how many came, data: the last one */
    SELFTEST_FENCES,    /* a: kind, b: rounds; an answer for each */
    SELFTEST_RECV,      /* a: tag, b: length */
    SELFTEST_RECV_TEST, /* answer: a: has ended, b: length, data, status */
    SELFTEST_END,       /* of the target: status is that of the process */
    SELFTEST_OPS
};

/* A call, or its answer; @length bytes of data follow. */
struct selftest_call {
    uint32_t op;
    int32_t  status;
    uint32_t mem; /* 0: far, 1: taken */
    uint32_t length;
    uint64_t a, b;
    uint8_t  key[SELFTEST_RKEY];
};

/* The first that either side of a connection sends */
struct selftest_hello {
    uint64_t magic;
    char     version[32];
    char     probe[32]; /* "": none, it lasts as long as the test */
    uint32_t timeout;
};

/* Exchanges hellos on a new connection to @host; ends the process if that is none
 * of this version. */
int selftest_peer_connect(const char *host, const char *port,
                          const char *probe, unsigned timeout);

/* The other side: reads into @hello, and answers. Returns 0, or -1 with a line if
 * it is none of this version. */
int selftest_peer_accept(int fd, struct selftest_hello *hello);

/* Before the device is opened: connects, or forks the target. */
void selftest_peer_begin(struct selftest_loop *loop);

/* Exchanges addresses, and takes the key of the target's memory; at the target,
 * serves until the origin ends. */
void selftest_peer_meet(struct selftest_loop *loop);

/* Returns whether the process on the other side of a connection has ended. */
bool selftest_peer_is_gone(int fd);

/* Sends a call; takes an answer, whose data, SELFTEST_SIZE at most, goes to @data.
 * If the target has ended, the process does with a line: SELFTEST_NOT_RUN. */
void selftest_tell(struct selftest_loop *loop, const struct selftest_call *call,
                   const void *data);
void selftest_answer(struct selftest_loop *loop, struct selftest_call *call,
                     void *data);
void selftest_call(struct selftest_loop *loop, struct selftest_call *call,
                   const void *data, void *answer);

/* Calls that every target takes; selftest.h has those of the probes. */
void selftest_serve_meet(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_write(struct selftest_loop *loop,
                          struct selftest_call *call, uint8_t *data);
void selftest_serve_read(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_message(struct selftest_loop *loop,
                            struct selftest_call *call, uint8_t *data);

#endif
