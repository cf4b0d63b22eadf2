/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_pause.h"

enum { HOOK_PAUSE_MAX = 255 };

int hook_pause_take(hook_pause_t *pause)
{
    unsigned left = atomic_load_explicit(&pause->left, memory_order_relaxed);

    while ((left > 0) && !atomic_compare_exchange_weak_explicit(
                             &pause->left, &left, left - 1,
                             memory_order_relaxed, memory_order_relaxed)) {
    }
    return left > 0;
}

void hook_pause_came(hook_pause_t *pause, int is_short)
{
    unsigned length = atomic_load_explicit(&pause->length,
                                           memory_order_relaxed);

    length = !is_short                 ? 0 :
             (length < HOOK_PAUSE_MAX) ? 2 * length + 1 :
                                         HOOK_PAUSE_MAX;
    atomic_store_explicit(&pause->length, length, memory_order_relaxed);
    atomic_store_explicit(&pause->left, length, memory_order_relaxed);
}
