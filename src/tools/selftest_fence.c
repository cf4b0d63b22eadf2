/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of messages, and of the order that a fence guarantees. The origin
 * posts a large put, a fence, and a small put, an atomic or a message. The
 * target must see the latter after the large put, although adaptive routing and
 * PCIe relaxed ordering may reorder them. It checks while they arrive: the
 * origin flushes nothing before the target has answered.
 */
#include "perf_say.h"
#include "selftest.h"
#include "selftest_peer.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SELFTEST_FENCE_ROUNDS = 300,
    SELFTEST_FENCE_SIZE   = 1 << 17,
    SELFTEST_FENCE_FLAG   = SELFTEST_SIZE - 64, /* offset in far */
    SELFTEST_FENCE_SPINS  = 1000
};

/* Operations that follow the fence */
enum selftest_fence { SELFTEST_PUT, SELFTEST_ATOMIC, SELFTEST_AM };

static const char *const selftest_fence_names[] = {
    [SELFTEST_PUT]    = "put",
    [SELFTEST_ATOMIC] = "atomic",
    [SELFTEST_AM]     = "message",
};

/* --- the origin ----------------------------------------------------------- */
static ucs_status_t selftest_fence_flag(struct selftest_loop *loop,
                                        enum selftest_fence kind,
                                        uint64_t round)
{
    const uint64_t address = loop->far.address + SELFTEST_FENCE_FLAG;

    switch (kind) {
    case SELFTEST_PUT:
        return uct_ep_put_short(loop->uct.ep, &round, sizeof(round), address,
                                loop->far.rkey.rkey);
    case SELFTEST_ATOMIC:
        return uct_ep_atomic64_post(loop->uct.ep, UCT_ATOMIC_OP_ADD, 1, address,
                                    loop->far.rkey.rkey);
    default:
        return uct_ep_am_short(loop->uct.ep, SELFTEST_AM_ID, round, NULL, 0);
    }
}

static void selftest_fence_post(struct selftest_loop *loop,
                                enum selftest_fence kind, uint64_t round)
{
    const uct_iov_t iov = selftest_iov(&loop->near, SELFTEST_FENCE_SIZE);
    ucs_status_t status;

    selftest_fill(loop->near.bytes, SELFTEST_FENCE_SIZE, round);
    while ((status = uct_ep_put_zcopy(loop->uct.ep, &iov, 1, loop->far.address,
                                      loop->far.rkey.rkey, NULL)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(status, "a put");
    perf_uct_check(uct_ep_fence(loop->uct.ep, 0), "a fence");
    while ((status = selftest_fence_flag(loop, kind, round)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(status, selftest_fence_names[kind]);
}

/* --- the target ----------------------------------------------------------- */
static bool selftest_fence_is_seen(struct selftest_loop *loop,
                                   enum selftest_fence kind, uint64_t round)
{
    _Atomic uint64_t *flag = (void *)(loop->far.bytes + SELFTEST_FENCE_FLAG);

    return (kind == SELFTEST_AM) ?
               (loop->count == round) :
               (atomic_load_explicit(flag, memory_order_acquire) == round);
}

/* Waits for the operation behind the fence, then checks at once the put before
 * it. */
static void selftest_fence_look(struct selftest_loop *loop,
                                enum selftest_fence kind, uint64_t round)
{
    char what[64];

    selftest_fill(loop->image, SELFTEST_FENCE_SIZE, round);
    for (unsigned i = 1; !selftest_fence_is_seen(loop, kind, round); i++) {
        perf_uct_progress(&loop->uct);
        if (loop->uct.has_failed || ((i % SELFTEST_FENCE_SPINS == 0) &&
                                     selftest_peer_is_gone(loop->fd))) {
            perf_fail("a put, a fence and a %s have failed",
                      selftest_fence_names[kind]);
        }
    }
    memcpy(loop->message, loop->far.bytes, SELFTEST_FENCE_SIZE);
    snprintf(what, sizeof(what), "a put, a fence and a %s, round %lu",
             selftest_fence_names[kind], (unsigned long)round);
    selftest_compare(what, loop->message, loop->image, SELFTEST_FENCE_SIZE);
}

/* Serves all rounds in one call: the target looks for the next round before the
 * origin gets the answer to the last. */
void selftest_serve_fences(struct selftest_loop *loop,
                           struct selftest_call *call, uint8_t *data)
{
    const uint64_t rounds = call->b;

    memset(loop->far.bytes + SELFTEST_FENCE_FLAG, 0, sizeof(uint64_t));
    loop->count = 0;
    selftest_send_call(loop, call, data);
    for (uint64_t round = 1; round <= rounds; round++) {
        selftest_fence_look(loop, call->a, round);
        if (round < rounds) {
            selftest_send_call(loop, call, data);
        }
    }
}

/* --- probes --------------------------------------------------------------- */
static void selftest_fences(struct selftest_loop *loop,
                            enum selftest_fence kind)
{
    struct selftest_call call = {.op = SELFTEST_FENCES,
                                 .a  = kind,
                                 .b  = SELFTEST_FENCE_ROUNDS};

    selftest_call(loop, &call, NULL, NULL);
    for (uint64_t round = 1; round <= SELFTEST_FENCE_ROUNDS; round++) {
        selftest_fence_post(loop, kind, round);
        selftest_answer(loop, &call, NULL);
        perf_uct_flush(&loop->uct);
    }
}

/* Forks the target, which looks while the device works. */
void selftest_fence(struct selftest_loop *loop)
{
    loop->forks = true;
    selftest_loop_open(loop);
    selftest_fences(loop, SELFTEST_PUT);
    selftest_fences(loop, SELFTEST_AM);
    if (loop->uct.attr.cap.atomic64.op_flags & UCS_BIT(UCT_ATOMIC_OP_ADD)) {
        selftest_fences(loop, SELFTEST_ATOMIC);
    } else {
        selftest_note("without atomics: the device has none");
    }
}

/* Posts @length bytes of near, by bcopy or by zcopy. */
static ucs_status_t selftest_message_post(struct selftest_loop *loop,
                                          size_t length, bool is_zcopy)
{
    struct selftest_packed packed = {loop->near.bytes, length};
    const uct_iov_t iov           = selftest_iov(&loop->near, length);
    ssize_t size;

    if (is_zcopy) {
        return uct_ep_am_zcopy(loop->uct.ep, SELFTEST_AM_ID, NULL, 0, &iov, 1,
                               0, NULL);
    }
    size = uct_ep_am_bcopy(loop->uct.ep, SELFTEST_AM_ID, selftest_pack, &packed,
                           0);
    return (size < 0) ? (ucs_status_t)size : UCS_OK;
}

void selftest_messages(struct selftest_loop *loop)
{
    size_t max, length;
    ucs_status_t status;

    selftest_loop_open(loop);
    max = ucs_min(loop->uct.attr.cap.am.max_bcopy,
                  loop->uct.attr.cap.am.max_zcopy);
    for (unsigned i = 0; i < 64; i++) {
        length = (i < 62) ? 1 + ((i / 2) * (i / 2) * 9) % max : max;
        selftest_fill(loop->near.bytes, length, i);
        while ((status = selftest_message_post(loop, length, i % 2)) ==
               UCS_ERR_NO_RESOURCE) {
            perf_uct_progress(&loop->uct);
        }
        perf_uct_check(status, "a message");
        selftest_message_wait(loop, i + 1);
        if (loop->length != length) {
            perf_fail("a message has %zu bytes, not %zu", loop->length, length);
        }
        selftest_compare("a message", loop->message, loop->near.bytes, length);
    }
}
