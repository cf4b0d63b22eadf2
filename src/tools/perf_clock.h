/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Clocks, in ns; and the time of the processor that a part of a loop takes. A
 * look at that clock is a system call, which costs as much as what is measured:
 * what it costs itself is taken off, and no loop that is timed otherwise has
 * it.
 */
#ifndef DCX_PERF_CLOCK_H
#define DCX_PERF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t perf_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static inline uint64_t perf_now(void)
{
    return perf_clock(CLOCK_MONOTONIC);
}

struct perf_cpu {
    bool     is_on;
    int64_t  ns;    /* of all parts */
    uint64_t begin; /* of the one under way */
    uint64_t cost;  /* of the clock */
};

static inline void perf_cpu_begin(struct perf_cpu *cpu)
{
    if (cpu->is_on) {
        cpu->begin = perf_clock(CLOCK_THREAD_CPUTIME_ID);
    }
}

static inline void perf_cpu_end(struct perf_cpu *cpu)
{
    if (cpu->is_on) {
        cpu->ns += perf_clock(CLOCK_THREAD_CPUTIME_ID) - cpu->begin -
                   cpu->cost;
    }
}

/* The least of some times that a part takes which has nothing in it */
static inline uint64_t perf_cpu_cost(void)
{
    static uint64_t least = UINT64_MAX;
    static int rounds     = 1000;

    for (; rounds > 0; rounds--) {
        uint64_t begin = perf_clock(CLOCK_THREAD_CPUTIME_ID);
        uint64_t cost  = perf_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
        least          = (cost < least) ? cost : least;
    }
    return least;
}

#endif
