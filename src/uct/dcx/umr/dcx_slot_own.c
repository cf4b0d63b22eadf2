/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots that are owned; see dcx_slot.h.
 */
#include "dcx_slot_key.h"
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>


/* The number that an owned slot keeps: peers may get it at any time. */
static int uct_dcx_slots_number(uct_dcx_slots_t *slots,
                                uct_dcx_key_slot_t *slot, uint32_t *number_p)
{
    return uct_dcx_slots_next_number(slots, slot, IBV_ACCESS_REMOTE_READ,
                                     number_p);
}


static uct_dcx_key_slot_t *
uct_dcx_slots_own_one(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &size->lru, list) {
        if (uct_dcx_slots_number(slots, slot, &slot->lkey)) {
            slot->rkey     = slot->lkey;
            slot->is_given = 1;
            ucs_list_del(&slot->list);
            ucs_list_head_init(&slot->list);
            return slot;
        }
    }
    return NULL;
}


static ucs_status_t
uct_dcx_slots_own_locked(uct_dcx_slots_t *slots, unsigned num_klm,
                         uct_dcx_key_slot_t **slot_p)
{
    uct_dcx_slot_size_t *size = uct_dcx_slots_size(&slots->sizes[
                                                   UCT_DCX_SLOT_SIZES],
                                                   num_klm);

    if (size == NULL) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    if (slots->status != UCS_OK) {
        return slots->status;
    }

    *slot_p = uct_dcx_slots_own_one(slots, size);
    if ((*slot_p == NULL) && (size->num < size->max)) {
        uct_dcx_slots_grow(slots, size);
        if (size->max < slots->params.max_owned) {
            return UCS_ERR_IO_ERROR;
        }
        *slot_p = uct_dcx_slots_own_one(slots, size);
    }
    return (*slot_p == NULL) ? UCS_ERR_NO_RESOURCE : UCS_OK;
}


ucs_status_t uct_dcx_slots_own(uct_dcx_slots_t *slots, unsigned num_klm,
                               uct_dcx_key_slot_t **slot_p)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    status = uct_dcx_slots_own_locked(slots, num_klm, slot_p);
    ucs_spin_unlock(&slots->lock);
    return status;
}


static int uct_dcx_slots_can_set(const uct_dcx_slots_t *slots,
                                 const uct_dcx_key_slot_t *slot)
{
    return (slot->state != UCT_DCX_SLOT_PENDING) &&
           uct_dcx_umr_is_available(&slots->umr);
}


static ucs_status_t
uct_dcx_slots_set_locked(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                         const uct_dcx_layout_t *layout)
{
    uint32_t number = slot->lkey;

    if (slots->status != UCS_OK) {
        return slots->status;
    }

    if (!uct_dcx_slots_can_set(slots, slot)) {
        uct_dcx_slots_poll(slots);
        if (!uct_dcx_slots_can_set(slots, slot)) {
            uct_dcx_umr_ring(&slots->umr);
            return UCS_ERR_NO_RESOURCE;
        }
    }

    if (!slot->is_given && !uct_dcx_slots_number(slots, slot, &number)) {
        ucs_error("%s: peers may still have all numbers of key 0x%x: take "
                  "another one", uct_dcx_device_name(slots->params.dev),
                  slot->lkey);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_slots_post(slots, slot, layout, number);
    slot->is_given = 1;
    slots->stats.sets++;
    return UCS_OK;
}


ucs_status_t uct_dcx_slots_set(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                               const uct_dcx_layout_t *layout)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    status = uct_dcx_slots_set_locked(slots, slot, layout);
    ucs_spin_unlock(&slots->lock);
    return status;
}


ucs_status_t
uct_dcx_slots_test(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    static const ucs_status_t result[] = {
        [UCT_DCX_SLOT_FREE]    = UCS_ERR_NO_ELEM,
        [UCT_DCX_SLOT_PENDING] = UCS_INPROGRESS,
        [UCT_DCX_SLOT_READY]   = UCS_OK,
        [UCT_DCX_SLOT_FAILED]  = UCS_ERR_IO_ERROR
    };
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    if (slot->state == UCT_DCX_SLOT_PENDING) {
        uct_dcx_slots_poll(slots);
        uct_dcx_umr_ring(&slots->umr);
    }
    status = result[slot->state];
    if ((status == UCS_INPROGRESS) && (slots->status != UCS_OK)) {
        status = slots->status;
    }
    ucs_spin_unlock(&slots->lock);
    return status;
}
