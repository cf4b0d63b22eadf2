/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which slot a layout gets, that of an operation or of an owner, and when it is
 * there; see dcx_slot.h. All that ends in _locked is called with the lock.
 */
#include "dcx_slot.h"
#include "dcx_slot_key.h"
#include "dcx_slot_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>


enum {
    /* translations of the smallest keys */
    UCT_DCX_SLOT_FEW   = 4,

    /* keys beside those that may be owned: of 255 numbers each they have always
     * one that was not given up lately */
    UCT_DCX_SLOT_SPARE = (UCT_DCX_STALE_NUMBERS / 255) + 1
};


/* A few translations; as many as a WQE has room for, which is what most faces
 * have; and as many as the options want and the device can. */
static void uct_dcx_slots_init_sizes(uct_dcx_slots_t *slots)
{
    const uct_dcx_slots_params_t *params = &slots->params;
    unsigned most = ucs_align_up_pow2(params->max_entries + 1,
                                      UCT_DCX_LAYOUT_KLM_ALIGN);
    const unsigned num_klm[UCT_DCX_SLOT_SIZES] = {
        UCT_DCX_SLOT_FEW, params->dev->umr.max_inline, most
    };
    uct_dcx_slot_size_t *size;
    unsigned i;

    for (i = 0; i < UCT_DCX_SLOT_KINDS; ++i) {
        size           = &slots->sizes[i];
        size->is_owned = (i >= UCT_DCX_SLOT_SIZES);
        size->num_klm  = ucs_min(num_klm[i % UCT_DCX_SLOT_SIZES],
                                 ucs_min(most, params->dev->umr.max_klm));
        size->max      = size->is_owned ?
                         params->max_owned + UCT_DCX_SLOT_SPARE :
                         params->max_slots;
        ucs_list_head_init(&size->lru);
        ucs_list_head_init(&size->batches);
    }
}


ucs_status_t uct_dcx_slots_init(uct_dcx_slots_t *slots,
                                const uct_dcx_slots_params_t *params)
{
    unsigned i;

    memset(slots, 0, sizeof(*slots));
    slots->params  = *params;
    slots->timeout = ucs_time_from_sec(UCT_DCX_SLOT_TIMEOUT);
    for (i = 0; i < UCT_DCX_SLOT_BUCKETS; ++i) {
        ucs_list_head_init(&slots->names[i]);
    }
    ucs_list_head_init(&slots->handles);
    ucs_list_head_init(&slots->pending);
    ucs_list_head_init(&slots->leaving);
    uct_dcx_slots_init_sizes(slots);
    return ucs_spinlock_init(&slots->lock, 0);
}


static void uct_dcx_slots_close(uct_dcx_slots_t *slots)
{
    uct_dcx_slot_batch_t *batch, *next;
    uct_dcx_slot_size_t *size;

    uct_dcx_umr_cleanup(&slots->umr);
    for (size = slots->sizes; size < slots->sizes + UCT_DCX_SLOT_KINDS;
         ++size) {
        ucs_list_for_each_safe(batch, next, &size->batches, list) {
            uct_dcx_slot_batch_destroy(batch);
        }
    }
}


void uct_dcx_slots_cleanup(uct_dcx_slots_t *slots)
{
    const uct_dcx_slots_stats_t *stats = &slots->stats;
    const char *name                   = uct_dcx_device_name(slots->params.dev);

    if (slots->is_open) {
        ucs_info("%s: layouts: %lu hits, %lu misses, %lu evictions, %lu times "
                 "exhausted; %lu set in handles; %lu invalidated, %lu failures; "
                 "%u keys, %lu doorbells", name, stats->hits, stats->misses,
                 stats->evictions, stats->exhausted, stats->sets,
                 stats->invalidated, stats->failures, stats->num_slots,
                 slots->umr.num_doorbells);
        uct_dcx_slots_close(slots);
    }
    ucs_spinlock_destroy(&slots->lock);
}


ucs_status_t
uct_dcx_slots_open(uct_dcx_slots_t *slots, const uct_dcx_devx_path_t *path)
{
    const uct_dcx_device_t *dev = slots->params.dev;
    ucs_status_t status         = UCS_OK;

    if (!dev->has_devx || !dev->umr.has_keys) {
        return UCS_ERR_UNSUPPORTED;
    }

    ucs_spin_lock(&slots->lock);
    while (slots->status == UCS_INPROGRESS) { /* another thread does it */
        uct_dcx_slots_yield(slots);
    }
    if (!slots->is_open) {
        uct_dcx_slots_begin_command(slots);
        status = uct_dcx_umr_init(&slots->umr, dev, path);
        uct_dcx_slots_end_command(slots, UCS_OK);
        __atomic_store_n(&slots->is_open, status == UCS_OK, __ATOMIC_RELEASE);
    }
    ucs_spin_unlock(&slots->lock);
    return status;
}


unsigned uct_dcx_slots_max_klm(const uct_dcx_slots_t *slots)
{
    return slots->sizes[UCT_DCX_SLOT_SIZES - 1].num_klm;
}


/* --- getting one ---------------------------------------------------------- */

static uint32_t uct_dcx_slots_clock(void)
{
    return (uint64_t)ucs_time_to_msec(ucs_get_time());
}


/* The slot of a size that is first to take another layout */
static uct_dcx_key_slot_t *
uct_dcx_slots_victim(const uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size,
                     const uct_dcx_layout_t *layout, uint32_t *number_p)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &size->lru, list) {
        if ((!slot->is_new ||
             (uct_dcx_slots_clock() - slot->since >= UCT_DCX_SLOT_GRACE)) &&
            uct_dcx_slots_next_number(slots, slot, layout->access,
                                      number_p)) {
            return slot;
        }
    }
    return NULL;
}


