/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Which slot a layout gets, and when it is there; see dcx_slot.h. All that ends
 * in _locked is called with the lock.
 */
#include "dcx_slot.h"
#include "dcx_slot_key.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>


enum {
    /* translations of the smaller keys: a few pieces, and as many as most
     * faces have; both are inline */
    UCT_DCX_SLOT_FEW   = 4,
    UCT_DCX_SLOT_SOME  = UCT_DCX_UMR_MAX_INLINE,

    /* keys that are made at a time */
    UCT_DCX_SLOT_BATCH = 8
};


/* The greatest are as large as the options want and the device can. */
static void uct_dcx_slots_init_sizes(uct_dcx_slots_t *slots)
{
    const uct_dcx_slots_params_t *params = &slots->params;
    unsigned most = ucs_align_up_pow2(params->max_entries + 1,
                                      UCT_DCX_LAYOUT_KLM_ALIGN);
    const unsigned num_klm[UCT_DCX_SLOT_SIZES] = {
        UCT_DCX_SLOT_FEW, UCT_DCX_SLOT_SOME, most
    };
    unsigned i;

    for (i = 0; i < UCT_DCX_SLOT_SIZES; ++i) {
        slots->sizes[i].num_klm = ucs_min(num_klm[i],
                                          ucs_min(most, params->dev->max_klm));
        slots->sizes[i].max     = params->max_slots;
        ucs_list_head_init(&slots->sizes[i].lru);
        ucs_list_head_init(&slots->sizes[i].batches);
    }
}


ucs_status_t uct_dcx_slots_init(uct_dcx_slots_t *slots,
                                const uct_dcx_slots_params_t *params)
{
    memset(slots, 0, sizeof(*slots));
    slots->params = *params;
    ucs_list_head_init(&slots->pending);
    uct_dcx_slots_init_sizes(slots);
    return ucs_spinlock_init(&slots->lock, 0);
}


static void uct_dcx_slots_close(uct_dcx_slots_t *slots)
{
    uct_dcx_slot_batch_t *batch, *next;
    uct_dcx_slot_size_t *size;

    uct_dcx_umr_cleanup(&slots->umr);
    for (size = slots->sizes; size < slots->sizes + UCT_DCX_SLOT_SIZES;
         ++size) {
        ucs_list_for_each_safe(batch, next, &size->batches, list) {
            uct_dcx_slot_batch_destroy(batch);
        }
    }
}


void uct_dcx_slots_cleanup(uct_dcx_slots_t *slots)
{
    const uct_dcx_slots_stats_t *stats = &slots->stats;

    if (slots->is_open) {
        ucs_debug("%s: layouts: %lu hits, %lu misses, %lu evictions, %lu times "
                  "exhausted, %lu invalidated, %lu failures",
                  uct_dcx_device_name(slots->params.dev), stats->hits,
                  stats->misses, stats->evictions, stats->exhausted,
                  stats->invalidated, stats->failures);
        uct_dcx_slots_close(slots);
    }
    ucs_spinlock_destroy(&slots->lock);
}


ucs_status_t
uct_dcx_slots_open(uct_dcx_slots_t *slots, const uct_dcx_devx_path_t *path)
{
    const uct_dcx_device_t *dev = slots->params.dev;
    ucs_status_t status         = UCS_OK;

    if (!dev->has_devx || !dev->has_umr) {
        return UCS_ERR_UNSUPPORTED;
    }

    ucs_spin_lock(&slots->lock);
    if (!slots->is_open) {
        status = uct_dcx_umr_init(&slots->umr, dev, path);
        __atomic_store_n(&slots->is_open, status == UCS_OK, __ATOMIC_RELEASE);
    }
    ucs_spin_unlock(&slots->lock);
    return status;
}


unsigned uct_dcx_slots_max_klm(const uct_dcx_slots_t *slots)
{
    return slots->sizes[UCT_DCX_SLOT_SIZES - 1].num_klm;
}


/* --- finding -------------------------------------------------------------- */

static uct_dcx_key_slot_t **
uct_dcx_slots_bucket(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout)
{
    return &slots->buckets[layout->hash % UCT_DCX_SLOT_BUCKETS];
}


static uct_dcx_key_slot_t *
uct_dcx_slots_find(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout)
{
    uct_dcx_key_slot_t *slot = *uct_dcx_slots_bucket(slots, layout);

    while ((slot != NULL) && !uct_dcx_layout_is_equal(slot->layout, layout)) {
        slot = slot->chain;
    }
    return slot;
}


