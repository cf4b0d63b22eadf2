/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Calls of the process that measures (near) to the other one (far), and their
 * answers: one call at a time, with one message of dcx in either direction.
 */
#ifndef DCX_PERF_CALL_H
#define DCX_PERF_CALL_H

#include "perf_mem.h"

enum perf_verb {
    PERF_CALL_BEGIN,  /* allocate memory for a case; the answer has its keys */
    PERF_CALL_FILL,   /* write pattern @seed to the buffer; if @is_staged, to
                       * staging, too */
    PERF_CALL_CLEAR,  /* write bytes that are no data to buffer and staging */
    PERF_CALL_CHECK,  /* compare @count places of staging, and the buffer unless
                       * @is_staged, with the pattern */
    PERF_CALL_PACK,   /* copy from the buffer to @count places of staging */
    PERF_CALL_UNPACK, /* copy from @count places of staging to the buffer */
    PERF_CALL_END,    /* free the memory of the case */
    PERF_CALL_QUIT
};

struct perf_call {
    uint32_t verb;
    uint32_t count;
    uint32_t is_staged; /* the data is in staging, in one piece */
    uint32_t with_cpu;  /* to pack or unpack: measure cpu_ns and ns */
    uint64_t seed;
    struct perf_case what; /* of PERF_CALL_BEGIN */
};

struct perf_answer {
    uint32_t is_wrong; /* of PERF_CALL_CHECK: a byte differs, see @wrong */
    struct perf_wrong wrong;
    int64_t cpu_ns;
    uint64_t ns;
    struct perf_keys keys; /* of PERF_CALL_BEGIN */
};

_Static_assert(sizeof(struct perf_call) <= PERF_MAIL_MAX, "");
_Static_assert(sizeof(struct perf_answer) <= PERF_MAIL_MAX, "");

/* Sends a call, and waits for its answer. */
void perf_call(struct perf_uct *uct, const struct perf_call *call,
               struct perf_answer *answer);

/* Serves calls on the far side, until PERF_CALL_QUIT. */
void perf_serve(struct perf_uct *uct);

/* Functions of the calls, which either side applies to its own memory.
 * perf_do_check() returns true if no byte differs; otherwise it stores the
 * first one that does. */
void perf_do_fill(const struct perf_mem *mem, uint64_t seed, bool is_staged);
void perf_do_clear(const struct perf_mem *mem, uint64_t seed);
bool perf_do_check(const struct perf_mem *mem, uint64_t seed, bool is_staged,
                   unsigned count, struct perf_wrong *wrong);
void perf_do_pack(const struct perf_mem *mem, unsigned count);
void perf_do_unpack(const struct perf_mem *mem, unsigned count);

#endif
