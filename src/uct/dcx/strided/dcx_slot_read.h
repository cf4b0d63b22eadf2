/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory that a key names, for the processor: through the layouts that the key,
 * and keys in it, have. Off the data path. Called as dcx_slot.h is.
 */
#ifndef UCT_DCX_SLOT_READ_H
#define UCT_DCX_SLOT_READ_H

#include "dcx_slot.h"


/* The place of the byte that has this address in the key's space. A key of no
 * slot is one of memory, whose addresses are those of the process. Returns
 * UCS_ERR_NO_ELEM if there is none: a layout ends before, or was taken away with
 * its memory. */
ucs_status_t uct_dcx_slots_place(uct_dcx_slots_t *slots, uint32_t lkey,
                                 uint64_t addr, void **place_p);

/* Copies 'length' bytes from there on. Returns the same; then some of them may
 * have been copied. */
ucs_status_t uct_dcx_slots_read(uct_dcx_slots_t *slots, uint32_t lkey,
                                uint64_t addr, size_t length, void *buffer);

#endif
