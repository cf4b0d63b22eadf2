/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots and the UMR queue: which of them have what the device was told, or was
 * told to drop; and an index of the keys that layouts name. Called with the
 * lock of the slots by the other files of them.
 *
 * The index has all layouts that the device may have. Of one slot these are
 * two: that of the slot, and the one in whose place that was given to the
 * device and has not arrived. After UMRs that failed there may be more of them:
 * the slot may name any key then.
 */
#ifndef UCT_DCX_SLOT_QUEUE_H
#define UCT_DCX_SLOT_QUEUE_H

#include "dcx_slot.h"
#include "uct/dcx/mem/dcx_mem.h"

#include <sched.h>


enum {
    UCT_DCX_SLOT_ANY_LKEY = 0 /* no key has this number */
};


struct uct_dcx_slot_name {
    ucs_list_link_t     list; /* names whose keys have the same hash */
    uct_dcx_key_slot_t  *slot;
    const uct_dcx_mem_t *mem; /* that the owner of the slot has named; or NULL */
    uint32_t            lkey;
};


/* Returns 1 if the layout of the slot names it, not one that was before. */
static inline int uct_dcx_slot_has_name(const uct_dcx_slot_name_t *name)
{
    return (size_t)(name - name->slot->names) < name->slot->num_names;
}


/* Returns 1 if the device may have a layout of the slot. */
static inline int uct_dcx_slot_is_named(const uct_dcx_key_slot_t *slot)
{
    return (slot->num_names + slot->num_past) > 0;
}


/* All names whose keys have the hash of this one */
static inline ucs_list_link_t *
uct_dcx_slots_names(uct_dcx_slots_t *slots, uint32_t lkey)
{
    return &slots->names[(lkey >> 8) % UCT_DCX_SLOT_BUCKETS];
}


/* The slot that has this layout, or NULL; owned ones are not found. */
uct_dcx_key_slot_t *
uct_dcx_slots_find(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout);

/* Its layout counts, and is found from now on; that of an owned one is not. */
void uct_dcx_slots_hash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* It has no layout any more. */
void uct_dcx_slots_unhash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* Lets other threads go on before this one looks at the device again. */
static inline void uct_dcx_slots_yield(uct_dcx_slots_t *slots)
{
    ucs_spin_unlock(&slots->lock);
    sched_yield();
    ucs_spin_lock(&slots->lock);
}


/* Lets go of the lock for a command, which takes long. Until its end nobody else
 * touches the queue, or the keys that it is for. */
static inline void uct_dcx_slots_begin_command(uct_dcx_slots_t *slots)
{
    slots->status = UCS_INPROGRESS;
    ucs_spin_unlock(&slots->lock);
}


static inline void
uct_dcx_slots_end_command(uct_dcx_slots_t *slots, ucs_status_t status)
{
    ucs_spin_lock(&slots->lock);
    slots->status = status;
}


/* Returns 1 if a layout may be posted now. Those that are GOING come first. */
static inline int uct_dcx_slots_can_post(uct_dcx_slots_t *slots)
{
    return (slots->status == UCS_OK) && ucs_list_is_empty(&slots->leaving) &&
           uct_dcx_umr_is_available(&slots->umr);
}


/* A layout for a slot, which is neither PENDING nor GOING and has this number
 * from now on, in the place of another one if the device has one. It may be
 * posted. The doorbell is the caller's business. */
void uct_dcx_slots_post(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                        const uct_dcx_layout_t *layout, uint32_t number);

/* Posts invalidations for those that are GOING, as many as there is room for,
 * and has the device begin with all that was posted. */
void uct_dcx_slots_ring(uct_dcx_slots_t *slots);

/* The queue is not idle. */
void uct_dcx_slots_take_completed(uct_dcx_slots_t *slots);

/* Takes what has completed. If something has failed, restarts the queue, for
 * which it lets go of the lock. */
static inline void uct_dcx_slots_poll(uct_dcx_slots_t *slots)
{
    if (ucs_unlikely((slots->status == UCS_OK) &&
                     !uct_dcx_umr_is_idle(&slots->umr))) {
        uct_dcx_slots_take_completed(slots);
    }
}

/* The queue is of no use any more, and executes nothing of what was posted:
 * 'reason' is for the log. Lets go of the lock meanwhile. */
void uct_dcx_slots_give_up(uct_dcx_slots_t *slots, const char *reason);

/* The number of a slot is given up: a peer may have it. */
void uct_dcx_slots_retire(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* The device has no layout any more of one that is GOING, and is on no list. */
void uct_dcx_slots_gone(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

#endif
