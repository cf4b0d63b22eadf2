/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots that are owned; see dcx_slot.h.
 */
#include "dcx_slot_key.h"
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"


/* The number of the next owner: no peer has it. Variants are used in turn, so if
 * the next one was given up lately, most others were. */
static int uct_dcx_slots_number(const uct_dcx_slots_t *slots,
                                uct_dcx_key_slot_t *slot, int is_thorough)
{
    uint32_t next = (slot->lkey & ~0xffu) | (uint8_t)(slot->lkey + 1);

    if (!uct_dcx_slots_is_stale(slots, next)) {
        slot->lkey = next;
        return 1;
    }
    return is_thorough &&
           uct_dcx_slots_next_number(slots, slot, IBV_ACCESS_REMOTE_READ,
                                     &slot->lkey);
}


static uct_dcx_key_slot_t *
uct_dcx_slots_find_number(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size,
                          int is_thorough)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &size->lru, list) {
        if (uct_dcx_slots_number(slots, slot, is_thorough)) {
            return slot;
        }
    }
    return NULL;
}


/* None was found: makes more, or waits for who does. Returns whether there may be
 * one now. */
static int uct_dcx_slots_more(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size)
{
    if (size->num < size->max) {
        return uct_dcx_slots_grow(slots, size);
    }

    if (size->is_growing == 0) {
        return 0;
    }

    uct_dcx_slots_yield(slots);
    return 1;
}


/* One that nobody owns; makes more of them if there is none. */
static uct_dcx_key_slot_t *
uct_dcx_slots_take(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size)
{
    uct_dcx_key_slot_t *slot;

    do {
        slot = uct_dcx_slots_find_number(slots, size, 0);
    } while ((slot == NULL) && uct_dcx_slots_more(slots, size));

    if (slot == NULL) {
        slot = uct_dcx_slots_find_number(slots, size, 1);
    }
    if (slot != NULL) {
        slot->rkey    = slot->lkey;
        slot->is_lost = 0;
        ucs_list_del(&slot->list);
        ucs_list_head_init(&slot->list);
    }
    return slot;
}


