/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Work that a thread defers until it leaves the device, because of the locks
 * that it holds: rendezvous to fetch, QPs that it put in error as a responder,
 * whose send queues are to be flushed, CQs that overran, and CQs of which it
 * holds completions. hca_thread_leave() runs it.
 */
#ifndef HCA_TODO_H
#define HCA_TODO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_rndv;

#define HCA_TODO_FAILED 8u
#define HCA_TODO_HELD   8u

struct hca_todo {
    unsigned depth; /* of hca_thread_enter(); 0: not inside the device */
    unsigned num_held;
    uint32_t held[HCA_TODO_HELD]; /* CQs of which it holds completions */
    unsigned num_failed;
    uint32_t failed[HCA_TODO_FAILED]; /* QPs; HCA_TODO_IS_CQ: CQs */
    struct hca_rndv *rndv;            /* to be fetched, newest first */
};

#define HCA_TODO_IS_CQ (1u << 31) /* in failed[]: numbers have 24 bits */

/* Deferred work of this thread. In the static TLS block, so that a signal
 * handler can use it without the allocation of a first access to dynamic
 * TLS. */
extern __thread struct hca_todo hca_todo
    __attribute__((tls_model("initial-exec")));

static inline bool hca_todo_is_some(void)
{
    return (hca_todo.rndv != NULL) || (hca_todo.num_failed > 0) ||
           (hca_todo.num_held > 0);
}

/* Records a CQ whose completions must be written (hca_cq_close()).
 * @return false if this thread is not inside the device, or there is no
 *         room. */
bool hca_todo_add_held(uint32_t cqn);

/* Records a QP whose SQ must be flushed. If there is no room, the QP's own next
 * doorbell flushes it. */
void hca_todo_add_failed(uint32_t qpn);

/* Records a CQ whose QPs must be put in error. If there is no room, each QP
 * fails with its next completion. */
void hca_todo_add_overrun(uint32_t cqn);

#endif
