/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Operations of one transport in the steady state, for callgrind to count:
 *
 *     insn TRANSPORT DEVICE MESSAGES [OPERATION...]
 *
 * Each operation runs alone (progress after each) and in rows of 16. Each run
 * collects one part: posting, progress of the sender, or progress of the
 * receiver. After each run callgrind writes a dump. Its name is the line
 * printed here: operation, number in a row, part, messages, and calls of
 * progress that did nothing. Used by test/bench/count-insn.
 */
#include "collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AM_ID      = 5,
    SHORT_SIZE = 8,   /* fits in a CQE */
    SMALL_SIZE = 64,  /* fits in a WQE, with a header not in a CQE */
    COPY_SIZE  = 256, /* fits in neither */
    LONG_SIZE  = 1024,
    REMOTE     = BENCH_MEM_SIZE / 2,
    WARM_UP    = 1024
};

enum part { POST, SEND, RECV, NUM_PARTS };

static const char *part_names[] = {"post", "send", "recv"};

struct run {
    struct bench_pair pair;
    uct_completion_t comp;
    unsigned length; /* packed or unpacked bytes */
    unsigned messages;
    unsigned received;
    unsigned empty; /* calls of progress that did nothing */
};

struct op {
    const char *name;
    int (*post)(struct run *run); /* returns ucs_status_t or length */
    unsigned length;
};

static uint64_t remote_addr(const struct run *run)
{
    return (uintptr_t)run->pair.mem + REMOTE;
}

static uct_iov_t local_iov(const struct run *run)
{
    return (uct_iov_t){.buffer = run->pair.mem,
                       .length = run->length,
                       .memh   = run->pair.memh,
                       .count  = 1};
}

static size_t pack(void *dest, void *arg)
{
    const struct run *run = arg;

    memcpy(dest, run->pair.mem, run->length);
    return run->length;
}

static void unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t receive(void *arg, void *data, size_t length,
                            unsigned flags)
{
    struct run *run = arg;

    (void)data;
    (void)length;
    (void)flags;
    run->received++;
    return UCS_OK;
}

static void completed(uct_completion_t *comp)
{
    (void)comp; /* never called: the count is higher than the number of
                 * operations */
}

static int am_short(struct run *run)
{
    return uct_ep_am_short(run->pair.ep, AM_ID, 1, run->pair.mem, run->length);
}

static int am_bcopy(struct run *run)
{
    return uct_ep_am_bcopy(run->pair.ep, AM_ID, pack, run, 0);
}

static int am_zcopy(struct run *run)
{
    uct_iov_t iov = local_iov(run);

    return uct_ep_am_zcopy(run->pair.ep, AM_ID, run->pair.mem, 8, &iov, 1, 0,
                           &run->comp);
}

static int put_short(struct run *run)
{
    return uct_ep_put_short(run->pair.ep, run->pair.mem, run->length,
                            remote_addr(run), run->pair.rkey.rkey);
}

static int put_bcopy(struct run *run)
{
    return uct_ep_put_bcopy(run->pair.ep, pack, run, remote_addr(run),
                            run->pair.rkey.rkey);
}

static int put_zcopy(struct run *run)
{
    uct_iov_t iov = local_iov(run);

    return uct_ep_put_zcopy(run->pair.ep, &iov, 1, remote_addr(run),
                            run->pair.rkey.rkey, &run->comp);
}

static int get_zcopy(struct run *run)
{
    uct_iov_t iov = local_iov(run);

    return uct_ep_get_zcopy(run->pair.ep, &iov, 1, remote_addr(run),
                            run->pair.rkey.rkey, &run->comp);
}

static int get_bcopy(struct run *run)
{
    return uct_ep_get_bcopy(run->pair.ep, unpack, run->pair.mem, run->length,
                            remote_addr(run), run->pair.rkey.rkey, &run->comp);
}

static int atomic_post(struct run *run)
{
    return uct_ep_atomic64_post(run->pair.ep, UCT_ATOMIC_OP_ADD, 1,
                                remote_addr(run), run->pair.rkey.rkey);
}

