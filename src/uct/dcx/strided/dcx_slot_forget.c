/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Layouts whose memory goes; see dcx_slot.h. Those that name it are marked:
 * they are out of use at once, and are invalidated in the order in which they
 * were marked. The thread that marks them waits for that, without the lock.
 * Those that name the number of one are marked before it, so they are gone when
 * it is.
 */
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/time/time.h>


/* The progress of the queue, as a thread that waits has seen it */
typedef struct uct_dcx_slots_watch {
    ucs_time_t since;
    uint64_t   failures;
    uint16_t   ci;
} uct_dcx_slots_watch_t;


/* --- marking -------------------------------------------------------------- */

/* Returns 1 if a layout names this key; if @mem is not NULL, by this handle. */
static inline int
uct_dcx_slot_names(const uct_dcx_slot_name_t *name, uint32_t lkey,
                   const uct_dcx_mem_t *mem)
{
    return (name->lkey == lkey) && uct_dcx_slot_has_name(name) &&
           ((mem == NULL) || (name->mem == mem));
}


static void uct_dcx_slots_mark_names(uct_dcx_slots_t *slots, uint32_t lkey,
                                     const uct_dcx_mem_t *mem)
{
    const uct_dcx_slot_name_t *name;

    ucs_list_for_each(name, uct_dcx_slots_names(slots, lkey), list) {
        if (uct_dcx_slot_names(name, lkey, mem)) {
            uct_dcx_slots_mark(slots, name->slot);
        }
    }
}


/* Returns 1 if it was not marked before. Only owned slots are named. */
static int
uct_dcx_slots_mark_slot(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    int is_listed = slot->users == 0;

    if (slot->state == UCT_DCX_SLOT_GOING) {
        return 0;
    }

    if (slot->state != UCT_DCX_SLOT_FREE) {
        uct_dcx_slots_unhash(slots, slot);
    }

    slot->is_new = 0;
    if (uct_dcx_slot_is_named(slot)) {
        slot->state   = UCT_DCX_SLOT_GOING;
        slot->is_lost = 1;
    }
    if (slot->size->is_owned) {
        uct_dcx_slots_mark_names(slots, slot->lkey, NULL);
    }
    if (slot->state == UCT_DCX_SLOT_FREE) {
        return 0;
    }

    if (is_listed) {
        ucs_list_del(&slot->list);
    }
    ucs_list_add_tail(&slots->leaving, &slot->list);
    return 1;
}


void uct_dcx_slots_mark(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    slots->stats.invalidated += uct_dcx_slots_mark_slot(slots, slot);
}


/* --- waiting -------------------------------------------------------------- */

/* Another kind of key may get its index then, but not a number that a peer may
 * have. */
static void uct_dcx_slots_keep_numbers(uct_dcx_slots_t *slots,
                                       const uct_dcx_key_slot_t *slot)
{
    const uct_dcx_slots_params_t *params = &slots->params;
    unsigned i;

    if (params->add_stale == NULL) {
        return;
    }

    params->add_stale(params->arg, slot->lkey);
    for (i = 0; i < UCT_DCX_STALE_NUMBERS; ++i) {
        if (slots->stale.numbers[i] >> 8 == slot->obj.number) {
            params->add_stale(params->arg, slots->stale.numbers[i]);
        }
    }
}


/* The one that is GOING and was marked first; there is one. */
static uct_dcx_key_slot_t *uct_dcx_slots_first_going(uct_dcx_slots_t *slots)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &slots->pending, list) {
        if (slot->state == UCT_DCX_SLOT_GOING) {
            return slot;
        }
    }
    return ucs_list_head(&slots->leaving, uct_dcx_key_slot_t, list);
}


/* The queue is of no use: keys go themselves, one after the other. */
static void uct_dcx_slots_destroy_going(uct_dcx_slots_t *slots)
{
    uct_dcx_key_slot_t *slot = uct_dcx_slots_first_going(slots);
    ucs_status_t status      = slots->status;
    uct_dcx_devx_obj_t obj   = slot->obj;

    ucs_list_del(&slot->list);
    uct_dcx_slots_keep_numbers(slots, slot);
    slot->obj.obj = NULL;
    uct_dcx_slots_begin_command(slots);
    uct_dcx_devx_destroy(&obj);
    uct_dcx_slots_end_command(slots, status);
    uct_dcx_slots_gone(slots, slot);
}


static void uct_dcx_slots_watch(const uct_dcx_slots_t *slots,
                                uct_dcx_slots_watch_t *watch)
{
    watch->since    = ucs_get_time();
    watch->failures = slots->stats.failures;
    watch->ci       = slots->umr.qp.sq.ci;
}


/* The time is taken before the queue is looked at: a thread that was stopped
 * for long finds what has completed meanwhile. */
