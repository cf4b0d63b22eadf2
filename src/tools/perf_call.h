/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What the process that measures (near) asks of the other one (far), and the
 * answers: one call at a time, each a message of dcx in either direction.
 */
#ifndef DCX_PERF_CALL_H
#define DCX_PERF_CALL_H

#include "perf_mem.h"

enum perf_verb {
    PERF_CALL_BEGIN,  /* a case: memory for it; the answer has its keys */
    PERF_CALL_FILL,   /* the pattern `seed` into the buffer */
    PERF_CALL_CLEAR,  /* no data anywhere */
    PERF_CALL_CHECK,  /* the buffer has the pattern, and `count` places of
                       * staging */
    PERF_CALL_PACK,   /* from the buffer to `count` places of staging */
    PERF_CALL_UNPACK, /* ... and back */
    PERF_CALL_END,    /* of the case */
    PERF_CALL_QUIT
};

struct perf_call {
    uint32_t         verb;
    uint32_t         count;
    uint32_t         is_staged; /* staging is meant, in one piece */
    uint32_t         with_cpu;  /* the answer has cpu_ns and ns */
    uint64_t         seed;
    struct perf_case what;
};

struct perf_answer {
    uint32_t          is_wrong;
    struct perf_wrong wrong;
    int64_t           cpu_ns;
    uint64_t          ns;
    struct perf_keys  keys;
};

_Static_assert(sizeof(struct perf_call) <= PERF_MAIL_MAX, "");
_Static_assert(sizeof(struct perf_answer) <= PERF_MAIL_MAX, "");

/* A call, and its answer */
void perf_call(struct perf_uct *uct, const struct perf_call *call,
               struct perf_answer *answer);

/* The far side: answers until it is told to quit. */
void perf_serve(struct perf_uct *uct);

/* What either side does with its own memory */
void perf_do_fill(const struct perf_mem *mem, uint64_t seed, bool is_staged);
void perf_do_clear(const struct perf_mem *mem, uint64_t seed);
bool perf_do_check(const struct perf_mem *mem, uint64_t seed, bool is_staged,
                   unsigned count, struct perf_wrong *wrong);
void perf_do_pack(const struct perf_mem *mem, unsigned count);
void perf_do_unpack(const struct perf_mem *mem, unsigned count);

#endif
