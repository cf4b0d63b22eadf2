/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The keys of slots, command CREATE_MKEY: made in batches, each with memory for
 * their layouts. Called by dcx_slot.c, without its lock as that takes long.
 */
#ifndef UCT_DCX_SLOT_KEY_H
#define UCT_DCX_SLOT_KEY_H

#include "dcx_slot.h"


/* Makes 'num' slots of a size, which have no layout. Returns NULL, logged, if it
 * cannot. */
uct_dcx_slot_batch_t *
uct_dcx_slot_batch_create(const uct_dcx_device_t *dev,
                          uct_dcx_slot_size_t *size, unsigned num);

void uct_dcx_slot_batch_destroy(uct_dcx_slot_batch_t *batch);

#endif
