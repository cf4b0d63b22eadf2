/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of initiators: how a WQE is posted, the order of completions, recovery
 * of a queue that has failed, and bandwidth.
 */
#include "perf_clock.h"
#include "perf_say.h"
#include "selftest.h"

#include <stdio.h>
#include <string.h>

enum {
    SELFTEST_ORDER_ROUNDS = 300,
    SELFTEST_ORDER_SIZE   = 1 << 19,
    SELFTEST_FAILURES     = 20,
    SELFTEST_GETS         = 200
};

/* --- order ---------------------------------------------------------------- */
static void selftest_order_end(uct_completion_t *comp)
{
    (void)comp;
}

/* Posts a large get, a small put, and a flush, whose completion covers both. */
static void selftest_order_round(struct selftest_loop *loop, unsigned seed)
{
    uct_completion_t comp = {.func = selftest_order_end, .count = 1};
    uct_iov_t iov         = {
                .buffer = loop->near.bytes,
                .length = SELFTEST_ORDER_SIZE,
                .memh   = loop->near.memh,
                .count  = 1,
    };
    uint64_t *last = (uint64_t *)(loop->near.bytes + SELFTEST_ORDER_SIZE) - 1;
    uint64_t value = seed;
    ucs_status_t status;

    memcpy(loop->far.bytes + SELFTEST_ORDER_SIZE - sizeof(value), &value,
           sizeof(value));
    selftest_push(loop, &loop->far, SELFTEST_ORDER_SIZE - sizeof(value),
                  sizeof(value));
    *last  = 0;
    status = uct_ep_get_zcopy(loop->uct.ep, &iov, 1, loop->far.address,
                              loop->far.rkey.rkey, NULL);
    perf_uct_check(status, "a get");
    status = uct_ep_put_short(loop->uct.ep, &value, sizeof(value),
                              loop->far.address + SELFTEST_ORDER_SIZE,
                              loop->far.rkey.rkey);
    perf_uct_check(status, "a put");
    status = uct_ep_flush(loop->uct.ep, 0, &comp);
    perf_uct_check(status, "a flush");
    while ((status == UCS_INPROGRESS) && (comp.count > 0) &&
           !loop->uct.has_failed) {
        perf_uct_progress(&loop->uct);
    }
    if (*(volatile uint64_t *)last != seed) {
        perf_fail("a flush completed before the get that was posted first, in "
                  "round %u",
                  seed);
    }
}

void selftest_order(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    for (unsigned i = 1; i <= SELFTEST_ORDER_ROUNDS; i++) {
        selftest_order_round(loop, i);
    }
}

/* --- posting -------------------------------------------------------------- */
/* Checks the status of a put or a get. Progresses if there was no room for it.
 * Returns 1 if it is posted. */
static unsigned selftest_is_posted(struct selftest_loop *loop,
                                   ucs_status_t status)
{
    if (status == UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
        return 0;
    }
    perf_uct_check(status, "a put or a get");
    return 1;
}

/* Tests short puts of all sizes: posts a queue full of each before it waits. */
void selftest_post_sizes(struct selftest_loop *loop)
{
    const size_t burst = 100;
    size_t max;

    selftest_loop_open(loop);
    max = loop->uct.attr.cap.put.max_short;
    for (size_t size = 1; size <= max; size++) {
        selftest_fill(loop->near.bytes, burst * size, size);
        memset(loop->far.bytes, 0, burst * size);
        for (size_t i = 0; i < burst;) {
            ucs_status_t status = uct_ep_put_short(
                loop->uct.ep, loop->near.bytes + i * size, size,
                loop->far.address + i * size, loop->far.rkey.rkey);

            i += selftest_is_posted(loop, status);
        }
        perf_uct_flush(&loop->uct);
        selftest_compare("a put", loop->far.bytes, loop->near.bytes,
                         burst * size);
    }
}

/* --- failures ------------------------------------------------------------- */
/* Uses an invalid key, which moves the initiator to the error state; then
 * checks that the initiator works again. */
void selftest_recovery(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    for (unsigned i = 0; i < SELFTEST_FAILURES; i++) {
        selftest_put_fails(loop, loop->far.rkey.rkey ^ 0xffffff00u,
                           loop->far.address, "a put by a wrong key");
        selftest_fill(loop->near.bytes, 4096, i);
        selftest_put(loop, &loop->near, (uintptr_t)loop->near.bytes, &loop->far,
                     loop->far.address, 4096);
        selftest_pull(loop, &loop->far, 0, 4096);
        selftest_compare("a put after a failure", loop->far.bytes,
                         loop->near.bytes, 4096);
    }
}

/* --- bandwidth ------------------------------------------------------------ */
/* Measures large gets in MB/s: within this host, or from the peer. */
void selftest_bandwidth(struct selftest_loop *loop)
{
    ucs_status_t status;
    uint64_t begin;
    uct_iov_t iov;
    char key[32];

    selftest_loop_open(loop);
    iov = selftest_iov(&loop->near, SELFTEST_SIZE);
    selftest_fill(loop->far.bytes, SELFTEST_SIZE, 8);
    selftest_push(loop, &loop->far, 0, SELFTEST_SIZE);
    begin = perf_now();
    for (unsigned i = 0; i < SELFTEST_GETS;) {
        status = uct_ep_get_zcopy(loop->uct.ep, &iov, 1, loop->far.address,
                                  loop->far.rkey.rkey, NULL);
        i += selftest_is_posted(loop, status);
    }
    perf_uct_flush(&loop->uct);
    begin = perf_now() - begin;
    selftest_compare("a get", loop->near.bytes, loop->far.bytes, SELFTEST_SIZE);
    snprintf(key, sizeof(key), "%s_mbs", loop->probe);
    selftest_value(key, "%.0f", 1e3 * SELFTEST_GETS * SELFTEST_SIZE / begin);
}
