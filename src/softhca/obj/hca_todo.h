/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Notes what a thread does before it leaves the device, as it could not be done
 * under the locks that were held when it was found: rendezvous to fetch, QPs
 * that it has put in error as a responder, whose send queues are flushed, and
 * CQs of which it holds completions. Done by hca_thread_leave().
 */
#ifndef HCA_TODO_H
#define HCA_TODO_H

#include <stdbool.h>
#include <stdint.h>

struct hca_rndv;

#define HCA_TODO_FAILED 8u
#define HCA_TODO_HELD   8u

struct hca_todo {
    unsigned depth; /* of hca_thread_enter(); 0: not inside the device */
    unsigned num_held;
    uint32_t held[HCA_TODO_HELD]; /* CQs, of which it holds completions */
    unsigned num_failed;
    uint32_t failed[HCA_TODO_FAILED]; /* QPs; CQs that overran */
    struct hca_rndv *rndv; /* that this thread is to fetch, the last first */
};

#define HCA_TODO_IS_CQ (1u << 31) /* in failed[]: numbers have 24 bits */

/* In the static TLS block, so that a signal handler can reach it without the
 * allocation that a first access to dynamic TLS may take. */
extern __thread struct hca_todo hca_todo
        __attribute__((tls_model("initial-exec")));

/* Remembers a CQ that is to be written (hca_cq_close()).
 * @return false if this thread is not inside, or there is no more room. */
bool hca_todo_add_held(uint32_t cqn);

/* Remembers a QP whose SQ is to be flushed. If there is no more room its own
 * next doorbell flushes it. */
void hca_todo_add_failed(uint32_t qpn);

/* Remembers a CQ whose QPs are to be failed; those for which there is no more
 * room fail with their next completion. */
void hca_todo_add_overrun(uint32_t cqn);

#endif
