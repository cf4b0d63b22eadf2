/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages of one transport with tag matching on, for callgrind to count:
 *
 *     tags TRANSPORT DEVICE MESSAGES [OPERATION...]
 *
 * Tagged messages match receives that were posted before, each with its own
 * buffer; active and unexpected messages arrive without any posted receive, or
 * "beside" one that none of them matches. As in insn.c, each operation runs in
 * rows of 16 and alone, one part of it at a time: posting the receive, posting
 * the message, and progress of the sender and of the receiver.
 * The operation "depth" is a tagged message that matches the first, the middle
 * or the last of 1 to 1,000 posted receives. A line "time" has the nanoseconds
 * of a message in all, of both sides and the device; lines "pcie" have the PCIe
 * traffic of a message with its receive. Used by test/bench/count-insn,
 * count-pcie and contrib/bench.
 */
#include "collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AM_ID       = 5,
    SHORT_SIZE  = 8,
    COPY_SIZE   = 256,
    SLOT_SIZE   = COPY_SIZE + 16, /* buffers as far apart as by malloc */
    HEADER_SIZE = 17,             /* length of UCP's rendezvous header */
    WARM_UP     = 1024,
    BLOCKS      = 16, /* blocks of messages for the time */
    MAX_DEPTH   = 1000,
    SLOTS       = BENCH_MEM_SIZE - 1024 * SLOT_SIZE /* offset of the receives in
                                                     * 'mem' */
};

enum part { APPEND, POST, SEND, RECV, NUM_PARTS };

static const char *part_names[] = {"append", "post", "send", "recv"};

struct run;

struct op {
    const char *name;
    int (*post)(struct run *run, uct_tag_t tag); /* status or length */
    unsigned length;
    int tagged; /* each message matches a receive */
    int beside; /* a receive is posted that no message matches */
};

/* Messages between calls of progress (row), receives posted meanwhile (depth),
 * and how many of the last receives match in turn (window) */
struct load {
    const char *name;
    unsigned row, depth, window;
};

struct receive {
    uct_tag_context_t super; /* for the transport */
    struct run *run;
};

struct run {
    struct bench_pair pair;
    const struct op *op;
    const struct load *load;
    uct_completion_t comp;
    unsigned messages;
    unsigned appended, sent, received;
    unsigned empty; /* calls of progress that did nothing */
    struct receive receives[MAX_DEPTH];
};

static uct_iov_t iov_of(const struct run *run, unsigned offset, unsigned length)
{
    return (uct_iov_t){.buffer = run->pair.mem + offset,
                       .length = length,
                       .memh   = run->pair.memh,
                       .count  = 1};
}

static size_t pack(void *dest, void *arg)
{
    const struct run *run = arg;

    memcpy(dest, run->pair.mem, run->op->length);
    return run->op->length;
}

static void sent(uct_completion_t *comp)
{
    (void)comp; /* never called: the count is higher than the number of
                 * operations */
}

static int tag_short(struct run *run, uct_tag_t tag)
{
    return uct_ep_tag_eager_short(run->pair.ep, tag, run->pair.mem,
                                  run->op->length);
}

static int tag_bcopy(struct run *run, uct_tag_t tag)
{
    return uct_ep_tag_eager_bcopy(run->pair.ep, tag, 0, pack, run, 0);
}

static int tag_zcopy(struct run *run, uct_tag_t tag)
{
    uct_iov_t iov = iov_of(run, 0, run->op->length);

    return uct_ep_tag_eager_zcopy(run->pair.ep, tag, 0, &iov, 1, 0, &run->comp);
}

static int tag_rndv(struct run *run, uct_tag_t tag)
{
    uct_iov_t iov = iov_of(run, 0, run->op->length);
    ucs_status_ptr_t op;

    op = uct_ep_tag_rndv_zcopy(run->pair.ep, tag, run->pair.mem, HEADER_SIZE,
                               &iov, 1, 0, &run->comp);
    return UCS_PTR_IS_ERR(op) ? UCS_PTR_STATUS(op) : UCS_OK;
}

static int am_short(struct run *run, uct_tag_t tag)
{
    return uct_ep_am_short(run->pair.ep, AM_ID, tag, run->pair.mem,
                           run->op->length);
}

static int am_bcopy(struct run *run, uct_tag_t tag)
{
    (void)tag;
    return uct_ep_am_bcopy(run->pair.ep, AM_ID, pack, run, 0);
}

