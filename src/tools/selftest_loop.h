/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx with an endpoint to a target, memory of both, and bytes in it that are
 * compared. The target is this process, unless there is a peer (selftest_peer.h).
 * A failure ends the process with a line.
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

/* Registered memory, or a layout of it, with its key. Of a peer's, bytes are a
 * copy, and memh is a number: 0 for memory, of layouts from 1 on. */
struct selftest_mem {
    uint8_t          *bytes; /* NULL: a layout */
    uint64_t          address;
    size_t            size;
    uct_mem_h         memh;
    uint8_t           key[SELFTEST_RKEY]; /* as packed */
    uct_rkey_bundle_t rkey;
};

/* Serves a call at the target: @call becomes the answer, and so does @data. */
struct selftest_loop;
struct selftest_call;
typedef void (*selftest_serve_t)(struct selftest_loop *loop,
                                 struct selftest_call *call, uint8_t *data);

struct selftest_loop {
    struct perf_uct     uct;
    const char         *device;  /* that was asked for, or NULL */
    const char         *host, *port; /* of the peer; NULL: there is none */
    const char         *probe;
    unsigned            timeout; /* seconds of the probe */
    bool                forks;   /* the target, unless there is a peer */
    bool                serves;  /* this process is a target of another one */
    const selftest_serve_t *calls; /* of enum selftest_op */
    bool                is_remote; /* the target is another process */
    int                 fd;      /* a connection with that process */
    struct perf_address address; /* of the target */
    struct selftest_mem near, far; /* of the origin, of the target */
    struct selftest_mem taken;   /* the target's, to be taken back */
    uint8_t            *image;   /* of what is expected in far */
    uint8_t             message[SELFTEST_SIZE]; /* that came last */
    size_t              length;
    unsigned            count;   /* of such */
};

/* Where the bytes of a layout lie in far */
struct selftest_shape {
    size_t num, size;
    struct {
        size_t offset, length;
    } pieces[SELFTEST_PIECES];
};

/* Opens the device; more: callbacks for tags, or NULL. Then connects to the
 * target; does not return at a target of another process. */
void selftest_loop_start(struct selftest_loop *loop,
                         const uct_iface_params_t *more);
void selftest_loop_meet(struct selftest_loop *loop);

/* Both of them */
void selftest_loop_open(struct selftest_loop *loop);

/* Another endpoint, in place of the one that failed */
void selftest_loop_reconnect(struct selftest_loop *loop);

/* Registers memory for UCT_MD_MEM_ACCESS_*, and packs its key. */
ucs_status_t
selftest_mem_reg(struct selftest_loop *loop, struct selftest_mem *mem,
                 void *bytes, size_t size, unsigned access);
void selftest_mem_pack(struct selftest_loop *loop, struct selftest_mem *mem,
                       int can_invalidate);
void selftest_mem_unpack(struct selftest_loop *loop, struct selftest_mem *mem,
                         const uint8_t *key);

/* The processor's writes to memory of the target, and its reads, happen in the
 * copy: these bring it there and back. */
void selftest_push(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length);
void selftest_pull(struct selftest_loop *loop, const struct selftest_mem *mem,
                   size_t offset, size_t length);

/* Waits until the target has got @count messages in all; the last is in
 * loop->message. */
void selftest_message_wait(struct selftest_loop *loop, unsigned count);

/* The first @length bytes of @mem */
static inline uct_iov_t
selftest_iov(const struct selftest_mem *mem, size_t length)
{
    return (uct_iov_t){.buffer = mem->bytes, .length = length,
                       .memh = mem->memh, .count = 1};
}

/* Bytes of a message, for selftest_pack(), which is a uct_pack_callback_t. */
struct selftest_packed {
    const uint8_t *bytes;
    size_t         length;
};

size_t selftest_pack(void *to, void *arg);

void selftest_fill(uint8_t *bytes, size_t size, unsigned seed);

/* Compares, and ends the process where they differ. */
void selftest_compare(const char *what, const uint8_t *found,
                      const uint8_t *expected, size_t size);

/* Operations that have ended when they return; addresses are those of the
 * memory, or offsets in a layout. */
void selftest_put(struct selftest_loop *loop, const struct selftest_mem *from,
                  uint64_t from_address, const struct selftest_mem *to,
                  uint64_t to_address, size_t length);
void selftest_get(struct selftest_loop *loop, const struct selftest_mem *to,
                  uint64_t to_address, const struct selftest_mem *from,
                  uint64_t from_address, size_t length);

/* A put of 8 bytes that has to fail: @what names what is wrong with it. */
void selftest_put_fails(struct selftest_loop *loop, uct_rkey_t rkey,
                        uint64_t address, const char *what);

void selftest_shape_add(struct selftest_shape *shape, size_t offset,
                        size_t length);

/* Scatters @from, or gathers to @to, by the processor. */
void selftest_shape_scatter(const struct selftest_shape *shape, uint8_t *to,
                            const uint8_t *from);
void selftest_shape_gather(const struct selftest_shape *shape,
                           const uint8_t *from, uint8_t *to);

#endif
