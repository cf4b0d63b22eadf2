/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots and the UMR queue: which of them have what the device was told, or was
 * told to drop. Called with the lock of the slots by the other files of them.
 */
#ifndef UCT_DCX_SLOT_QUEUE_H
#define UCT_DCX_SLOT_QUEUE_H

#include "dcx_slot.h"


/* The slot that has this layout, or NULL; owned ones are not found. */
uct_dcx_key_slot_t *
uct_dcx_slots_find(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout);

/* Its layout counts, and is found from now on; that of an owned one is not. */
void uct_dcx_slots_hash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* It has no layout any more. */
void uct_dcx_slots_unhash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* A layout for a slot, which is not PENDING and has this number from now on, in
 * the place of another one if the device has one. The queue is available. The
 * doorbell is the caller's business. */
void uct_dcx_slots_post(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                        const uct_dcx_layout_t *layout, uint32_t number);

/* Takes what has completed. */
void uct_dcx_slots_poll(uct_dcx_slots_t *slots);

/* Until all that was posted has ended, one way or the other: if the device is
 * silent for long, the queue is of no use any more. */
void uct_dcx_slots_drain(uct_dcx_slots_t *slots);

/* The queue is of no use any more, and executes nothing of what was posted:
 * 'reason' is for the log. */
void uct_dcx_slots_give_up(uct_dcx_slots_t *slots, const char *reason);

/* Takes a layout out of use, if it is. The device has it still. */
void uct_dcx_slots_clear(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* The device has no layout of it any more, and its number is given up. */
void uct_dcx_slots_retire(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

#endif
