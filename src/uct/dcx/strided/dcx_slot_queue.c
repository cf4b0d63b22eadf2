/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Slots and the UMR queue; see dcx_slot_queue.h.
 */
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>


enum {
    /* After so many failures of the queue its keys go instead of layouts. */
    UCT_DCX_SLOT_ROUNDS = 3
};


/* --- names ---------------------------------------------------------------- */

static inline void
uct_dcx_slot_add_name(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                      uint32_t lkey, const uct_dcx_mem_t *mem)
{
    uct_dcx_slot_name_t *name = &slot->names[slot->num_names++];

    name->slot = slot;
    name->mem  = mem;
    name->lkey = lkey;
    ucs_list_add_tail(uct_dcx_slots_names(slots, lkey), &name->list);
}


static inline void
uct_dcx_slot_drop_names(uct_dcx_slot_name_t *name, unsigned *num_p)
{
    for (; *num_p > 0; --*num_p, ++name) {
        ucs_list_del(&name->list);
    }
}


/* The device has none of its layouts. */
static void uct_dcx_slot_unname(uct_dcx_key_slot_t *slot)
{
    uct_dcx_slot_drop_names(slot->names, &slot->num_names);
    uct_dcx_slot_drop_names(slot->past, &slot->num_past);
}


/* What it names counts until the layout that takes its place has arrived. */
static UCS_F_NOINLINE void
uct_dcx_slot_age_names(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_slot_name_t *past = slot->past;

    if (slot->num_past > 0) {
        uct_dcx_slot_unname(slot);
        uct_dcx_slot_add_name(slots, slot, UCT_DCX_SLOT_ANY_LKEY, NULL);
    }

    slot->past      = slot->names;
    slot->num_past  = slot->num_names;
    slot->names     = past;
    slot->num_names = 0;
}


/* Returns 1 if the device has, and gets, layouts that name one key, the
 * same. */
static inline int uct_dcx_slot_is_same_name(const uct_dcx_key_slot_t *slot,
                                            const uct_dcx_layout_t *layout)
{
    const uct_dcx_layout_entry_t *entry = layout->entries;
    const uct_dcx_layout_entry_t *end   = entry + layout->num;
    const uct_dcx_slot_name_t *name     = slot->names;

    if ((slot->num_names != 1) || (slot->num_past != 0)) {
        return 0;
    }

    if (layout->num_mems > 0) {
        return (layout->num_mems == 1) && (name->mem == layout->mems[0]) &&
               (name->lkey == uct_dcx_mem_strict_lkey(name->mem));
    }

    while ((entry < end) && (entry->lkey == name->lkey)) {
        ++entry;
    }
    return entry == end;
}


/* Names what a layout of the slot names from now on: handles, or keys alone. */
static inline void
uct_dcx_slot_name(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                  const uct_dcx_layout_t *layout)
{
    const uct_dcx_layout_entry_t *entry = layout->entries;
    const uct_dcx_layout_entry_t *end   = entry + layout->num;
    uint32_t lkey                       = UCT_DCX_SLOT_ANY_LKEY;
    unsigned i;

    if (uct_dcx_slot_is_same_name(slot, layout)) {
        return;
    }

    if (slot->num_names > 0) {
        uct_dcx_slot_age_names(slots, slot);
    }

    for (i = 0; i < layout->num_mems; ++i) {
        uct_dcx_slot_add_name(slots, slot,
                              uct_dcx_mem_strict_lkey(layout->mems[i]),
                              layout->mems[i]);
    }

    for (; (i == 0) && (entry < end); ++entry) {
        if (entry->lkey != lkey) { /* most have that of the one before */
            lkey = entry->lkey;
            uct_dcx_slot_add_name(slots, slot, lkey, NULL);
        }
    }
}


/* --- content -------------------------------------------------------------- */

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


/* --- the queue ------------------------------------------------------------ */

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


void uct_dcx_slots_retire(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (slot->is_given) {
        uct_dcx_stale_add(&slots->stale, slot->lkey);
        slots->num_given++;
        slot->is_given = 0;
    }
}


/* If it is in use, it may be taken when its last user lets go of it. */
void uct_dcx_slots_gone(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_slots_retire(slots, slot);
    uct_dcx_slot_unname(slot);
    slot->state = UCT_DCX_SLOT_FREE;
    if (slot->size->is_owned) {
        ucs_list_head_init(&slot->list);
    } else if (slot->users == 0) {
        ucs_list_add_head(&slot->size->lru, &slot->list);
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
        if (slot->state == UCT_DCX_SLOT_PENDING) {
            uct_dcx_slot_drop_names(slot->past, &slot->num_past);
            uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_READY);
        } else {
            ucs_list_del(&slot->list);
            uct_dcx_slots_gone(slots, slot);
            slots->num_tries = 0;
        }
    }
}


/* Those behind the WQE that failed were not executed: their layouts are asked
 * for again, but for those of owners, which stay pending, as do those that are
 * GOING. They may have been changed by half, so the device counts as having
 * them. */