/* Its layout is gone. 'is_given': a peer has the number. */
static void uct_dcx_slots_leave(uct_dcx_slots_t *slots,
                                uct_dcx_key_slot_t *slot, int is_given)
{
    slot->is_given = is_given;
    uct_dcx_slots_retire(slots, slot);
    ucs_list_add_tail(&slot->size->lru, &slot->list);
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

    if (UCS_STATUS_IS_ERR(slots->status)) {
        return slots->status;
    }

    if (size->num_owned == slots->params.max_owned) {
        return UCS_ERR_NO_RESOURCE;
    }

    size->num_owned++; /* taking it may let go of the lock */
    *slot_p = uct_dcx_slots_take(slots, size);
    if ((*slot_p != NULL) && !UCS_STATUS_IS_ERR(slots->status)) {
        return UCS_OK;
    }

    if (*slot_p != NULL) {
        uct_dcx_slots_leave(slots, *slot_p, 0);
    }
    size->num_owned--;
    return UCS_ERR_IO_ERROR;
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


static int uct_dcx_slots_can_set(uct_dcx_slots_t *slots,
                                 const uct_dcx_key_slot_t *slot)
{
    return (slot->state != UCT_DCX_SLOT_PENDING) &&
           (slot->state != UCT_DCX_SLOT_GOING) && uct_dcx_slots_can_post(slots);
}


/* For one that has lost its layout, as peers have its number. Making keys lets
 * go of the lock. */
static ucs_status_t
uct_dcx_slots_exchange(uct_dcx_slots_t *slots, uct_dcx_key_slot_t **slot_p)
{
    uct_dcx_key_slot_t *slot = uct_dcx_slots_take(slots, (*slot_p)->size);

    if (slot == NULL) {
        return UCS_ERR_IO_ERROR;
    }

    uct_dcx_slots_leave(slots, *slot_p, 1);
    *slot_p = slot;
    return UCS_OK;
}


/* Whether the device has this layout in it */
static int uct_dcx_slots_has(const uct_dcx_key_slot_t *slot,
                             const uct_dcx_layout_t *layout)
{
    return (slot->state == UCT_DCX_SLOT_READY) &&
           (slot->layout->start == layout->start) &&
           uct_dcx_layout_is_equal(slot->layout, layout);
}


/* May let go of the lock, but not from when the layout before is replaced. */
static ucs_status_t
uct_dcx_slots_set_locked(uct_dcx_slots_t *slots, uct_dcx_key_slot_t **slot_p,
                         int is_given, const uct_dcx_layout_t *layout)
{
    ucs_status_t status = UCS_OK;

    if ((slots->status == UCS_OK) && uct_dcx_slots_has(*slot_p, layout)) {
        slots->stats.sets++;
        return UCS_OK;
    }

    if (!uct_dcx_slots_can_set(slots, *slot_p)) {
        uct_dcx_slots_poll(slots);
    }

    if (uct_dcx_slots_can_set(slots, *slot_p) && (*slot_p)->is_lost &&
        is_given) {
        status = uct_dcx_slots_exchange(slots, slot_p);
    }

    if (UCS_STATUS_IS_ERR(slots->status)) {
        status = slots->status;
    }
    if (status != UCS_OK) {
        return status;
    }

    if (!uct_dcx_slots_can_set(slots, *slot_p)) {
        uct_dcx_slots_ring(slots);
        return UCS_ERR_NO_RESOURCE;
    }

    uct_dcx_slots_post(slots, *slot_p, layout, (*slot_p)->lkey);
    (*slot_p)->is_lost = 0;
    slots->stats.sets++;
    return UCS_OK;
}


ucs_status_t
uct_dcx_slots_set(uct_dcx_slots_t *slots, uct_dcx_key_slot_t **slot_p,
                  int is_given, const uct_dcx_layout_t *layout)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    status = uct_dcx_slots_set_locked(slots, slot_p, is_given, layout);
    ucs_spin_unlock(&slots->lock);
    return status;
}


static ucs_status_t uct_dcx_slots_state(const uct_dcx_slots_t *slots,
                                        const uct_dcx_key_slot_t *slot)
{
    static const ucs_status_t result[] = {
        [UCT_DCX_SLOT_FREE]    = UCS_ERR_NO_ELEM,
        [UCT_DCX_SLOT_PENDING] = UCS_INPROGRESS,
        [UCT_DCX_SLOT_READY]   = UCS_OK,
        [UCT_DCX_SLOT_FAILED]  = UCS_ERR_IO_ERROR,
        [UCT_DCX_SLOT_GOING]   = UCS_ERR_NO_ELEM
    };

    return ((slot->state == UCT_DCX_SLOT_PENDING) &&
            (slots->status != UCS_OK)) ? slots->status : result[slot->state];
}


ucs_status_t
uct_dcx_slots_peek(uct_dcx_slots_t *slots, const uct_dcx_key_slot_t *slot)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    status = uct_dcx_slots_state(slots, slot);
    ucs_spin_unlock(&slots->lock);
    return status;
}


ucs_status_t
uct_dcx_slots_test(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    if (slot->state == UCT_DCX_SLOT_PENDING) {
        uct_dcx_slots_poll(slots);
        uct_dcx_slots_ring(slots);
    }
    status = uct_dcx_slots_state(slots, slot);
    ucs_spin_unlock(&slots->lock);
    return status;
}


void uct_dcx_slots_disown(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                          int is_given)
{
    uct_dcx_slots_forget_slot(slots, slot);
    ucs_spin_lock(&slots->lock);
    slot->size->num_owned--;
    uct_dcx_slots_leave(slots, slot, is_given);
    ucs_spin_unlock(&slots->lock);
}
