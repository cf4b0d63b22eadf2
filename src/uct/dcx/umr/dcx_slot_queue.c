/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots and the UMR queue; see dcx_slot_queue.h.
 */
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/time/time.h>


static uct_dcx_key_slot_t **
uct_dcx_slots_bucket(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout)
{
    return &slots->buckets[layout->hash % UCT_DCX_SLOT_BUCKETS];
}


uct_dcx_key_slot_t *
uct_dcx_slots_find(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout)
{
    uct_dcx_key_slot_t *slot = *uct_dcx_slots_bucket(slots, layout);

    while ((slot != NULL) && !uct_dcx_layout_is_equal(slot->layout, layout)) {
        slot = slot->chain;
    }
    return slot;
}


void uct_dcx_slots_hash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_key_slot_t **bucket = uct_dcx_slots_bucket(slots, slot->layout);

    slots->stats.num_set++;
    if (!slot->size->is_owned) {
        slot->chain = *bucket;
        *bucket     = slot;
    }
}


void uct_dcx_slots_unhash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_key_slot_t **link = uct_dcx_slots_bucket(slots, slot->layout);

    slots->stats.num_set--;
    slot->state = UCT_DCX_SLOT_FREE;
    if (slot->size->is_owned) {
        return;
    }

    while (*link != slot) {
        link = &(*link)->chain;
    }
    *link = slot->chain;
}


/* It is not pending any more; nobody is its user, but who owns it. */
static void uct_dcx_slots_settle(uct_dcx_slots_t *slots,
                                 uct_dcx_key_slot_t *slot,
                                 uct_dcx_slot_state_t state)
{
    slot->state = state;
    ucs_list_del(&slot->list);
    if (slot->size->is_owned) {
        ucs_list_head_init(&slot->list);
    } else {
        ucs_list_add_tail(&slot->size->lru, &slot->list);
    }
}


static int uct_dcx_slots_precedes(uint16_t a, uint16_t b)
{
    return (int16_t)(a - b) <= 0;
}


/* Those whose WQEs end at WQEBB 'until' or before */
static void uct_dcx_slots_settle_until(uct_dcx_slots_t *slots, uint16_t until)
{
    uct_dcx_key_slot_t *slot, *next;

    ucs_list_for_each_safe(slot, next, &slots->pending, list) {
        if (!uct_dcx_slots_precedes(slot->end, until)) {
            break;
        }
        uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_READY);
    }
}


/* Those behind the WQE that failed were not executed: their layouts are asked
 * for again, but for those of owners, which stay pending. They may have been
 * changed by half, so the device counts as having them. */
static void uct_dcx_slots_settle_failed(uct_dcx_slots_t *slots)
{
    const uct_dcx_umr_t *umr = &slots->umr;
    uct_dcx_key_slot_t *slot, *next;

    uct_dcx_slots_settle_until(slots, umr->failed);
    ucs_list_for_each_safe(slot, next, &slots->pending, list) {
        if (uct_dcx_slots_precedes(slot->begin, umr->failed)) {
            ucs_error("%s: the UMR of key 0x%x, %s of %u entries and %lu "
                      "bytes, failed: %s", uct_dcx_device_name(
                      slots->params.dev), slot->lkey,
                      (slot->layout->kind == UCT_DCX_LAYOUT_LIST) ?
                      "a list" : "blocks", slot->layout->num,
                      slot->layout->length, umr->error->reason);
            uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_FAILED);
        } else if (!slot->size->is_owned) {
            uct_dcx_slots_unhash(slots, slot);
            slot->is_new = 0;
            uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_FREE);
        }
    }
}


/* The WQEs of the layout of a slot */
static void
uct_dcx_slots_post_wqes(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_umr_t *umr = &slots->umr;

    slot->begin = umr->qp.sq.pi;
    if (slot->was != 0) {
        uct_dcx_umr_post_invalidate(umr, slot->was);
    }
    uct_dcx_umr_post_layout(umr, slot->lkey, slot->layout, slot->klm,
                            slot->klm_lkey);
    slot->end    = umr->qp.sq.pi;
    slot->is_set = 1;
}