static void
uct_dcx_slots_hash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_key_slot_t **bucket = uct_dcx_slots_bucket(slots, slot->layout);

    slot->chain = *bucket;
    *bucket     = slot;
    slots->stats.num_set++;
}


/* Nobody finds it any more. */
static void
uct_dcx_slots_unhash(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    uct_dcx_key_slot_t **link = uct_dcx_slots_bucket(slots, slot->layout);

    while (*link != slot) {
        link = &(*link)->chain;
    }
    *link       = slot->chain;
    slot->state = UCT_DCX_SLOT_FREE;
    slots->stats.num_set--;
}


/* --- what has ended ------------------------------------------------------- */

static void uct_dcx_slots_next_turn(uct_dcx_slots_t *slots)
{
    __atomic_store_n(&slots->turn, slots->turn + 1, __ATOMIC_RELEASE);
}


/* It is not pending any more; nobody is its user. */
static void uct_dcx_slots_settle(uct_dcx_slots_t *slots,
                                 uct_dcx_key_slot_t *slot,
                                 uct_dcx_slot_state_t state)
{
    slot->state = state;
    ucs_list_del(&slot->list);
    ucs_list_add_tail(&slot->size->lru, &slot->list);
    uct_dcx_slots_next_turn(slots);
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
 * for again. They may have been changed by half, so the device counts as having
 * them. */
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
        } else {
            uct_dcx_slots_unhash(slots, slot);
            slot->is_new = 0;
            uct_dcx_slots_settle(slots, slot, UCT_DCX_SLOT_FREE);
        }
    }
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
    }
}


static void uct_dcx_slots_poll_locked(uct_dcx_slots_t *slots)
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


uint32_t uct_dcx_slots_progress(uct_dcx_slots_t *slots)
{
    ucs_spin_lock(&slots->lock);
    uct_dcx_slots_poll_locked(slots);
    uct_dcx_umr_ring(&slots->umr);
    ucs_spin_unlock(&slots->lock);
    return uct_dcx_slots_turn(slots);
}


/* --- getting one ---------------------------------------------------------- */

static uct_dcx_slot_size_t *
uct_dcx_slots_size(uct_dcx_slots_t *slots, unsigned num_klm)
{
    uct_dcx_slot_size_t *size = slots->sizes;

    while ((size < slots->sizes + UCT_DCX_SLOT_SIZES) &&
           (size->num_klm < num_klm)) {
        ++size;
    }
    return (size < slots->sizes + UCT_DCX_SLOT_SIZES) ? size : NULL;
}


/* Makes more slots of a size, meanwhile without the lock. */
static void
uct_dcx_slots_grow(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size)
{
    unsigned num = ucs_min(size->max - size->num, UCT_DCX_SLOT_BATCH);
    uct_dcx_slot_batch_t *batch;
    unsigned i;

    size->is_growing = 1;
    ucs_spin_unlock(&slots->lock);
    batch = uct_dcx_slot_batch_create(slots->params.dev, size, num);
    ucs_spin_lock(&slots->lock);
    size->is_growing = 0;
    if (batch == NULL) {
        size->max = size->num; /* once is enough */
        return;
    }

    for (i = 0; i < num; ++i) {
        batch->slots[i].lkey = batch->slots[i].obj.number << 8;
        ucs_list_add_head(&size->lru, &batch->slots[i].list);
    }
    ucs_list_add_tail(&size->batches, &batch->list);
    size->num              += num;
    slots->stats.num_slots += num;
}


static int uct_dcx_slots_is_stale(const uct_dcx_slots_t *slots, uint32_t number)
{
    const uct_dcx_slots_params_t *params = &slots->params;

    return ((slots->num_given > 0) &&
            uct_dcx_stale_has(&slots->stale, number)) ||
           ((params->is_stale != NULL) &&
            params->is_stale(params->arg, number));
}


/* Which variant of its key the next layout gets. Those that give peers no right
 * may have any. Returns 0 if peers may still have all of them. */
static int uct_dcx_slots_next_variant(const uct_dcx_slots_t *slots,
                                      const uct_dcx_key_slot_t *slot,
                                      const uct_dcx_layout_t *layout,
                                      uint8_t *variant_p)
{
    const uint32_t remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    uint8_t variant       = slot->variant;

    while (++variant != slot->variant) {
        if (!(layout->access & remote) ||
            !uct_dcx_slots_is_stale(slots, (slot->obj.number << 8) | variant)) {
            *variant_p = variant;
            return 1;
        }
    }
    return 0;
}


