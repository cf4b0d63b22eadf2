/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Key slots that are held; see dcx_slot_held.h. A slot counts once, however many
 * hold it.
 */
#include "dcx_slot_held.h"
#include "dcx_slot_key.h"
#include "dcx_slot_queue.h"


static int uct_dcx_slot_size_is_full(const uct_dcx_slot_size_t *size)
{
    return size->num_held >= size->max / 2;
}


/* Whether it is of no use to ask for it, so that no other layout has to go for
 * it. */
static int uct_dcx_slots_is_full(uct_dcx_slots_t *slots,
                                 const uct_dcx_layout_t *layout)
{
    const uct_dcx_slot_size_t *size =
            uct_dcx_slots_size(slots->sizes, uct_dcx_layout_num_klm(layout));
    const uct_dcx_key_slot_t *slot;
    int is_full = 0;

    ucs_spin_lock(&slots->lock);
    if ((size != NULL) && uct_dcx_slot_size_is_full(size)) {
        slot    = uct_dcx_slots_find(slots, layout);
        is_full = (slot == NULL) || (slot->held == 0);
    }
    slots->stats.exhausted += is_full;
    ucs_spin_unlock(&slots->lock);
    return is_full;
}


/* Returns whether it can be: others may have been faster. */
static int
uct_dcx_slots_hold(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    int can_hold;

    ucs_spin_lock(&slots->lock);
    can_hold = (slot->held > 0) || !uct_dcx_slot_size_is_full(slot->size);
    if (can_hold && (slot->held++ == 0)) {
        slot->size->num_held++;
    }
    ucs_spin_unlock(&slots->lock);
    return can_hold;
}


ucs_status_t
uct_dcx_slots_get_held(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                       uct_dcx_key_slot_t **slot_p)
{
    ucs_status_t status;

    if (uct_dcx_slots_is_full(slots, layout)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    status = uct_dcx_slots_get(slots, layout, slot_p);
    if ((status == UCS_OK) && !uct_dcx_slots_hold(slots, *slot_p)) {
        uct_dcx_slots_put(slots, *slot_p);
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    return status;
}


void uct_dcx_slots_put_held(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    ucs_spin_lock(&slots->lock);
    if (--slot->held == 0) {
        slot->size->num_held--;
    }
    ucs_spin_unlock(&slots->lock);
    uct_dcx_slots_put(slots, slot);
}
