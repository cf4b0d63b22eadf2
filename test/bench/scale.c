/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Many endpoints on one interface:
 *
 *     scale TRANSPORT DEVICE ENDPOINTS
 *
 * Creates the endpoints, sends short messages and puts on them in turn, eight
 * at a time (on a thousand of them, spread over all, if there are more), and
 * destroys them. Prints the cost of one endpoint:
 *
 *     bytes of memory   ns to create   ns to destroy
 *
 * Under callgrind, creation, messages and puts (posting and progress of both
 * sides) have separate dumps, see test/bench/count-insn.
 */
#include "uct_pair.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <valgrind/callgrind.h>

enum {
    AM_ID    = 5,
    ROW      = 8,    /* endpoints that send between calls of progress: one per
                      * DCI */
    MANY     = 64,   /* endpoints for which dcx uses all receive buffers */
    ACTIVE   = 1000, /* maximum number of endpoints that send */
    MESSAGES = 8000
};

typedef ucs_status_t (*post_t)(const struct bench_pair *pair, uct_ep_h ep);

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Starts and stops callgrind's count; a stop names it. */
static void collect(void)
{
    CALLGRIND_TOGGLE_COLLECT;
}

static void collected(const char *what, unsigned endpoints, unsigned number)
{
    char label[64];

    CALLGRIND_TOGGLE_COLLECT;
    snprintf(label, sizeof(label), "%s %u all %u 0", what, endpoints, number);
    CALLGRIND_DUMP_STATS_AT(label);
}

static void create(const struct bench_pair *pair, uct_ep_h *eps, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        eps[i] = bench_pair_connect(pair);
    }
}

static void destroy(uct_ep_h *eps, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        uct_ep_destroy(eps[i]);
    }
}

static ucs_status_t message(const struct bench_pair *pair, uct_ep_h ep)
{
    return uct_ep_am_short(ep, AM_ID, 1, pair->mem, 8);
}

static ucs_status_t put(const struct bench_pair *pair, uct_ep_h ep)
{
    return uct_ep_put_short(ep, pair->mem, 8, (uintptr_t)pair->mem + 64,
                            pair->rkey.rkey);
}

/* Posts if there are a credit and an initiator, else makes progress first. */
static void post_one(const struct bench_pair *pair, uct_ep_h ep, post_t post)
{
    ucs_status_t status;

    while ((status = post(pair, ep)) == UCS_ERR_NO_RESOURCE) {
        uct_iface_progress(pair->b.iface);
        uct_iface_progress(pair->a.iface);
    }
    bench_check(status, "post");
}

static void send_all(const struct bench_pair *pair, uct_ep_h *eps,
                     unsigned count, post_t post)
{
    unsigned active = (count < ACTIVE) ? count : ACTIVE;
    unsigned stride = count / active;
    unsigned i;

    for (i = 0; i < MESSAGES; i++) {
        post_one(pair, eps[(i % active) * stride], post);
        if ((i + 1) % ROW == 0) {
            while (uct_iface_progress(pair->b.iface) > 0) {
            }
            while (uct_iface_progress(pair->a.iface) > 0) {
            }
        }
    }
}

/* Lets both sides create objects that they create on first use: initiators when
 * they post, also the receiver's for its grants; and the second half of dcx's
 * receive buffers, which many endpoints need. */
static void warm_up(const struct bench_pair *pair)
{
    struct bench_pair back = *pair;
    uct_ep_h eps[MANY];

    create(pair, eps, MANY);
    destroy(eps, MANY);

    create(pair, eps, ROW);
    send_all(pair, eps, ROW, message);
    send_all(pair, eps, ROW, put);
    bench_pair_flush(pair);
    destroy(eps, ROW);

    back.a = pair->b;
    back.b = pair->a;
    create(&back, eps, ROW);
    send_all(&back, eps, ROW, put);
    bench_pair_flush(&back);
    destroy(eps, ROW);
}

/* Prints the cost of one endpoint; 'eps' has room for all. */
static void run(const struct bench_pair *pair, uct_ep_h *eps, unsigned count)
{
    double start, created, destroyed;
    size_t before, after;

    before = heap_bytes();
    start  = now_ns();
    collect();
    create(pair, eps, count);
    created = now_ns() - start;
    collected("create", count, count);
    after = heap_bytes();

    collect();
    send_all(pair, eps, count, message);
    collected("message", count, MESSAGES);
    collect();
    send_all(pair, eps, count, put);
    collected("put", count, MESSAGES);
    bench_pair_flush(pair);

    start = now_ns();
    destroy(eps, count);
    destroyed = now_ns() - start;
    printf("%.1f %.1f %.1f\n", (double)(after - before) / count,
           created / count, destroyed / count);
}

int main(int argc, char **argv)
{
    unsigned count = (argc == 4) ? atoi(argv[3]) : 0;
    struct bench_pair pair;
    uct_ep_h *eps;

    if (count == 0) {
        fprintf(stderr, "usage: scale TRANSPORT DEVICE ENDPOINTS\n");
        return 2;
    }
    eps = calloc(count, sizeof(*eps));
    bench_pair_open(&pair, argv[1], argv[2]);
    bench_side_drop(&pair.b, AM_ID);
    warm_up(&pair);
    run(&pair, eps, count);
    bench_pair_close(&pair);
    free(eps);
    return 0;
}
