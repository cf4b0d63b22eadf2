/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receives into a type that has room for long messages, but gets short ones:
 * the view is in vain. After one such message a receive goes without, after
 * another three, then seven and so on, until a long message comes.
 *
 * By any thread without a lock. Where two come at once a receive more or less
 * may go without.
 */
#ifndef HOOK_PAUSE_H
#define HOOK_PAUSE_H

#include <stdatomic.h>

typedef struct hook_pause {
    atomic_uint
            length;   /* receives without a view after the last short message */
    atomic_uint left; /* ... to come */
} hook_pause_t;


/* Whether a receive shall go without; it is counted. */
int hook_pause_take(hook_pause_t *pause);

/* A message came into a receive by view. */
void hook_pause_came(hook_pause_t *pause, int is_short);

#endif