static void
uct_dcx_slots_look(uct_dcx_slots_t *slots, uct_dcx_slots_watch_t *watch)
{
    ucs_time_t now = ucs_get_time();

    uct_dcx_slots_ring(slots);
    uct_dcx_slots_poll(slots);
    if ((watch->failures != slots->stats.failures) ||
        (watch->ci != slots->umr.qp.sq.ci)) {
        uct_dcx_slots_watch(slots, watch);
    } else if ((slots->status == UCS_OK) &&
               (now - watch->since > slots->timeout)) {
        uct_dcx_slots_give_up(slots, "does not move");
    } else {
        uct_dcx_slots_yield(slots);
    }
}


/* Brings what other threads wait for forward, too. Something is GOING if the
 * queue is of no use. */
static void
uct_dcx_slots_go_on(uct_dcx_slots_t *slots, uct_dcx_slots_watch_t *watch)
{
    if (UCS_STATUS_IS_ERR(slots->status)) {
        uct_dcx_slots_destroy_going(slots);
    } else {
        uct_dcx_slots_look(slots, watch);
    }
}


/* Returns whether the device may have a layout that names a key and is not in
 * use: it is GOING, or another one is to come in its place. If that has failed,
 * or never comes, the slot is marked. */
static int uct_dcx_slots_is_left(uct_dcx_slots_t *slots,
                                 const uct_dcx_slot_name_t *name)
{
    const uct_dcx_key_slot_t *slot = name->slot;

    if ((slot->state == UCT_DCX_SLOT_FREE) ||
        (slot->state == UCT_DCX_SLOT_FAILED) ||
        ((slot->state == UCT_DCX_SLOT_PENDING) &&
         UCS_STATUS_IS_ERR(slots->status))) {
        uct_dcx_slots_mark(slots, name->slot);
    }
    return (slot->state == UCT_DCX_SLOT_GOING) ||
           ((slot->state == UCT_DCX_SLOT_PENDING) && (slot->was != 0));
}


static int uct_dcx_slots_num_left(uct_dcx_slots_t *slots, uint32_t lkey)
{
    int num = 0;
    const uct_dcx_slot_name_t *name;

    ucs_list_for_each(name, uct_dcx_slots_names(slots, lkey), list) {
        num += (name->lkey == lkey) && uct_dcx_slots_is_left(slots, name);
    }
    return num;
}


/* Returns 1 if the device may have a layout that names this key. */
static int uct_dcx_slots_are_left(uct_dcx_slots_t *slots, uint32_t lkey)
{
    return (uct_dcx_slots_num_left(slots, lkey) > 0) ||
           (uct_dcx_slots_num_left(slots, UCT_DCX_SLOT_ANY_LKEY) > 0);
}


/* Waits until the device has no layout that names this key, but for those that
 * are in use. */
static void uct_dcx_slots_wait(uct_dcx_slots_t *slots, uint32_t lkey)
{
    uct_dcx_slots_watch_t watch;

    uct_dcx_slots_watch(slots, &watch);
    while (uct_dcx_slots_are_left(slots, lkey)) {
        uct_dcx_slots_go_on(slots, &watch);
    }
}


/* --- both ----------------------------------------------------------------- */

int uct_dcx_slots_forget_lkey(uct_dcx_slots_t *slots, uint32_t lkey,
                              int is_waiting)
{
    int is_gone;

    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_mark_names(slots, lkey, NULL);
    if (is_waiting) {
        uct_dcx_slots_wait(slots, lkey);
    }
    is_gone = !uct_dcx_slots_are_left(slots, lkey);
    ucs_spin_unlock(&slots->lock);
    return is_gone;
}


/* Also where no layout names it any more, one that does may be on the device, if
 * what was set in its place is on its way. */
void uct_dcx_slots_forget_mem(uct_dcx_slots_t *slots, const uct_dcx_mem_t *mem)
{
    uint32_t lkey = uct_dcx_mem_strict_lkey(mem);

    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_mark_names(slots, lkey, mem);
    uct_dcx_slots_wait(slots, lkey);
    ucs_spin_unlock(&slots->lock);
}


int uct_dcx_slots_is_named(uct_dcx_slots_t *slots, const uct_dcx_mem_t *mem)
{
    uint32_t lkey = uct_dcx_mem_strict_lkey(mem);
    int num       = 0;
    const uct_dcx_slot_name_t *name;

    ucs_spin_lock(&slots->lock);
    ucs_list_for_each(name, uct_dcx_slots_names(slots, lkey), list) {
        num += uct_dcx_slot_names(name, lkey, mem);
    }
    ucs_spin_unlock(&slots->lock);
    return num > 0;
}


void uct_dcx_slots_forget_slot(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_slots_watch_t watch;

    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_mark_slot(slots, slot);
    uct_dcx_slots_watch(slots, &watch);
    while (slot->state == UCT_DCX_SLOT_GOING) {
        uct_dcx_slots_go_on(slots, &watch);
    }
    ucs_spin_unlock(&slots->lock);
}
