/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The index of keys that layouts name; see dcx_slot_name.h.
 */
#include "dcx_slot_name.h"


static uct_dcx_slot_name_t *
uct_dcx_slot_names_of(const uct_dcx_key_slot_t *slot, unsigned half)
{
    return &slot->names[half * slot->size->num_klm];
}


static void uct_dcx_slot_add_name(uct_dcx_slots_t *slots,
                                  uct_dcx_key_slot_t *slot, unsigned half,
                                  uint32_t lkey)
{
    uct_dcx_slot_name_t *name =
            uct_dcx_slot_names_of(slot, half) + slot->num_names[half]++;

    name->slot = slot;
    name->lkey = lkey;
    name->half = half;
    ucs_list_add_tail(uct_dcx_slots_names(slots, lkey), &name->list);
}


static void uct_dcx_slot_drop_names(uct_dcx_key_slot_t *slot, unsigned half)
{
    uct_dcx_slot_name_t *name = uct_dcx_slot_names_of(slot, half);

    for (; slot->num_names[half] > 0; --slot->num_names[half], ++name) {
        ucs_list_del(&name->list);
    }
}


/* Returns 1 if the device has, and gets, layouts that name one key, the
 * same. */
static int uct_dcx_slot_is_same_name(const uct_dcx_key_slot_t *slot)
{
    const uct_dcx_layout_entry_t *entry = slot->layout->entries;
    const uct_dcx_layout_entry_t *end   = entry + slot->layout->num;
    uint32_t lkey;

    if ((slot->num_names[slot->half] != 1) ||
        (slot->num_names[!slot->half] != 0)) {
        return 0;
    }

    lkey = uct_dcx_slot_names_of(slot, slot->half)->lkey;
    while ((entry < end) && (entry->lkey == lkey)) {
        ++entry;
    }
    return entry == end;
}


void uct_dcx_slot_name(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    const uct_dcx_layout_entry_t *entry = slot->layout->entries;
    const uct_dcx_layout_entry_t *end   = entry + slot->layout->num;
    uint32_t lkey                       = UCT_DCX_SLOT_ANY_LKEY;

    if (uct_dcx_slot_is_same_name(slot)) {
        return;
    }

    if (slot->num_names[!slot->half] == 0) {
        slot->half = !slot->half;
    } else {
        uct_dcx_slot_unname(slot);
        uct_dcx_slot_add_name(slots, slot, !slot->half, UCT_DCX_SLOT_ANY_LKEY);
    }

    for (; entry < end; ++entry) {
        if (entry->lkey != lkey) { /* most have that of the one before */
            lkey = entry->lkey;
            uct_dcx_slot_add_name(slots, slot, slot->half, lkey);
        }
    }
}


void uct_dcx_slot_unname_past(uct_dcx_key_slot_t *slot)
{
    uct_dcx_slot_drop_names(slot, !slot->half);
}


void uct_dcx_slot_unname(uct_dcx_key_slot_t *slot)
{
    uct_dcx_slot_drop_names(slot, 0);
    uct_dcx_slot_drop_names(slot, 1);
}