/* The slot of a size that is first to take another layout */
static uct_dcx_key_slot_t *
uct_dcx_slots_victim(const uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size,
                     const uct_dcx_layout_t *layout, uint8_t *variant_p)
{
    uct_dcx_key_slot_t *slot;

    ucs_list_for_each(slot, &size->lru, list) {
        if ((!slot->is_new ||
             (slots->clock - slot->used >= UCT_DCX_SLOT_GRACE)) &&
            uct_dcx_slots_next_variant(slots, slot, layout, variant_p)) {
            return slot;
        }
    }
    return NULL;
}


/* The device has no layout of it any more, and its number is given up. */
static void
uct_dcx_slots_retire(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (slot->is_given) {
        uct_dcx_stale_add(&slots->stale, slot->lkey);
        slots->num_given++;
        slot->is_given = 0;
    }
    slot->is_set = 0;
}


/* Takes it out of use, if it is, with a WQE that says so. */
static void
uct_dcx_slots_clear(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    if (slot->state != UCT_DCX_SLOT_FREE) {
        uct_dcx_slots_unhash(slots, slot);
    }

    slot->is_new = 0;
    if (slot->is_set) {
        uct_dcx_umr_post_invalidate(&slots->umr, slot->lkey);
    }
}


static void uct_dcx_slots_fill(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot,
                               const uct_dcx_layout_t *layout, uint8_t variant)
{
    uct_dcx_umr_t *umr = &slots->umr;
    int is_idle        = uct_dcx_umr_is_idle(umr);

    slot->begin = umr->qp.sq.pi;
    slots->stats.misses++;
    if (slot->state != UCT_DCX_SLOT_FREE) {
        slots->stats.evictions++;
    }

    uct_dcx_slots_clear(slots, slot);
    uct_dcx_slots_retire(slots, slot);
    memcpy(slot->layout, layout, uct_dcx_layout_size(layout->num));
    slot->variant = variant;
    slot->lkey    = (slot->obj.number << 8) | variant;
    slot->rkey    = slot->lkey;
    uct_dcx_umr_post_layout(umr, slot->lkey, slot->layout, slot->klm,
                            slot->klm_lkey);
    slot->end     = umr->qp.sq.pi;
    slot->is_set  = 1;
    slot->is_new  = 1;
    slot->used    = slots->clock;
    uct_dcx_slots_hash(slots, slot);
    slot->state   = UCT_DCX_SLOT_PENDING;
    ucs_list_del(&slot->list);
    ucs_list_add_tail(&slots->pending, &slot->list);
    if (is_idle) {
        uct_dcx_umr_ring(umr);
    }
}