static const struct op ops[] = {
    {"tag_short", tag_short, SHORT_SIZE, 1, 0},
    {"tag_bcopy", tag_bcopy, COPY_SIZE, 1, 0},
    {"tag_zcopy", tag_zcopy, COPY_SIZE, 1, 0},
    {"tag_rndv", tag_rndv, COPY_SIZE, 1, 0},
    {"am_short", am_short, SHORT_SIZE, 0, 0},
    {"am_bcopy", am_bcopy, COPY_SIZE, 0, 0},
    {"unexp_short", tag_short, SHORT_SIZE, 0, 0},
    {"unexp_bcopy", tag_bcopy, COPY_SIZE, 0, 0},
    {"unexp_beside", tag_short, SHORT_SIZE, 0, 1},
};

static const struct op depth_op = {"depth", tag_bcopy, COPY_SIZE, 1, 0};

static const struct load rows[] = {
    {"16", 16, 16, 16},
    {"1", 1, 1, 1},
};

static const struct load depths[] = {
    {"1", 1, 1, 1},
    {"100-first", 1, 100, 100},
    {"100-middle", 1, 100, 50},
    {"100-last", 1, 100, 1},
    {"1000-first", 1, 1000, 1000},
    {"1000-middle", 1, 1000, 500},
    {"1000-last", 1, 1000, 1},
};

static ucs_status_t am_received(void *arg, void *data, size_t length,
                                unsigned flags)
{
    struct run *run = arg;

    (void)data;
    (void)length;
    (void)flags;
    run->received++;
    return UCS_OK;
}

static ucs_status_t unexpected(void *arg, void *data, size_t length,
                               unsigned flags, uct_tag_t tag, uint64_t imm,
                               void **context)
{
    struct run *run = arg;

    (void)tag;
    (void)imm;
    (void)context;
    bench_check(run->op->tagged ? UCS_ERR_IO_ERROR : UCS_OK,
                "message of a posted receive");
    return am_received(run, data, length, flags);
}

static void consumed(uct_tag_context_t *ctx)
{
    (void)ctx;
}

static void completed(uct_tag_context_t *ctx, uct_tag_t tag, uint64_t imm,
                      size_t length, void *inline_data, ucs_status_t status)
{
    struct run *run = ((struct receive *)ctx)->run;

    (void)imm;
    (void)inline_data;
    if (status == UCS_ERR_CANCELED) {
        return; /* of post_beside() */
    }
    bench_check(status, "receive");
    if ((length != run->op->length) || (ctx != &run->receives[tag].super)) {
        bench_check(UCS_ERR_IO_ERROR, "receive of another message");
    }
    run->received++;
}

static void software_rndv(uct_tag_context_t *ctx, uct_tag_t tag,
                          const void *header, unsigned header_length,
                          ucs_status_t status, unsigned flags)
{
    (void)ctx;
    (void)tag;
    (void)header;
    (void)header_length;
    (void)status;
    (void)flags;
    bench_check(UCS_ERR_UNSUPPORTED, "rendezvous by the device");
}

/* Returns the receive that message 'n' of a load matches; it is appended to the
 * list again after that. */
static unsigned turn(const struct load *load, unsigned n)
{
    return load->depth - load->window + n % load->window;
}

static ucs_status_t append(struct run *run, unsigned i)
{
    uct_iov_t iov = iov_of(run, SLOTS + i * SLOT_SIZE, COPY_SIZE);

    return uct_iface_tag_recv_zcopy(run->pair.b.iface, i, UINT64_MAX, &iov, 1,
                                    &run->receives[i].super);
}

static void drain_both(struct run *run)
{
    /* receiver first: the sender then gets its grants */
    bench_drain(run->pair.b.iface, 0);
    bench_drain(run->pair.a.iface, 0);
}

/* Posts receives until the list is as long as the load requires. Makes progress
 * while the command queue is full. */
static void append_all(struct run *run, int counted)
{
    const struct load *load = run->load;
    ucs_status_t status;
    unsigned i;

    while (run->appended - run->sent < load->depth) {
        i = run->appended;
        i = (i < load->depth) ? i : turn(load, i - load->depth);
        bench_collect(counted);
        status = append(run, i);
        bench_collect(counted);
        if (status == UCS_ERR_NO_RESOURCE) {
            drain_both(run);
            continue;
        }
        bench_check(status, "uct_iface_tag_recv_zcopy");
        run->appended++;
    }
}

/* Posts a message. An endpoint without credits waits for a grant. */
static void post(struct run *run, uct_tag_t tag, int counted)
{
    int status;

    for (;;) {
        bench_collect(counted);
        status = run->op->post(run, tag);
        bench_collect(counted);
        if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        drain_both(run);
    }
    bench_check((status < 0) ? status : UCS_OK, run->op->name);
    run->sent++;
}

static void receive_all(struct run *run, int part)
{
    do {
        run->empty += bench_drain(run->pair.b.iface, part == RECV);
        run->empty += bench_drain(run->pair.a.iface, part == SEND);
    } while (run->received != run->sent);
}

