/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which slots have layouts that name a key: an index by its number. It has the
 * layouts that the device may have, which of one slot are two: that of the
 * slot, and the one in whose place that was given to the device and has not
 * arrived. After UMRs that failed there may be more of them: the slot may name
 * any key then. Called by the other files of slots, with their lock.
 */
#ifndef UCT_DCX_SLOT_NAME_H
#define UCT_DCX_SLOT_NAME_H

#include "dcx_slot.h"


enum {
    UCT_DCX_SLOT_ANY_LKEY = 0 /* no key has this number */
};


struct uct_dcx_slot_name {
    ucs_list_link_t    list; /* names whose keys have the same hash */
    uct_dcx_key_slot_t *slot;
    uint32_t           lkey;
    uint32_t           half; /* of the names of the slot */
};


/* The names that a key of so many translations has room for */
static inline unsigned uct_dcx_slot_max_names(unsigned num_klm)
{
    return 2 * num_klm;
}


/* Returns 1 if the device may have a layout of the slot. */
static inline int uct_dcx_slot_is_named(const uct_dcx_key_slot_t *slot)
{
    return (slot->num_names[0] + slot->num_names[1]) > 0;
}


static inline ucs_list_link_t *
uct_dcx_slots_names(uct_dcx_slots_t *slots, uint32_t lkey)
{
    return &slots->names[(lkey >> 8) % UCT_DCX_SLOT_BUCKETS];
}


/* Adds what the layout of a slot names. The one before is that in whose place
 * it comes. */
void uct_dcx_slot_name(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot);

/* The device has the layout of the slot and no other. */
void uct_dcx_slot_unname_past(uct_dcx_key_slot_t *slot);

/* The device has none. */
void uct_dcx_slot_unname(uct_dcx_key_slot_t *slot);

#endif
