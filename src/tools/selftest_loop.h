/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx with an endpoint to a target, memory of both sides, and functions that
 * compare its bytes. The target is this process, unless there is a peer
 * (selftest_peer.h). A failure prints a line and ends the process.
 */
#ifndef DCX_SELFTEST_LOOP_H
#define DCX_SELFTEST_LOOP_H

#include "perf_uct.h"

#include <ucs/sys/math.h>
#include <uct/dcx/dcx.h>

enum {
    SELFTEST_PIECES = 4096,
    SELFTEST_SIZE   = 1 << 20,
    SELFTEST_RKEY   = 32,
    SELFTEST_AM_ID  = 2 /* id of an active message */
};

/* Registered memory, or a layout of it, with its key. For memory of a peer,
 * @bytes is a copy, and @memh is a number: 0 for memory, 1 and more for
 * layouts. */
struct selftest_mem {
    uint8_t *bytes; /* NULL: a layout */
    uint64_t address;
    size_t size;
    uct_mem_h memh;
    uint8_t key[SELFTEST_RKEY]; /* as packed */
    uct_rkey_bundle_t rkey;
};

/* Serves a call at the target: @call and @data are replaced by the answer. */
struct selftest_loop;
struct selftest_call;
typedef void (*selftest_serve_t)(struct selftest_loop *loop,
                                 struct selftest_call *call, uint8_t *data);

struct selftest_loop {
    struct perf_uct uct;
    const char *device;            /* as the user gave it, or NULL */
    const char *host, *port;       /* of the peer; NULL: there is none */
    const char *probe;             /* its name */
    unsigned timeout;              /* seconds of the probe */
    bool forks;                    /* fork the target if there is no peer */
    bool serves;                   /* this process is a target of another one */
    const selftest_serve_t *calls; /* by enum selftest_op */
    bool is_remote;                /* the target is another process */
    int fd;                        /* connection to that process */
    struct perf_address address;   /* of the endpoint's peer */
    struct selftest_mem near, far; /* of the origin, of the target */
    struct selftest_mem taken;     /* the target's, to be invalidated */
    uint8_t *image;                /* the expected bytes of far */
    uint8_t message[SELFTEST_SIZE]; /* the last one received */
    size_t length;                  /* bytes of the message */
    unsigned count;                 /* of received messages */
};

/* The places of a layout's bytes in far */
struct selftest_shape {
    size_t num, size;
    struct {
        size_t offset, length;
    } pieces[SELFTEST_PIECES];
};

/* Open the device (@more: callbacks for tags, or NULL) and register near and
 * far, then connect the endpoint. If this process is a target of another one,
 * selftest_loop_meet() serves that, and does not return. */
void selftest_loop_start(struct selftest_loop *loop,
                         const uct_iface_params_t *more);
void selftest_loop_meet(struct selftest_loop *loop);

/* Calls both. */
void selftest_loop_open(struct selftest_loop *loop);

/* Replaces the endpoint, which has failed. */
void selftest_loop_reconnect(struct selftest_loop *loop);

/* Register memory for UCT_MD_MEM_ACCESS_* (@bytes = NULL: UCS_ERR_NO_MEMORY);
 * pack its key to mem->key, and unpack that; unpack @key to mem->rkey. */
ucs_status_t selftest_mem_reg(struct selftest_loop *loop,
                              struct selftest_mem *mem, void *bytes,
                              size_t size, unsigned access);
void selftest_mem_pack(struct selftest_loop *loop, struct selftest_mem *mem,
                       int can_invalidate);
void selftest_mem_unpack(struct selftest_loop *loop, struct selftest_mem *mem,
                         const uint8_t *key);

/* Copy @length bytes at @offset from mem->bytes to the target's memory (push),
 * or back (pull). @mem: &loop->far or &loop->taken. If the target is this
 * process, mem->bytes is its memory, and nothing is done. */
void selftest_push(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length);
void selftest_pull(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length);

/* Waits until the target has received @count messages in all. Stores the last
 * one in loop->message. */
void selftest_message_wait(struct selftest_loop *loop, unsigned count);

/* Returns the first @length bytes of @mem. */
static inline uct_iov_t selftest_iov(const struct selftest_mem *mem,
                                     size_t length)
{
    return (uct_iov_t){.buffer = mem->bytes,
                       .length = length,
                       .memh   = mem->memh,
                       .count  = 1};
}

/* The bytes of a message, for selftest_pack(), which is a
 * uct_pack_callback_t */
struct selftest_packed {
    const uint8_t *bytes;
    size_t length;
};

size_t selftest_pack(void *to, void *arg);

/* Writes pattern @seed. */
void selftest_fill(uint8_t *bytes, size_t size, unsigned seed);

/* Compares bytes, and ends the process if they differ. */
void selftest_compare(const char *what, const uint8_t *found,
                      const uint8_t *expected, size_t size);

/* Put or get, and wait for completion. Addresses are those of the memory, or
 * offsets in a layout. */
void selftest_put(struct selftest_loop *loop, const struct selftest_mem *from,
                  uint64_t from_address, const struct selftest_mem *to,
                  uint64_t to_address, size_t length);
void selftest_get(struct selftest_loop *loop, const struct selftest_mem *to,
                  uint64_t to_address, const struct selftest_mem *from,
                  uint64_t from_address, size_t length);

/* Puts 8 bytes. Ends the process if that does not fail; otherwise replaces the
 * endpoint. @what: describes the put, for the message */
void selftest_put_fails(struct selftest_loop *loop, uct_rkey_t rkey,
                        uint64_t address, const char *what);

/* Appends a piece. Ends the process if there is no room. */
void selftest_shape_add(struct selftest_shape *shape, size_t offset,
                        size_t length);

/* Scatter @from, or gather to @to, by the processor. */
void selftest_shape_scatter(const struct selftest_shape *shape, uint8_t *to,
                            const uint8_t *from);
void selftest_shape_gather(const struct selftest_shape *shape,
                           const uint8_t *from, uint8_t *to);

#endif
