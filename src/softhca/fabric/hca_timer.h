/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Timers of the helper thread (hca_helper.h): one timerfd, set to the earliest
 * of them.
 */
#ifndef HCA_TIMER_H
#define HCA_TIMER_H

#include <stdbool.h>
#include <stdint.h>

/* A timer of the helper, in process-local memory. The caller sets fn, and the
 * rest to 0. */
struct hca_timer {
    uint64_t due;                        /* hca_time_ns(), 0 not armed */
    void (*fn)(struct hca_timer *timer); /* in the helper */
    struct hca_timer *next;
};

/* Arms a timer, or moves an armed one, to @due of hca_time_ns(), not 0. fn runs
 * once, in the helper thread, between the functions of hca_timer_set_bracket();
 * it may arm or free the timer. */
void hca_timer_arm(struct hca_timer *timer, uint64_t due);

/* Disarms a timer and waits until fn has returned, or the time is over
 * (hca_mutex_deadline()): fn may wait for a stopped process. The caller is not
 * fn, and holds no lock that fn takes.
 * @return false if fn still runs. */
bool hca_timer_cancel(struct hca_timer *timer);

/* Returns CLOCK_MONOTONIC in nanoseconds. */
uint64_t hca_time_ns(void);

/* Sets functions to call before (@enter) and after (@leave) that of each timer.
 * Call this once, before the first timer is armed. */
void hca_timer_set_bracket(void (*enter)(void), void (*leave)(void));

/* --- for the helper ------------------------------------------------------ */

/* Opens the timerfd. @return it, for the helper's epoll set, or -errno. */
int hca_timer_init(void);

/* Closes the timerfd. */
void hca_timer_cleanup(void);

/* Drops the parent's timers in a forked child, after hca_timer_cleanup(). */
void hca_timer_forked(void);

/* Runs timers that are due; the helper calls it if the timerfd is readable. */
void hca_timer_expire(void);

#endif
