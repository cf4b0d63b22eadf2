/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Times and ratios of times on which the outcome of a test depends. A machine
 * that is N times slower than usual, or a tool that makes programs as slow,
 * sets DCX_TEST_SLOW=N, which multiplies all times.
 *
 * Not here: times that a test asks the device for, such as a retry's. The
 * device must not be faster, and a slow machine only makes them longer.
 */
#ifndef DCX_TEST_TIMES_H
#define DCX_TEST_TIMES_H

#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum {
    /* Limits, in milliseconds */

    /* Wait for an event that always comes. Only a hang lasts as long. */
    TIME_WAIT = 60000,
    /* Call that must not wait for a process or thread that is held up. The test
     * holds it for longer, so that a call that waits does not end in time. */
    TIME_PROMPT = 10000,
    /* Refusal of a datatype whose pieces are too many to walk through. */
    TIME_REFUSAL = 500,
    /* End of calls and operations on a device that has failed. */
    TIME_FATAL = 1000,
    /* Retries of one operation to a peer that does not answer, by default. */
    TIME_RETRIES = 8000,
    /* Messages of an interface that has grants to retry: it uses some of its
     * initiators for them, and gives up those to one peer together. */
    TIME_GRANTS = 1000,
    /* Call that must not wait for the device; the shortest of several counts.
     * An answer that does not come takes longer (UCX_DCX_TIMEOUT). */
    TIME_NO_DEVICE = 1,

    /* How long nothing must happen, in milliseconds */

    /* Retries for want of a receive (10 us each), or a device that is late by
     * 100 ms */
    QUIET_RNR = 300,
    /* Retries for want of an answer (67 ms each) */
    QUIET_ACK = 500,
    /* Another thread in a call that waits for a lock */
    QUIET_LOCK = 200,
    /* Messages of a late device (some microseconds) */
    QUIET_LATE = 2,

    /* Time after which the transport gives up a device that is made silent, in
     * milliseconds: short, as tests wait for it */
    TIME_SILENCE = 20,

    /* Times between signals, in microseconds. The handler and some of the
     * program have to run meanwhile. */
    SIGNAL_PERIOD = 100,

    /* Steps in which a test moves a call through an operation, in microseconds:
     * through a message, an operation of a late device, and retries. The last
     * step is about where the operation ends. */
    STEP_MESSAGE = 10,
    STEP_LATE    = 100,
    STEP_RETRY   = 2000,

    /* Ratios of processor times, the least of several runs each. They do not
     * depend on the machine's speed. */

    /* Search for overlaps, and sorting all blocks. Comparing all pairs takes a
     * hundred times as long. */
    RATIO_OVERLAP = 4,
    /* Walk of a list once for each row, and of the list itself. A walk of all
     * entries for each row takes far longer. */
    RATIO_ROWS = 30,
    /* recvmsg() with the device, and without. A check of all possible numbers
     * of descriptors takes far longer. */
    RATIO_RECVMSG = 2
};

/* Returns @time times the slowness of the machine. */
static inline int time_slow(int time)
{
    const char *slow = getenv("DCX_TEST_SLOW");

    return time * ((slow != NULL) ? atoi(slow) : 1);
}

static inline uint64_t time_now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (now.tv_sec * 1000000000ull) + now.tv_nsec;
}

static inline uint64_t time_now_us(void)
{
    return time_now_ns(CLOCK_MONOTONIC) / 1000;
}

/* Sleeps, in which time nothing must happen. */
static inline void time_quiet(int ms)
{
    poll(NULL, 0, time_slow(ms));
}

#endif