static void uct_dcx_slots_fill(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                               const uct_dcx_layout_t *layout, uint32_t number)
{
    int is_idle = uct_dcx_umr_is_idle(&slots->umr);

    slots->stats.misses++;
    if (slot->state != UCT_DCX_SLOT_FREE) {
        slots->stats.evictions++;
    }

    uct_dcx_slots_post(slots, slot, layout, number);
    slot->is_new = 1;
    slot->since  = uct_dcx_slots_clock();
    if (is_idle) {
        uct_dcx_slots_ring(slots);
    }
}


/* What of a size can be had for a layout that is nowhere */
static ucs_status_t
uct_dcx_slots_miss(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size,
                   const uct_dcx_layout_t *layout)
{
    uct_dcx_key_slot_t *slot;
    uint32_t number;

    if (!uct_dcx_slots_can_post(slots)) {
        uct_dcx_slots_ring(slots);
        return UCS_ERR_NO_RESOURCE;
    }

    slot = uct_dcx_slots_victim(slots, size, layout, &number);
    if (slot == NULL) {
        slots->stats.exhausted++;
        return ((size->num > 0) || size->is_growing) ? UCS_ERR_BUSY :
                                                       UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_slots_fill(slots, slot, layout, number);
    return UCS_ERR_NO_RESOURCE;
}


/* Returns 1 if one more slot of a size can be held: it is @slot, which is
 * held already, or another one. */
static int uct_dcx_slot_can_hold(const uct_dcx_slot_size_t *size,
                                 const uct_dcx_key_slot_t *slot)
{
    return ((slot != NULL) && (slot->held > 0)) ||
           (size->num_held < size->max / 2);
}


/* It has the layout. Returns as uct_dcx_slots_get(). */
static ucs_status_t
uct_dcx_slots_hit(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot, int is_held)
{
    if (slot->state == UCT_DCX_SLOT_PENDING) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (slot->state == UCT_DCX_SLOT_FAILED) {
        uct_dcx_slots_unhash(slots, slot);
        slot->is_new = 0;
        return UCS_ERR_IO_ERROR;
    }

    /* the first use is of the one who missed it */
    slots->stats.hits += !slot->is_new;
    slot->is_new       = 0;
    if (slot->users++ == 0) {
        ucs_list_del(&slot->list);
    }
    if (is_held && (slot->held++ == 0)) {
        slot->size->num_held++;
    }
    return UCS_OK;
}


static ucs_status_t
uct_dcx_slots_get_locked(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                         int is_held, uct_dcx_key_slot_t **slot_p)
{
    uct_dcx_slot_size_t *size;

    if (UCS_STATUS_IS_ERR(slots->status)) {
        return slots->status;
    }

    *slot_p = uct_dcx_slots_find(slots, layout);
    if ((*slot_p != NULL) &&
        (!is_held || uct_dcx_slot_can_hold((*slot_p)->size, *slot_p))) {
        return uct_dcx_slots_hit(slots, *slot_p, is_held);
    }

    size = uct_dcx_slots_size(slots->sizes, uct_dcx_layout_num_klm(layout));
    if ((size == NULL) || (is_held && !uct_dcx_slot_can_hold(size, NULL))) {
        slots->stats.exhausted++;
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    if ((size->num < size->max) && !size->is_growing &&
        (ucs_list_is_empty(&size->lru) ||
         uct_dcx_slot_is_named(ucs_list_head(&size->lru, uct_dcx_key_slot_t,
                                             list)))) {
        uct_dcx_slots_grow(slots, size);
        return uct_dcx_slots_get_locked(slots, layout, is_held, slot_p);
    }
    return uct_dcx_slots_miss(slots, size, layout);
}


ucs_status_t
uct_dcx_slots_get(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                  int is_held, uct_dcx_key_slot_t **slot_p)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_poll(slots);
    status = uct_dcx_slots_get_locked(slots, layout, is_held, slot_p);
    ucs_spin_unlock(&slots->lock);
    return status;
}


/* One that has lost its layout meanwhile is first to take another. */
void uct_dcx_slots_put(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                       int is_held)
{
    ucs_spin_lock(&slots->lock);
    if (is_held && (--slot->held == 0)) {
        slot->size->num_held--;
    }
    if ((--slot->users == 0) && (slot->state != UCT_DCX_SLOT_GOING)) {
        if (slot->state == UCT_DCX_SLOT_FREE) {
            ucs_list_add_head(&slot->size->lru, &slot->list);
        } else {
            ucs_list_add_tail(&slot->size->lru, &slot->list);
        }
    }
    ucs_spin_unlock(&slots->lock);
}


uint32_t uct_dcx_slots_give_rkey(uct_dcx_slots_t *slots,
                                 uct_dcx_key_slot_t *slot)
{
    ucs_spin_lock(&slots->lock);
    slot->is_given = 1;
    ucs_spin_unlock(&slots->lock);
    return slot->rkey;
}


/* --- owned ones ----------------------------------------------------------- */

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


void uct_dcx_slots_query(uct_dcx_slots_t *slots, uct_dcx_slots_stats_t *stats)
{
    ucs_spin_lock(&slots->lock);
    *stats           = slots->stats;
    stats->doorbells = slots->umr.num_doorbells;
    ucs_spin_unlock(&slots->lock);
}