static void uct_dcx_slots_settle_failed(uct_dcx_slots_t *slots)
{
    const uct_dcx_umr_t *umr = &slots->umr;
    int is_going             = 0;
    uct_dcx_key_slot_t *slot, *next;

    uct_dcx_slots_settle_until(slots, umr->failed);
    ucs_list_for_each_safe(slot, next, &slots->pending, list) {
        if (slot->state == UCT_DCX_SLOT_GOING) {
            is_going = 1;
        } else if (uct_dcx_slots_precedes(slot->begin, umr->failed)) {
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
    slots->num_tries += is_going;
}


/* The WQEs of a slot that is PENDING or GOING */
static UCS_F_ALWAYS_INLINE void
uct_dcx_slots_post_wqes(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_umr_t *umr = &slots->umr;

    slot->begin = umr->qp.sq.pi;
    if (slot->state == UCT_DCX_SLOT_GOING) {
        uct_dcx_umr_post_invalidate(umr, slot->lkey);
    } else {
        if (slot->was != 0) {
            uct_dcx_umr_post_invalidate(umr, slot->was);
        }
        uct_dcx_umr_post_layout(umr, slot->lkey, slot->layout, slot->klm,
                                slot->klm_lkey);
    }
    slot->end = umr->qp.sq.pi;
}


void uct_dcx_slots_post(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                        const uct_dcx_layout_t *layout, uint32_t number)
{
    int is_based;

    slot->was = uct_dcx_slot_is_named(slot) ? slot->lkey : 0;
    if (slot->state != UCT_DCX_SLOT_FREE) {
        uct_dcx_slots_unhash(slots, slot);
    }

    if (number != slot->lkey) {
        uct_dcx_slots_retire(slots, slot);
    }

    is_based = slot->layout->is_based || (layout->start != 0);
    memcpy(slot->layout, layout, uct_dcx_layout_size(layout->num));
    slot->layout->is_based = is_based; /* for good: nothing takes it back */

    slot->lkey = number;
    slot->rkey = number;
    uct_dcx_slot_name(slots, slot, layout);
    uct_dcx_slots_hash(slots, slot);
    slot->state = UCT_DCX_SLOT_PENDING;
    ucs_list_del(&slot->list);
    ucs_list_add_tail(&slots->pending, &slot->list);
    uct_dcx_slots_post_wqes(slots, slot);
}


static UCS_F_NOINLINE void uct_dcx_slots_post_leaving(uct_dcx_slots_t *slots)
{
    uct_dcx_key_slot_t *slot;

    while (!ucs_list_is_empty(&slots->leaving) &&
           uct_dcx_umr_is_available(&slots->umr)) {
        slot = ucs_list_extract_head(&slots->leaving, uct_dcx_key_slot_t, list);
        ucs_list_add_tail(&slots->pending, &slot->list);
        uct_dcx_slots_post_wqes(slots, slot);
    }
}


void uct_dcx_slots_ring(uct_dcx_slots_t *slots)
{
    if (slots->status != UCS_OK) {
        return;
    }

    if (ucs_unlikely(!ucs_list_is_empty(&slots->leaving))) {
        uct_dcx_slots_post_leaving(slots);
    }
    uct_dcx_umr_ring(&slots->umr);
}


/* The queue is empty: as much as was in it has room again. */
static void uct_dcx_slots_repost(uct_dcx_slots_t *slots)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &slots->pending, list) {
        uct_dcx_slots_post_wqes(slots, slot);
    }
    uct_dcx_slots_ring(slots);
}


static ucs_status_t uct_dcx_slots_restart(uct_dcx_slots_t *slots)
{
    ucs_status_t status;

    slots->stats.failures++;
    uct_dcx_slots_begin_command(slots);
    status = uct_dcx_umr_restart(&slots->umr);
    uct_dcx_slots_end_command(slots, status);
    return status;
}


/* A queue that was only late must not change keys that have got the indices of
 * ours. */
void uct_dcx_slots_give_up(uct_dcx_slots_t *slots, const char *reason)
{
    ucs_error("%s: the UMR queue %s: no layouts any more",
              uct_dcx_device_name(slots->params.dev), reason);
    uct_dcx_slots_restart(slots);
    slots->status = UCS_ERR_IO_ERROR;
}


static UCS_F_NOINLINE void uct_dcx_slots_recover(uct_dcx_slots_t *slots)
{
    uct_dcx_slots_settle_failed(slots);
    if (uct_dcx_slots_restart(slots) != UCS_OK) {
        ucs_error("%s: no layouts any more",
                  uct_dcx_device_name(slots->params.dev));
        slots->status = UCS_ERR_IO_ERROR;
    } else if (slots->num_tries == UCT_DCX_SLOT_ROUNDS) {
        uct_dcx_slots_give_up(slots, "fails again and again");
    } else {
        uct_dcx_slots_repost(slots);
    }
}


void uct_dcx_slots_take_completed(uct_dcx_slots_t *slots)
{
    uct_dcx_umr_t *umr = &slots->umr;

    if (uct_dcx_umr_poll(umr) != UCS_OK) {
        uct_dcx_slots_recover(slots);
        return;
    }

    uct_dcx_slots_settle_until(slots, umr->qp.sq.ci);
    if (umr->qp.sq.ci == umr->rung) {
        uct_dcx_slots_ring(slots);
    }
}