static const struct op ops[] = {
    {"am_short", am_short, SHORT_SIZE},
    {"am_bcopy", am_bcopy, COPY_SIZE},
    {"am_bcopy_small", am_bcopy, SMALL_SIZE},
    {"am_bcopy_long", am_bcopy, LONG_SIZE},
    {"am_zcopy", am_zcopy, COPY_SIZE},
    {"put_short", put_short, SHORT_SIZE},
    {"put_bcopy", put_bcopy, COPY_SIZE},
    {"put_bcopy_small", put_bcopy, SMALL_SIZE},
    {"put_zcopy", put_zcopy, COPY_SIZE},
    {"get_bcopy", get_bcopy, COPY_SIZE},
    {"get_zcopy", get_zcopy, COPY_SIZE},
    {"atomic_post", atomic_post, 0},
};

/* Posts an operation. An endpoint without credits waits for a grant; this
 * happens only once, in the warm-up. */
static void post(struct run *run, const struct op *op, int counted)
{
    int status;

    for (;;) {
        bench_collect(counted);
        status = op->post(run);
        bench_collect(counted);
        if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        bench_drain(run->pair.b.iface, 0);
        bench_drain(run->pair.a.iface, 0);
    }
    bench_check((status < 0) ? status : UCS_OK, op->name);
}

static void run_part(struct run *run, const struct op *op, unsigned messages,
                     unsigned row, int part)
{
    unsigned i, sent;

    run->empty = 0;
    for (sent = 0; sent < messages; sent += row) {
        for (i = 0; i < row; i++) {
            post(run, op, part == POST);
        }
        /* receiver first: the sender then gets its grants */
        run->empty += bench_drain(run->pair.b.iface, part == RECV);
        run->empty += bench_drain(run->pair.a.iface, part == SEND);
    }
}

static void run_op(struct run *run, const struct op *op, unsigned row)
{
    int part;

    run->length   = op->length;
    run->received = 0;
    run_part(run, op, WARM_UP, row, NUM_PARTS);
    for (part = POST; part < NUM_PARTS; part++) {
        if ((part == RECV) && (run->received == 0)) {
            continue; /* put, get and atomics have no arrival */
        }
        bench_traffic_begin();
        run_part(run, op, run->messages, row, part);
        if (part == POST) {
            bench_traffic_print(op->name, (row == 1) ? "1" : "16",
                                run->messages);
        }
        bench_pair_flush(&run->pair);
        bench_dump(op->name, (row == 1) ? "1" : "16", part_names[part],
                   run->messages, run->empty);
    }
}

/* Counts the calls of progress that do nothing. */
static void run_idle(struct run *run)
{
    unsigned i;

    run->empty = 0;
    for (i = 0; i < run->messages; i++) {
        run->empty += bench_drain(run->pair.a.iface, 1);
    }
    bench_dump("idle", "1", "call", run->messages, run->empty);
}

int main(int argc, char **argv)
{
    struct run run = {
        .comp = {.func = completed, .count = 1 << 30, .status = UCS_OK},
    };
    unsigned i;

    if ((argc < 4) || (atoi(argv[3]) < 16) || (atoi(argv[3]) % 16 != 0)) {
        fprintf(stderr, "usage: insn TRANSPORT DEVICE MESSAGES [OPERATION...]\n"
                        "MESSAGES is a multiple of 16\n");
        return 2;
    }
    run.messages = atoi(argv[3]);
    bench_pair_open(&run.pair, argv[1], argv[2]);
    BENCH_CHECK(
        uct_iface_set_am_handler(run.pair.b.iface, AM_ID, receive, &run, 0));
    run_idle(&run);
    for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        if (bench_wanted(ops[i].name, argv + 4)) {
            run_op(&run, &ops[i], 1);
            run_op(&run, &ops[i], 16);
        }
    }
    bench_pair_close(&run.pair);
    return 0;
}
