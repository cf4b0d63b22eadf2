/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What becomes of layouts when what they name goes; see dcx_slot.h. It is done in
 * three steps: those that have to go are marked, the device is told until it
 * has done it for all of them, their numbers are given up.
 */
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"


enum {
    /* After so many failures of the queue its keys go instead of layouts. */
    UCT_DCX_SLOT_ROUNDS = 3
};


/* What is done to each slot */
typedef void (*uct_dcx_slots_do_t)(uct_dcx_slots_t *slots,
                                   uct_dcx_key_slot_t *slot, uint32_t lkey);


static void uct_dcx_slots_do_all(uct_dcx_slots_t *slots, uint32_t lkey,
                                 uct_dcx_slots_do_t do_slot)
{
    uct_dcx_slot_size_t *size;
    uct_dcx_slot_batch_t *batch;
    unsigned i;

    for (size = slots->sizes; size < slots->sizes + UCT_DCX_SLOT_KINDS;
         ++size) {
        ucs_list_for_each(batch, &size->batches, list) {
            for (i = 0; i < batch->num; ++i) {
                do_slot(slots, &batch->slots[i], lkey);
            }
        }
    }
}


/* Those whose layout names the key, and those that name theirs. Only owned ones
 * are named. */
static void uct_dcx_slots_mark_named(uct_dcx_slots_t *slots,
                                     uct_dcx_key_slot_t *slot, uint32_t lkey)
{
    if (!slot->is_set || slot->is_going ||
        !uct_dcx_layout_has_lkey(slot->layout, lkey)) {
        return;
    }

    slot->is_going = 1;
    slots->stats.invalidated++;
    if (slot->size->is_owned) {
        uct_dcx_slots_do_all(slots, slot->lkey, uct_dcx_slots_mark_named);
    }
}


/* Those that name it are found by its number. If it is marked, so are they. */
static void
uct_dcx_slots_mark_slot(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (!slot->is_going) {
        slot->is_going = 1;
        uct_dcx_slots_do_all(slots, slot->lkey, uct_dcx_slots_mark_named);
    }
}


/* The queue is empty, or of no use: of what is set but not READY, as a UMR has
 * failed, the device may have the layout of before, whatever that names. */
static void uct_dcx_slots_mark_unknown(uct_dcx_slots_t *slots,
                                       uct_dcx_key_slot_t *slot, uint32_t lkey)
{
    if (slot->is_set && (slot->state != UCT_DCX_SLOT_READY)) {
        uct_dcx_slots_mark_slot(slots, slot);
    }
}


/* If the queue is of no use, the key goes itself. Another kind of key may get
 * its index then, but not a number that a peer may have. */
static void
uct_dcx_slots_destroy_key(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    const uct_dcx_slots_params_t *params = &slots->params;
    unsigned i;

    if (params->add_stale != NULL) {
        params->add_stale(params->arg, slot->lkey);
        for (i = 0; i < UCT_DCX_STALE_NUMBERS; ++i) {
            if (slots->stale.numbers[i] >> 8 == slot->obj.number) {
                params->add_stale(params->arg, slots->stale.numbers[i]);
            }
        }
    }

    uct_dcx_devx_destroy(&slot->obj);
    slot->obj.obj = NULL;
    slot->is_set  = 0;
}


static void uct_dcx_slots_clear_going(uct_dcx_slots_t *slots,
                                      uct_dcx_key_slot_t *slot, uint32_t lkey)
{
    if (!slot->is_going || !slot->is_set) {
        return;
    }

    if (!uct_dcx_umr_is_available(&slots->umr)) {
        uct_dcx_slots_drain(slots);
    }

    uct_dcx_slots_clear(slots, slot);
    if (slots->status == UCS_OK) {
        uct_dcx_umr_post_invalidate(&slots->umr, slot->lkey);
    } else {
        uct_dcx_slots_destroy_key(slots, slot);
    }
}


/* ... and it has ended. */
static void uct_dcx_slots_retire_going(uct_dcx_slots_t *slots,
                                       uct_dcx_key_slot_t *slot, uint32_t lkey)
{
    if (slot->is_going) {
        uct_dcx_slots_retire(slots, slot);
        slot->is_going = 0;
        slot->is_lost  = 1;
    }
}


/* If the queue fails meanwhile, some may not have been invalidated. */
static void uct_dcx_slots_forget_going(uct_dcx_slots_t *slots)
{
    unsigned rounds = 0;
    uint64_t failures;

    do {
        uct_dcx_slots_drain(slots);
        if ((rounds++ == UCT_DCX_SLOT_ROUNDS) && (slots->status == UCS_OK)) {
            uct_dcx_slots_give_up(slots, "fails again and again");
        }

        failures = slots->stats.failures;
        uct_dcx_slots_do_all(slots, 0, uct_dcx_slots_mark_unknown);
        uct_dcx_slots_do_all(slots, 0, uct_dcx_slots_clear_going);
        uct_dcx_slots_drain(slots);
    } while (failures != slots->stats.failures);
    uct_dcx_slots_do_all(slots, 0, uct_dcx_slots_retire_going);
}


void uct_dcx_slots_forget_lkey(uct_dcx_slots_t *slots, uint32_t lkey)
{
    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_do_all(slots, lkey, uct_dcx_slots_mark_named);
    uct_dcx_slots_forget_going(slots);
    ucs_spin_unlock(&slots->lock);
}


void uct_dcx_slots_mark(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    ucs_spin_lock(&slots->lock);
    slots->stats.invalidated += slot->is_set && !slot->is_going;
    uct_dcx_slots_mark_slot(slots, slot);
    ucs_spin_unlock(&slots->lock);
}


void uct_dcx_slots_forget_marked(uct_dcx_slots_t *slots)
{
    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_forget_going(slots);
    ucs_spin_unlock(&slots->lock);
}


void uct_dcx_slots_forget_slot(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_slots_mark_slot(slots, slot);
    uct_dcx_slots_forget_going(slots);
}
