/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates keys, command CREATE_MKEY, in batches with memory for their layouts.
 * Called by dcx_key.c, with the lock.
 */
#ifndef UCT_DCX_KEY_MAKE_H
#define UCT_DCX_KEY_MAKE_H

#include "dcx_key.h"


/* Makes more keys of a size; releases the lock meanwhile, as that takes long.
 * Returns 1, or 0 on failure, which is logged, and for the cache not tried
 * again. */
int uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size);

#endif
