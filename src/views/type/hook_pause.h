/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Avoids useless views of receives that have room for long messages, but get
 * short ones. After one such message, one receive of the type goes without a
 * view; after the next, three; then seven and so on up to 255, until a long
 * message comes.
 *
 * Any thread may call this, without a lock. If two messages come at once, only
 * one of them may count.
 */
#ifndef HOOK_PAUSE_H
#define HOOK_PAUSE_H

#include <stdatomic.h>

typedef struct hook_pause {
    atomic_uint length; /* receives without a view after a short message */
    atomic_uint left;   /* of these, still to come */
} hook_pause_t;


/* Returns 1 if a receive is to go without a view, and counts it. */
int hook_pause_take(hook_pause_t *pause);

/* Records that a message came into a receive with a view. @is_short: it was
 * shorter than UCX_DCX_TYPES_MIN_LENGTH. */
void hook_pause_came(hook_pause_t *pause, int is_short);

#endif
