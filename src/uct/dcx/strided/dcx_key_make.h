/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Making keys, command CREATE_MKEY: in batches, each with memory for layouts;
 * the numbers that keys have, and which key has one. Called by the other files
 * of keys, with their lock.
 */
#ifndef UCT_DCX_KEY_MAKE_H
#define UCT_DCX_KEY_MAKE_H

#include "dcx_key.h"


/* Of UCT_DCX_KEY_SIZES, the smallest for so many translations; NULL: none is
 * so large */
uct_dcx_key_size_t *
uct_dcx_keys_size(uct_dcx_key_size_t *sizes, unsigned num_klm);

/* Makes more keys of a size, meanwhile without the lock as that takes long.
 * Returns 0 if it cannot: that is logged, and there are not to be any more for
 * the cache. */
int uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size);

/* Returns 1 if a peer may still have a number that was given up. */
int uct_dcx_keys_is_stale(const uct_dcx_keys_t *keys, uint32_t number);

/* The number that a key gets with the next layout: another variant.
 * A layout that gives peers no right may have any. Returns 0 if peers may still
 * have all of them. */
int uct_dcx_keys_next_number(const uct_dcx_keys_t *keys,
                             const uct_dcx_key_t *key, uint32_t access,
                             uint32_t *number_p);

void uct_dcx_key_batch_destroy(uct_dcx_key_batch_t *batch);

#endif
