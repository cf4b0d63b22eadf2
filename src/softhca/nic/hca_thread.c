/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Entering and leaving the device. A program's signal handler may interrupt
 * the device in its own thread and post: the nested doorbell must not take a
 * lock, so it only sets `again`, which the outermost level looks at after it
 * has let go of everything.
 */
#include "hca_thread.h"
#include "hca_cq.h"
#include "hca_cq_event.h"
#include "hca_qp.h"
#include "hca_rndv.h"
#include "hca_uar.h"

__thread struct hca_thread hca_thread;

#define HCA_THREAD_IS_CQ (1u << 31) /* numbers of objects have 24 bits */

/* The order towards a signal handler of the same thread, nothing else. */
static void hca_thread_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

bool hca_thread_enter_doorbell(uint32_t cqn)
{
    if (hca_thread.depth > 0) {
        if ((cqn != 0) && (hca_thread.num_cqs < HCA_THREAD_CQS)) {
            hca_thread.cqs[hca_thread.num_cqs++] = cqn;
        }
        hca_thread.again = true;
        return false;
    }
    hca_thread_enter();
    return true;
}

void hca_thread_enter(void)
{
    hca_thread.depth++;
    hca_thread_fence();
}

static void hca_thread_drain_failed(uint32_t num)
{
    if (num & HCA_THREAD_IS_CQ) {
        hca_qp_fail_cq(num & ~HCA_THREAD_IS_CQ);
    } else {
        hca_qp_flush_failed(num);
    }
}

/* Fetches what has matched, flushes the send queues of what
 * hca_thread_add_failed() has, fails the QPs of what hca_thread_add_overrun()
 * has, and writes what hca_thread_add_held() has. No lock may be held. */
static void hca_thread_drain(void)
{
    while (__builtin_expect(hca_thread.rndv != NULL, 0)) {
        hca_rndv_run();
    }
    while (__builtin_expect(hca_thread.num_failed > 0, 0)) {
        hca_thread_drain_failed(hca_thread.failed[--hca_thread.num_failed]);
    }
    while (__builtin_expect(hca_thread.num_held > 0, 0)) {
        hca_cq_close(hca_thread.held[--hca_thread.num_held]);
    }
}

/* What the nested doorbells asked for. */
static void hca_thread_run_nested(void)
{
    hca_thread.again = false;
    hca_thread_fence();
    while (hca_thread.num_cqs > 0) {
        hca_cq_arm(hca_thread.cqs[--hca_thread.num_cqs]);
    }
    hca_uar_run_all();
    hca_thread_drain();
}

void hca_thread_leave(void)
{
    hca_thread_fence();
    if (hca_thread.depth > 1) {
        hca_thread.depth--;
        return;
    }
    hca_thread_drain();
    for (;;) {
        hca_thread.depth = 0;
        hca_thread_fence();
        if (__builtin_expect(!hca_thread.again, 1)) {
            return;
        }
        hca_thread.depth = 1;
        hca_thread_run_nested();
        hca_thread_fence();
    }
}

bool hca_thread_add_held(uint32_t cqn)
{
    for (unsigned i = 0; i < hca_thread.num_held; i++) {
        if (hca_thread.held[i] == cqn) {
            return true;
        }
    }
    if ((hca_thread.depth == 0) || (hca_thread.num_held == HCA_THREAD_HELD)) {
        return false;
    }
    hca_thread.held[hca_thread.num_held++] = cqn;
    return true;
}

void hca_thread_add_failed(uint32_t qpn)
{
    if (hca_thread.num_failed < HCA_THREAD_FAILED) {
        hca_thread.failed[hca_thread.num_failed++] = qpn;
    }
}

void hca_thread_add_overrun(uint32_t cqn)
{
    hca_thread_add_failed(cqn | HCA_THREAD_IS_CQ);
}
