/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Timers of the helper thread (hca_proc.h): one timerfd, set to the earliest of
 * them.
 */
#ifndef HCA_TIMER_H
#define HCA_TIMER_H

#include <stdint.h>

/* A timer of the helper. Embedded in process-local memory. */
struct hca_timer {
    uint64_t due;                        /* CLOCK_MONOTONIC ns, 0 not armed */
    void (*fn)(struct hca_timer *timer); /* in the helper */
    struct hca_timer *next;
};

/* Arms (or moves) a timer. fn runs once, in the helper thread, with no lock
 * held; it may arm the timer again. */
void hca_timer_arm(struct hca_timer *timer, uint64_t due);

/* Returns when @fn does not run and will not. Not from inside @fn. */
void hca_timer_cancel(struct hca_timer *timer);

uint64_t hca_time_ns(void);

/* Sets functions called before (@enter) and after (@leave) that of each timer.
 * Once, before the first timer is armed. */
void hca_timer_set_bracket(void (*enter)(void), void (*leave)(void));

/* --- for the helper ------------------------------------------------------ */

/* @return the timerfd, for the helper's epoll set, or -errno. */
int hca_timer_init(void);

/* Closes it. */
void hca_timer_cleanup(void);

/* Drops the parent's timers in a forked child, after hca_timer_cleanup(). */
void hca_timer_forked(void);

/* Runs timers that are due; the helper calls it if the timerfd is readable. */
void hca_timer_expire(void);

#endif