static void run_part(struct run *run, unsigned messages, int part)
{
    unsigned i, end = run->sent + messages;

    run->empty = 0;
    while (run->sent < end) {
        if (run->op->tagged) {
            append_all(run, part == APPEND);
        }
        for (i = 0; i < run->load->row; i++) {
            post(run, turn(run->load, run->sent), part == POST);
        }
        receive_all(run, part);
    }
}

/* Sends messages for the remaining receives. */
static void finish(struct run *run)
{
    unsigned i;

    if (run->op->tagged) {
        append_all(run, 0);
        for (i = 0; i < run->load->depth; i++) {
            post(run, i, 0);
            receive_all(run, NUM_PARTS);
        }
    }
    bench_pair_flush(&run->pair);
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the nanoseconds of a message as the median of blocks: one delayed
 * message takes as long as a thousand. */
static double message_ns(struct run *run)
{
    double ns[BLOCKS], start;
    unsigned i, sent;

    for (i = 0; i < BLOCKS; i++) {
        sent  = run->sent;
        start = now_ns();
        run_part(run, run->messages / BLOCKS, NUM_PARTS);
        ns[i] = (now_ns() - start) / (run->sent - sent);
    }
    qsort(ns, BLOCKS, sizeof(*ns), compare);
    return ns[BLOCKS / 2];
}

/* Posts, or cancels, the receive that no message matches. */
static void post_beside(struct run *run, int posts)
{
    unsigned last = MAX_DEPTH - 1;

    bench_check(posts ? append(run, last) :
                        uct_iface_tag_recv_cancel(
                            run->pair.b.iface, &run->receives[last].super, 0),
                "receive beside");
    drain_both(run);
}

static void run_load(struct run *run, const struct op *op,
                     const struct load *load)
{
    int part;

    run->op       = op;
    run->load     = load;
    run->appended = run->sent = run->received = 0;
    if (op->beside) {
        post_beside(run, 1);
    }
    run_part(run, WARM_UP, NUM_PARTS);
    printf("time %s/%s %.1f\n", op->name, load->name, message_ns(run));
    bench_traffic_begin();
    run_part(run, run->messages, NUM_PARTS);
    bench_traffic_print(op->name, load->name, run->messages);
    for (part = op->tagged ? APPEND : POST; part < NUM_PARTS; part++) {
        run_part(run, run->messages, part);
        bench_dump(op->name, load->name, part_names[part], run->messages,
                   run->empty);
    }
    finish(run);
    if (op->beside) {
        post_beside(run, 0);
    }
}

static void run_loads(struct run *run, const struct op *op,
                      const struct load *loads, unsigned count, char **names)
{
    unsigned i;

    for (i = 0; bench_wanted(op->name, names) && (i < count); i++) {
        run_load(run, op, &loads[i]);
    }
}

/* Counts the calls of progress that do nothing. */
static void run_idle(struct run *run)
{
    unsigned i;

    run->empty = 0;
    for (i = 0; i < run->messages; i++) {
        run->empty += bench_drain(run->pair.b.iface, 1);
    }
    bench_dump("idle", "1", "call", run->messages, run->empty);
}

static void init(struct run *run, const char *tl, const char *dev)
{
    unsigned i;

    run->comp = (uct_completion_t){.func = sent, .count = 1 << 30};
    for (i = 0; i < MAX_DEPTH; i++) {
        run->receives[i].super.tag_consumed_cb = consumed;
        run->receives[i].super.completed_cb    = completed;
        run->receives[i].super.rndv_cb         = software_rndv;
        run->receives[i].run                   = run;
    }
    bench_pair_open_tm(&run->pair, tl, dev, unexpected, run);
    BENCH_CHECK(uct_iface_set_am_handler(run->pair.b.iface, AM_ID, am_received,
                                         run, 0));
}

int main(int argc, char **argv)
{
    static struct run run;
    unsigned i;

    if ((argc < 4) || (atoi(argv[3]) < 16) || (atoi(argv[3]) % 16 != 0)) {
        fprintf(stderr, "usage: tags TRANSPORT DEVICE MESSAGES [OPERATION...]\n"
                        "MESSAGES is a multiple of 16\n");
        return 2;
    }
    run.messages = atoi(argv[3]);
    init(&run, argv[1], argv[2]);
    run_idle(&run);
    for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        run_loads(&run, &ops[i], rows, 2, argv + 4);
    }
    run_loads(&run, &depth_op, depths, sizeof(depths) / sizeof(*depths),
              argv + 4);
    bench_pair_close(&run.pair);
    return 0;
}
