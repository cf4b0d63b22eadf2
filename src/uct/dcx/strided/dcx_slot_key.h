/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The keys of slots, command CREATE_MKEY: made in batches, each with memory for
 * their layouts; the numbers that they have, and which slot has one. Called by
 * the other files of slots, with their lock.
 */
#ifndef UCT_DCX_SLOT_KEY_H
#define UCT_DCX_SLOT_KEY_H

#include "dcx_slot.h"


/* Of UCT_DCX_SLOT_SIZES, the smallest for so many translations; NULL: none is
 * so large */
uct_dcx_slot_size_t *
uct_dcx_slots_size(uct_dcx_slot_size_t *sizes, unsigned num_klm);

/* Makes more slots of a size, meanwhile without the lock as that takes long.
 * Returns 0 if it cannot: that is logged, and there are not to be any more for
 * the cache. */
int uct_dcx_slots_grow(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size);

/* Whether a peer may still have a number that was given up */
int uct_dcx_slots_is_stale(const uct_dcx_slots_t *slots, uint32_t number);

/* The number that the key of a slot gets with the next layout: another variant.
 * A layout that gives peers no right may have any. Returns 0 if peers may still
 * have all of them. */
int uct_dcx_slots_next_number(const uct_dcx_slots_t *slots,
                              const uct_dcx_key_slot_t *slot, uint32_t access,
                              uint32_t *number_p);

void uct_dcx_slot_batch_destroy(uct_dcx_slot_batch_t *batch);

#endif
