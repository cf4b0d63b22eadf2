/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Clocks in ns, and a stopwatch for the processor time of parts of a loop.
 * Reading the processor clock is a system call, which costs as much as the
 * measured parts. So its cost is subtracted, and loops that measure other times
 * do not read it.
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
    bool is_on;     /* false: do not measure */
    int64_t ns;     /* sum of all parts */
    uint64_t begin; /* of the current part */
    uint64_t cost;  /* ns that the clock itself costs */
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
        cpu->ns += perf_clock(CLOCK_THREAD_CPUTIME_ID) - cpu->begin - cpu->cost;
    }
}

/* Returns the time of an empty part in ns: the shortest of 1000, measured by
 * the first call. */
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
