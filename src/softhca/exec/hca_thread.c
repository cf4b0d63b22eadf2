/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Entering and leaving the device: see hca_thread.h. A doorbell that rings in a
 * signal handler, which has interrupted the device in its own thread, must not
 * take a lock: it only sets `again`, which the outermost level checks after it
 * has released all locks.
 */
#include "hca_thread.h"
#include "hca_requester.h"
#include "hca_rndv_fetch.h"
#include "hca_sq.h"
#include "softhca/obj/hca_cq.h"
#include "softhca/obj/hca_cq_event.h"
#include "softhca/obj/hca_todo.h"
#include "softhca/resp/hca_qp.h"

#define HCA_THREAD_CQS 8u

/* Records nested doorbells: CQs to arm, if there is room, and that send queues
 * must run. In the static TLS block, as hca_todo is. */
static __thread struct {
    bool again; /* a doorbell rang inside */
    unsigned num_cqs;
    uint32_t cqs[HCA_THREAD_CQS];
} hca_thread_nested __attribute__((tls_model("initial-exec")));

/* Orders against a signal handler of the same thread only. */
static void hca_thread_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

void hca_thread_nest(uint32_t cqn)
{
    if ((cqn != 0) && (hca_thread_nested.num_cqs < HCA_THREAD_CQS)) {
        hca_thread_nested.cqs[hca_thread_nested.num_cqs++] = cqn;
    }
    hca_thread_nested.again = true;
}

static void hca_thread_drain_failed(uint32_t num)
{
    if (num & HCA_TODO_IS_CQ) {
        hca_qp_fail_cq(num & ~HCA_TODO_IS_CQ);
    } else {
        hca_requester_flush_failed(num);
    }
}

/* Runs hca_todo: fetches matched rendezvous, flushes the send queues of QPs in
 * error, fails the QPs of CQs that overran, and writes held completions. No
 * lock may be held. */
static __attribute__((noinline)) void hca_thread_drain(void)
{
    while (hca_todo.rndv != NULL) {
        hca_rndv_fetch();
    }
    while (hca_todo.num_failed > 0) {
        hca_thread_drain_failed(hca_todo.failed[--hca_todo.num_failed]);
    }
    while (hca_todo.num_held > 0) {
        hca_cq_close(hca_todo.held[--hca_todo.num_held]);
    }
}

/* Runs the nested doorbells, until none rings meanwhile. */
static __attribute__((noinline)) void hca_thread_run_nested(void)
{
    while (hca_thread_nested.again) {
        hca_todo.depth          = 1;
        hca_thread_nested.again = false;
        hca_thread_fence();
        while (hca_thread_nested.num_cqs > 0) {
            hca_cq_arm(hca_thread_nested.cqs[--hca_thread_nested.num_cqs]);
        }
        hca_sq_run_all(HCA_ANY_UAR);
        hca_cq_arm_moved(); /* the doorbell may have been one of a CQ */
        hca_thread_drain();
        hca_thread_fence();
        hca_todo.depth = 0;
        hca_thread_fence();
    }
}

void hca_thread_leave(void)
{
    hca_thread_fence();
    if (hca_todo.depth > 1) {
        hca_todo.depth--;
        return;
    }
    if (__builtin_expect(hca_todo_is_some(), 0)) {
        hca_thread_drain();
    }
    hca_todo.depth = 0;
    hca_thread_fence();
    if (__builtin_expect(hca_thread_nested.again, 0)) {
        hca_thread_run_nested();
    }
}