void uct_dcx_slots_post(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                        const uct_dcx_layout_t *layout, uint32_t number)
{
    int is_based;

    slot->was = slot->is_set ? slot->lkey : 0;
    if (slot->state != UCT_DCX_SLOT_FREE) {
        uct_dcx_slots_unhash(slots, slot);
    }

    if (number != slot->lkey) {
        uct_dcx_slots_retire(slots, slot);
    }

    is_based = slot->layout->is_based || (layout->start != 0);
    memcpy(slot->layout, layout, uct_dcx_layout_size(layout->num));
    slot->layout->is_based = is_based; /* for good: nothing takes it back */

    slot->lkey     = number;
    slot->rkey     = number;
    slot->is_going = 0; /* the one before goes with the WQEs of this one */
    uct_dcx_slots_hash(slots, slot);
    slot->state = UCT_DCX_SLOT_PENDING;
    ucs_list_del(&slot->list);
    ucs_list_add_tail(&slots->pending, &slot->list);
    uct_dcx_slots_post_wqes(slots, slot);
}


/* The queue is empty: as much as was in it has room again. */
static void uct_dcx_slots_repost(uct_dcx_slots_t *slots)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &slots->pending, list) {
        uct_dcx_slots_post_wqes(slots, slot);
    }
    uct_dcx_umr_ring(&slots->umr);
}


static void uct_dcx_slots_recover(uct_dcx_slots_t *slots)
{
    slots->stats.failures++;
    uct_dcx_slots_settle_failed(slots);
    slots->status = uct_dcx_umr_restart(&slots->umr);
    if (slots->status != UCS_OK) {
        ucs_error("%s: no layouts any more",
                  uct_dcx_device_name(slots->params.dev));
        slots->status = UCS_ERR_IO_ERROR;
        return;
    }

    uct_dcx_slots_repost(slots);
}


void uct_dcx_slots_poll(uct_dcx_slots_t *slots)
{
    uct_dcx_umr_t *umr = &slots->umr;

    if (uct_dcx_umr_is_idle(umr) || (slots->status != UCS_OK)) {
        return;
    }

    if (uct_dcx_umr_poll(umr) != UCS_OK) {
        uct_dcx_slots_recover(slots);
        return;
    }

    uct_dcx_slots_settle_until(slots, umr->qp.sq.ci);
    if (umr->qp.sq.ci == umr->rung) {
        uct_dcx_umr_ring(umr);
    }
}


void uct_dcx_slots_retire(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (slot->is_given) {
        uct_dcx_stale_add(&slots->stale, slot->lkey);
        slots->num_given++;
        slot->is_given = 0;
    }
    slot->is_set = 0;
}


void uct_dcx_slots_clear(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (slot->state == UCT_DCX_SLOT_PENDING) { /* it will not end any more */
        uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_FAILED);
    }

    if (slot->state != UCT_DCX_SLOT_FREE) {
        uct_dcx_slots_unhash(slots, slot);
    }
    slot->is_new = 0;
}


/* A failure is something new for who waits. A queue that was only late must not
 * change keys that have got the indices of ours. */
void uct_dcx_slots_give_up(uct_dcx_slots_t *slots, const char *reason)
{
    ucs_error("%s: the UMR queue %s: no layouts any more",
              uct_dcx_device_name(slots->params.dev), reason);
    uct_dcx_umr_restart(&slots->umr);
    slots->stats.failures++;
    slots->status = UCS_ERR_IO_ERROR;
}


/* The time is taken before the queue is looked at: whoever was stopped for long
 * finds what has completed meanwhile. */
void uct_dcx_slots_drain(uct_dcx_slots_t *slots)
{
    const uct_dcx_umr_t *umr = &slots->umr;
    uint64_t failures        = slots->stats.failures;
    uint16_t ci              = umr->qp.sq.ci;
    ucs_time_t since         = ucs_get_time();
    ucs_time_t now;

    uct_dcx_umr_ring(&slots->umr);
    while (!uct_dcx_umr_is_idle(umr) && (slots->status == UCS_OK)) {
        now = ucs_get_time();
        uct_dcx_slots_poll(slots);
        if ((ci != umr->qp.sq.ci) || (failures != slots->stats.failures)) {
            ci       = umr->qp.sq.ci;
            failures = slots->stats.failures;
            since    = ucs_get_time();
        } else if (now - since > slots->timeout) {
            uct_dcx_slots_give_up(slots, "does not move");
        }
    }
}