/* What of a size can be had for a layout that is nowhere */
static ucs_status_t
uct_dcx_slots_miss(uct_dcx_slots_t *slots, uct_dcx_slot_size_t *size,
                   const uct_dcx_layout_t *layout)
{
    uct_dcx_key_slot_t *slot;
    uint8_t variant;

    if (!uct_dcx_umr_is_available(&slots->umr)) {
        uct_dcx_umr_ring(&slots->umr);
        return UCS_ERR_NO_RESOURCE;
    }

    slot = uct_dcx_slots_victim(slots, size, layout, &variant);
    if (slot == NULL) {
        slots->stats.exhausted++;
        return ((size->num > 0) || size->is_growing) ? UCS_ERR_BUSY :
                                                       UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_slots_fill(slots, slot, layout, variant);
    return UCS_ERR_NO_RESOURCE;
}


/* It has the layout; whether it is there */
static ucs_status_t
uct_dcx_slots_hit(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
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
    slot->used         = slots->clock;
    if (slot->users++ == 0) {
        ucs_list_del(&slot->list);
    }
    return UCS_OK;
}


static ucs_status_t
uct_dcx_slots_get_locked(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                         uct_dcx_key_slot_t **slot_p)
{
    uct_dcx_slot_size_t *size;

    if (slots->status != UCS_OK) {
        return slots->status;
    }

    *slot_p = uct_dcx_slots_find(slots, layout);
    if (*slot_p != NULL) {
        return uct_dcx_slots_hit(slots, *slot_p);
    }

    size = uct_dcx_slots_size(slots, uct_dcx_layout_num_klm(layout));
    if (size == NULL) {
        slots->stats.exhausted++;
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    if ((size->num < size->max) && !size->is_growing &&
        (ucs_list_is_empty(&size->lru) ||
         ucs_list_head(&size->lru, uct_dcx_key_slot_t, list)->is_set)) {
        uct_dcx_slots_grow(slots, size);
        return uct_dcx_slots_get_locked(slots, layout, slot_p);
    }
    return uct_dcx_slots_miss(slots, size, layout);
}


ucs_status_t
uct_dcx_slots_get(uct_dcx_slots_t *slots, const uct_dcx_layout_t *layout,
                  uct_dcx_key_slot_t **slot_p)
{
    ucs_status_t status;

    ucs_spin_lock(&slots->lock);
    slots->clock = (uint64_t)ucs_time_to_msec(ucs_get_time());
    uct_dcx_slots_poll_locked(slots);
    status = uct_dcx_slots_get_locked(slots, layout, slot_p);
    ucs_spin_unlock(&slots->lock);
    return status;
}


/* One that has lost its layout meanwhile is first to take another. */
void uct_dcx_slots_put(uct_dcx_slots_t *slots, uct_dcx_key_slot_t *slot)
{
    ucs_spin_lock(&slots->lock);
    if (--slot->users == 0) {
        if (slot->state == UCT_DCX_SLOT_FREE) {
            ucs_list_add_head(&slot->size->lru, &slot->list);
        } else {
            ucs_list_add_tail(&slot->size->lru, &slot->list);
        }
        uct_dcx_slots_next_turn(slots);
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


/* --- forgetting ----------------------------------------------------------- */

/* Until all that was posted has ended, one way or the other. */
static void uct_dcx_slots_drain_locked(uct_dcx_slots_t *slots)
{
    uct_dcx_umr_ring(&slots->umr);
    while (!uct_dcx_umr_is_idle(&slots->umr) && (slots->status == UCS_OK)) {
        uct_dcx_slots_poll_locked(slots);
    }
}


/* What is done to a slot whose layout names a key */
typedef void (*uct_dcx_slots_named_t)(uct_dcx_slots_t *slots,
                                      uct_dcx_key_slot_t *slot);


/* With a queue that is of no use, the key goes itself. */
static void uct_dcx_slots_clear_named(uct_dcx_slots_t *slots,
                                      uct_dcx_key_slot_t *slot)
{
    if (!uct_dcx_umr_is_available(&slots->umr)) {
        uct_dcx_slots_drain_locked(slots);
    }

    if (slots->status == UCS_OK) {
        uct_dcx_slots_clear(slots, slot);
    } else {
        uct_dcx_devx_destroy(&slot->obj);
        slot->obj.obj = NULL;
        slot->is_set  = 0;
    }
}


/* ... and it has ended. */
static void uct_dcx_slots_retire_named(uct_dcx_slots_t *slots,
                                       uct_dcx_key_slot_t *slot)
{
    uct_dcx_slots_retire(slots, slot);
    slots->stats.invalidated++;
}


/* Of a batch, those whose layout names the key */
static void
uct_dcx_slots_forget_batch(uct_dcx_slots_t *slots, uct_dcx_slot_batch_t *batch,
                           uint32_t lkey, uct_dcx_slots_named_t do_named)
{
    uct_dcx_key_slot_t *slot;

    for (slot = batch->slots; slot < batch->slots + batch->num; ++slot) {
        if (slot->is_set && uct_dcx_layout_has_lkey(slot->layout, lkey)) {
            do_named(slots, slot);
        }
    }
}


static void uct_dcx_slots_forget_all(uct_dcx_slots_t *slots, uint32_t lkey,
                                     uct_dcx_slots_named_t do_named)
{
    uct_dcx_slot_size_t *size;
    uct_dcx_slot_batch_t *batch;

    for (size = slots->sizes; size < slots->sizes + UCT_DCX_SLOT_SIZES;
         ++size) {
        ucs_list_for_each(batch, &size->batches, list) {
            uct_dcx_slots_forget_batch(slots, batch, lkey, do_named);
        }
    }
}


/* If the queue fails meanwhile, some may not have been invalidated. */
void uct_dcx_slots_forget_lkey(uct_dcx_slots_t *slots, uint32_t lkey)
{
    uint64_t failures;

    ucs_spin_lock(&slots->lock);
    do {
        uct_dcx_slots_drain_locked(slots);
        failures = slots->stats.failures;
        uct_dcx_slots_forget_all(slots, lkey, uct_dcx_slots_clear_named);
        uct_dcx_slots_drain_locked(slots);
    } while (failures != slots->stats.failures);
    uct_dcx_slots_forget_all(slots, lkey, uct_dcx_slots_retire_named);
    ucs_spin_unlock(&slots->lock);
}


void uct_dcx_slots_query(uct_dcx_slots_t *slots, uct_dcx_slots_stats_t *stats)
{
    ucs_spin_lock(&slots->lock);
    *stats           = slots->stats;
    stats->doorbells = slots->umr.num_doorbells;
    ucs_spin_unlock(&slots->lock);
}
