/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Detects valgrind: see hca_valgrind.h. */
#define _GNU_SOURCE
#include "hca_valgrind.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0 /* valgrind_preloaded() must do */
#endif

static bool valgrind_preloaded(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return (preload != NULL) && (strstr(preload, "vgpreload") != NULL);
}

bool hca_valgrind_active(void)
{
    static atomic_int answer; /* 0: not asked yet; 1: no; 2: yes */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);

    if (known == 0) {
        known = 1 + (RUNNING_ON_VALGRIND || valgrind_preloaded());
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known == 2;
}
