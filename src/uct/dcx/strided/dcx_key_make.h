/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates keys, command CREATE_MKEY, in batches with memory for their layouts;
 * assigns their numbers, and finds a key by its number. Called by the other
 * files of keys, with their lock.
 */
#ifndef UCT_DCX_KEY_MAKE_H
#define UCT_DCX_KEY_MAKE_H

#include "dcx_key.h"


/* Returns the smallest of UCT_DCX_KEY_SIZES sizes for @num_klm translations;
 * NULL if none is large enough. */
uct_dcx_key_size_t *uct_dcx_keys_size(uct_dcx_key_size_t *sizes,
                                      unsigned num_klm);

/* Makes more keys of a size; releases the lock meanwhile, as that takes long.
 * Returns 0 if that fails: it is logged, and not tried again for the cache. */
int uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size);

/* Returns 1 if a peer may still use a number that was released. */
int uct_dcx_keys_is_stale(const uct_dcx_keys_t *keys, uint32_t number);

/* Finds the number of a key with its next layout: another variant. A layout
 * without rights for peers may have any. Returns 0 if peers may still use all
 * of them. */
int uct_dcx_keys_next_number(const uct_dcx_keys_t *keys,
                             const uct_dcx_key_t *key, uint32_t access,
                             uint32_t *number_p);

void uct_dcx_key_batch_destroy(uct_dcx_key_batch_t *batch);

#endif
