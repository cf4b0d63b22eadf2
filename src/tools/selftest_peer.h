/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A target in another process. Both sides run the same function of the probe.
 * At the target, it does not get beyond selftest_loop_meet(), which serves the
 * calls of the origin until that ends, by the table @calls. Calls go over TCP,
 * or over a pair of sockets if the target was forked. Data of probes goes only
 * over dcx. Both sides have the same version and byte order (struct
 * selftest_hello), so structs are sent as they are.
 */
#ifndef DCX_SELFTEST_PEER_H
#define DCX_SELFTEST_PEER_H

#include "selftest_loop.h"

enum selftest_op {
    SELFTEST_MEET,  /* data: address; answer: a: address of far, key, data */
    SELFTEST_WRITE, /* mem, a: offset; data */
    SELFTEST_READ,  /* mem, a: offset, b: length; answer: data */
    SELFTEST_TAKE,  /* answer: a: address of "taken", key */
    SELFTEST_TAKE_BACK, /* invalidate "taken" */
    SELFTEST_LAYOUT,    /* a: repeat; data: blocks; answer: a: its number,
                         * b: size, key; status */
    SELFTEST_MESSAGE,   /* answer: a: how many came, data: the last one */
    SELFTEST_FENCES,    /* a: kind, b: rounds; an answer before them
                         * and after each */
    SELFTEST_RECV,      /* a: tag, b: length */
    SELFTEST_RECV_TEST, /* answer: a: has ended, b: length, data, status */
    SELFTEST_END,       /* from the target: status: its exit status */
    SELFTEST_OPS
};

/* A call, or its answer; @length bytes of data follow. */
struct selftest_call {
    uint32_t op;
    int32_t status;
    uint32_t mem; /* 0: far, 1: taken */
    uint32_t length;
    uint64_t a, b;
    uint8_t key[SELFTEST_RKEY];
};

/* The first struct that both sides of a connection send */
struct selftest_hello {
    uint64_t magic;
    char version[32];
    char probe[32];   /* "": the connection of the test */
    uint32_t timeout; /* seconds */
};

/* Connects to @host, and exchanges hellos. Returns the connection. Ends the
 * process if the peer is not a dcx_selftest of this version. */
int selftest_peer_connect(const char *host, const char *port, const char *probe,
                          unsigned timeout);

/* Reads @hello on the listening side, and answers. Returns 0; or prints a line
 * and returns -1 if the peer is not of this version. */
int selftest_peer_accept(int fd, struct selftest_hello *hello);

/* Connects to the target if loop->host is set, or forks it if loop->forks.
 * Called before the device is opened. */
void selftest_peer_begin(struct selftest_loop *loop);

/* Exchanges addresses, and gets the key of the target's memory. At the target,
 * serves calls until the origin ends, then ends the process. If there is no
 * other process, does nothing. */
void selftest_peer_meet(struct selftest_loop *loop);

/* Returns true if the process on the other side of a connection has ended. */
bool selftest_peer_is_gone(int fd);

/* Send a call; receive an answer, with up to SELFTEST_SIZE bytes in @data; or
 * do both. If the target has ended, print a line and end the process: with the
 * status that it sent (SELFTEST_END), or SELFTEST_NOT_RUN. */
void selftest_send_call(struct selftest_loop *loop,
                        const struct selftest_call *call, const void *data);
void selftest_answer(struct selftest_loop *loop, struct selftest_call *call,
                     void *data);
void selftest_call(struct selftest_loop *loop, struct selftest_call *call,
                   const void *data, void *answer);

/* Calls that every target serves; selftest.h has those of the probes. */
void selftest_serve_meet(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_write(struct selftest_loop *loop,
                          struct selftest_call *call, uint8_t *data);
void selftest_serve_read(struct selftest_loop *loop, struct selftest_call *call,
                         uint8_t *data);
void selftest_serve_message(struct selftest_loop *loop,
                            struct selftest_call *call, uint8_t *data);

#endif
