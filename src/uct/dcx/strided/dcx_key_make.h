/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Creates keys, command CREATE_MKEY, in batches with memory for their layouts.
 * Called by dcx_key.c, with the lock.
 */
#ifndef UCT_DCX_KEY_MAKE_H
#define UCT_DCX_KEY_MAKE_H

#include "dcx_key.h"


/* Makes more keys of a size; releases the lock meanwhile, as that takes long.
 * Logs a failure; for the cache it is not tried again, unless it is
 * UCS_ERR_NO_MEMORY. */
ucs_status_t uct_dcx_keys_grow(uct_dcx_keys_t *keys, uct_dcx_key_size_t *size);

#endif
