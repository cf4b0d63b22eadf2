/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Entering and leaving the device. A thread that leaves runs the work that it
 * has deferred (hca_todo.h).
 */
#ifndef HCA_THREAD_H
#define HCA_THREAD_H

#include "softhca/obj/hca_todo.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Bracket code that takes locks of objects. A signal handler of the program may
 * interrupt that code and ring a doorbell, which would wait for a lock of its
 * own thread: inside the brackets a doorbell is only recorded. The outermost
 * hca_thread_leave() runs it; the caller holds no lock then. They nest. */
static inline void hca_thread_enter(void)
{
    hca_todo.depth++;
    atomic_signal_fence(memory_order_seq_cst);
}

void hca_thread_leave(void);

/* Records a doorbell that rings inside the brackets, see below. */
void hca_thread_nest(uint32_t cqn);

/* Enters for a doorbell, of a CQ if @cqn is not 0. @return false if this thread
 * is inside already: the doorbell is recorded, and the caller returns without
 * hca_thread_leave(). */
static inline bool hca_thread_enter_doorbell(uint32_t cqn)
{
    if (__builtin_expect(hca_todo.depth > 0, 0)) {
        hca_thread_nest(cqn);
        return false;
    }
    hca_thread_enter();
    return true;
}

#endif
