/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Memory that a key names; see dcx_slot_read.h. The lock is held while memory is
 * read: who deregisters it takes its layouts away first.
 */
#include "dcx_slot_read.h"
#include "dcx_slot_key.h"

#include <ucs/sys/math.h>


/* A number belongs to a slot whatever its variant is. Of a key that was destroyed
 * the last one is left: another may be one of memory by now. */
static int
uct_dcx_slot_has_number(const uct_dcx_key_slot_t *slot, uint32_t number)
{
    return (slot->obj.obj != NULL) ? ((slot->lkey ^ number) >> 8 == 0) :
                                     (slot->lkey == number);
}


/* NULL: the key is one of memory. */
static const uct_dcx_key_slot_t *
uct_dcx_slots_of_lkey(uct_dcx_slots_t *slots, uint32_t lkey)
{
    const uct_dcx_key_slot_t *slot = *uct_dcx_slots_numbered(slots, lkey >> 8);

    while ((slot != NULL) && !uct_dcx_slot_has_number(slot, lkey)) {
        slot = slot->numbered;
    }
    return slot;
}


static int uct_dcx_slot_has_byte(const uct_dcx_key_slot_t *slot, uint32_t lkey,
                                 uint64_t addr)
{
    return (slot->state != UCT_DCX_SLOT_FREE) && (slot->lkey == lkey) &&
           (addr - slot->layout->start < slot->layout->length);
}


/* How many bytes lie there side by side, 'max' at most; 0 if there is none */
static size_t
uct_dcx_slots_follow(uct_dcx_slots_t *slots, uint32_t lkey, uint64_t addr,
                     size_t max, void **place_p)
{
    const uct_dcx_key_slot_t *slot;
    uct_dcx_layout_entry_t piece;

    while ((slot = uct_dcx_slots_of_lkey(slots, lkey)) != NULL) {
        if (!uct_dcx_slot_has_byte(slot, lkey, addr)) {
            return 0;
        }

        piece = uct_dcx_layout_find(slot->layout, addr - slot->layout->start);
        lkey  = piece.lkey;
        addr  = piece.addr;
        max   = ucs_min(max, piece.bytes);
    }

    *place_p = (void*)(uintptr_t)addr;
    return max;
}


ucs_status_t uct_dcx_slots_place(uct_dcx_slots_t *slots, uint32_t lkey,
                                 uint64_t addr, void **place_p)
{
    size_t count;

    ucs_spin_lock(&slots->lock);
    count = uct_dcx_slots_follow(slots, lkey, addr, 1, place_p);
    ucs_spin_unlock(&slots->lock);
    return (count > 0) ? UCS_OK : UCS_ERR_NO_ELEM;
}


ucs_status_t uct_dcx_slots_read(uct_dcx_slots_t *slots, uint32_t lkey,
                                uint64_t addr, size_t length, void *buffer)
{
    ucs_status_t status = UCS_OK;
    size_t pos          = 0;
    void *place;
    size_t count;

    ucs_spin_lock(&slots->lock);
    while ((pos < length) && (status == UCS_OK)) {
        count = uct_dcx_slots_follow(slots, lkey, addr + pos, length - pos,
                                     &place);
        if (count > 0) {
            memcpy(UCS_PTR_BYTE_OFFSET(buffer, pos), place, count);
            pos += count;
        } else {
            status = UCS_ERR_NO_ELEM;
        }
    }
    ucs_spin_unlock(&slots->lock);
    return status;
}
