/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the current thread is doing inside the device: how deep it is in, what
 * a nested doorbell asked for, and which QPs it has put in error as a
 * responder, whose send queues are flushed once it holds no lock, and of which
 * CQs it holds completions until then.
 */
#ifndef HCA_THREAD_H
#define HCA_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct hca_rndv;

#define HCA_THREAD_FAILED 8u
#define HCA_THREAD_CQS    8u
#define HCA_THREAD_HELD   8u

struct hca_thread {
    unsigned depth;
    bool     again; /* a doorbell rang inside */
    unsigned num_cqs;
    uint32_t cqs[HCA_THREAD_CQS]; /* ... to arm these, if that many */
    uint32_t bf_qpn; /* whose WQE is rung by a push (hca_bf.h); 0: nobody's */
    uint16_t bf_idx, bf_bytes;
    unsigned num_held;
    uint32_t held[HCA_THREAD_HELD]; /* CQs, of which it holds completions */
    unsigned num_failed;
    uint32_t failed[HCA_THREAD_FAILED]; /* QPs; CQs that overran */
    struct hca_rndv *rndv; /* that this thread is to fetch, the last first */
    uint64_t ticks;        /* what softhca_ticks() returns */
};

/* In the static TLS block, so that a signal handler can reach it without the
 * allocation that a first access to dynamic TLS may take. */
extern __thread struct hca_thread hca_thread
        __attribute__((tls_model("initial-exec")));

/* Brackets for code that takes locks of objects. A signal handler of the
 * program may interrupt it in the same thread and ring a doorbell, which would
 * wait for its own thread: inside the brackets a doorbell is only noted, and
 * run by the outermost hca_thread_leave(). They nest. */
void hca_thread_enter(void);
void hca_thread_leave(void);

/* Enters for a doorbell, of a CQ if cqn is not 0. @return false if this thread
 * is inside already: it has been noted, and the caller returns. */
bool hca_thread_enter_doorbell(uint32_t cqn);

/* Remembers a CQ that is to be written (hca_cq_close()).
 * @return false if this thread is not inside, or there is no more room. */
bool hca_thread_add_held(uint32_t cqn);

/* Remembers a QP whose SQ is to be flushed. If there is no more room its own
 * next doorbell flushes it. */
void hca_thread_add_failed(uint32_t qpn);

/* Remembers a CQ whose QPs are to be failed; those for which there is no more
 * room fail with their next completion. */
void hca_thread_add_overrun(uint32_t cqn);

#endif
