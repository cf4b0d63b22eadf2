/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds keys for layouts of operations and of owners, assigns their numbers,
 * and tests if they are ready; see dcx_key.h. Functions that end in _locked are
 * called with the lock.
 */
#include "dcx_key.h"
#include "dcx_key_make.h"
#include "dcx_key_queue.h"
#include "uct/dcx/base/dcx_figures.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/time/time.h>


/* --- sizes and numbers ---------------------------------------------------- */

/* Returns the smallest of UCT_DCX_KEY_SIZES sizes for @num_klm translations;
 * NULL if none is large enough. */
static uct_dcx_key_size_t *uct_dcx_keys_size(uct_dcx_key_size_t *sizes,
                                             unsigned num_klm)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_KEY_SIZES; ++i) {
        if (sizes[i].num_klm >= num_klm) {
            return &sizes[i];
        }
    }
    return NULL;
}


/* Returns 1 if a peer may still use a number that was released. */
static int uct_dcx_keys_is_stale(const uct_dcx_keys_t *keys, uint32_t number)
{
    const uct_dcx_keys_params_t *params = &keys->params;

    return ((keys->num_given > 0) && uct_dcx_stale_has(&keys->stale, number)) ||
           ((params->is_stale != NULL) &&
            params->is_stale(params->arg, number));
}


/* Finds the number of a key with its next layout: another variant. A layout
 * without rights for peers may have any. Returns 0 if peers may still use all
 * of them. */
static int uct_dcx_keys_next_number(const uct_dcx_keys_t *keys,
                                    const uct_dcx_key_t *key, uint32_t access,
                                    uint32_t *number_p)
{
    const uint32_t remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    uint32_t index        = key->obj.number << 8;
    uint8_t variant       = key->lkey;

    while (++variant != (uint8_t)key->lkey) {
        if (!(access & remote) ||
            !uct_dcx_keys_is_stale(keys, index | variant)) {
            *number_p = index | variant;
            return 1;
        }
    }
    return 0;
}


/* --- acquiring a key ------------------------------------------------------ */

static uint32_t uct_dcx_keys_clock(void)
{
    return (uint64_t)ucs_time_to_msec(ucs_get_time());
}


/* Returns the key of a size that takes a new layout: the least recently used
 * one. Omits keys whose new layout was not used yet, for UCT_DCX_KEY_GRACE, and
 * keys without a free number. Stores the number in @number_p. */
static uct_dcx_key_t *uct_dcx_keys_victim(const uct_dcx_keys_t *keys,
                                          uct_dcx_key_size_t *size,
                                          const uct_dcx_sgl_t *layout,
                                          uint32_t *number_p)
{
    uct_dcx_key_t *key;

    ucs_list_for_each (key, &size->lru, list) {
        if ((!key->is_new ||
             (uct_dcx_keys_clock() - key->since >= UCT_DCX_KEY_GRACE)) &&
            uct_dcx_keys_next_number(keys, key, layout->access, number_p)) {
            return key;
        }
    }
    return NULL;
}


/* Gives a new layout to a key of a size. Returns as uct_dcx_keys_get(). */
static ucs_status_t uct_dcx_keys_miss(uct_dcx_keys_t *keys,
                                      uct_dcx_key_size_t *size,
                                      const uct_dcx_sgl_t *layout)
{
    int is_idle = uct_dcx_umr_is_idle(&keys->umr);
    uct_dcx_key_t *key;
    uint32_t number;

    if (!uct_dcx_keys_can_post(keys)) {
        uct_dcx_keys_ring(keys);
        uct_dcx_keys_check(keys, 0);
        return UCS_ERR_NO_RESOURCE;
    }

    key = uct_dcx_keys_victim(keys, size, layout, &number);
    if (key == NULL) {
        keys->stats.exhausted++;
        /* Held keys wait for peers. */
        return ((size->num > size->num_held) || size->is_growing) ?
                   UCS_ERR_BUSY :
                   UCS_ERR_EXCEEDS_LIMIT;
    }

    keys->stats.misses++;
    keys->stats.evictions += (key->state != UCT_DCX_KEY_FREE);
    uct_dcx_keys_post(keys, key, layout, number);
    key->is_new = 1;
    key->since  = uct_dcx_keys_clock();
    if (is_idle) {
        uct_dcx_keys_ring(keys);
    }
    return UCS_ERR_NO_RESOURCE;
}


/* Returns 1 if one more key of a size can be held: @key, if it is held already,
 * or another one. */
static int uct_dcx_key_can_hold(const uct_dcx_key_size_t *size,
                                const uct_dcx_key_t *key)
{
    return ((key != NULL) && (key->held > 0)) ||
           (size->num_held < size->max / 2);
}


/* Uses a key that has the layout. Returns as uct_dcx_keys_get(). */
static ucs_status_t uct_dcx_keys_hit(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                                     int is_held)
{
    if (key->state == UCT_DCX_KEY_PENDING) {
        uct_dcx_keys_check(keys, 0);
        return UCS_ERR_NO_RESOURCE;
    }

    if (key->state == UCT_DCX_KEY_FAILED) {
        uct_dcx_keys_unhash(keys, key);
        key->is_new = 0;
        return UCS_ERR_IO_ERROR;
    }

    /* The first use is no hit: it is that of the operation that missed. */
    keys->stats.hits += !key->is_new;
    key->is_new = 0;
    if (key->users++ == 0) {
        ucs_list_del(&key->list);
    }
    if (is_held && (key->held++ == 0)) {
        key->size->num_held++;
    }
    return UCS_OK;
}


static ucs_status_t uct_dcx_keys_get_locked(uct_dcx_keys_t *keys,
                                            const uct_dcx_sgl_t *layout,
                                            int is_held, uct_dcx_key_t **key_p)
{
    uct_dcx_key_size_t *size;
    ucs_status_t status;

    if (UCS_STATUS_IS_ERR(keys->status)) {
        return keys->status;
    }

    *key_p = uct_dcx_keys_find(keys, layout);
    if ((*key_p != NULL) &&
        (!is_held || uct_dcx_key_can_hold((*key_p)->size, *key_p))) {
        return uct_dcx_keys_hit(keys, *key_p, is_held);
    }

    size = uct_dcx_keys_size(keys->sizes, uct_dcx_sgl_num_klm(layout));
    if ((size == NULL) || (is_held && !uct_dcx_key_can_hold(size, NULL))) {
        keys->stats.exhausted++;
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    if ((size->num < size->max) && !size->is_growing &&
        (ucs_list_is_empty(&size->lru) ||
         uct_dcx_key_may_be_on_device(
             ucs_list_head(&size->lru, uct_dcx_key_t, list)))) {
        status = uct_dcx_keys_grow(keys, size);
        return (status == UCS_ERR_NO_MEMORY) ?
                   status :
                   uct_dcx_keys_get_locked(keys, layout, is_held, key_p);
    }
    return uct_dcx_keys_miss(keys, size, layout);
}


ucs_status_t uct_dcx_keys_get(uct_dcx_keys_t *keys, const uct_dcx_sgl_t *layout,
                              int is_held, uct_dcx_key_t **key_p)
{
    ucs_status_t status;

    ucs_spin_lock(&keys->lock);
    uct_dcx_keys_poll(keys);
    status = uct_dcx_keys_get_locked(keys, layout, is_held, key_p);
    ucs_spin_unlock(&keys->lock);
    return status;
}


/* A key that has lost its layout meanwhile is first to take another. */
void uct_dcx_keys_put(uct_dcx_keys_t *keys, uct_dcx_key_t *key, int is_held)
{
    ucs_spin_lock(&keys->lock);
    if (is_held && (--key->held == 0)) {
        key->size->num_held--;
    }
    if ((--key->users == 0) && (key->state != UCT_DCX_KEY_GOING)) {
        if (key->state == UCT_DCX_KEY_FREE) {
            ucs_list_add_head(&key->size->lru, &key->list);
        } else {
            ucs_list_add_tail(&key->size->lru, &key->list);
        }
    }
    ucs_spin_unlock(&keys->lock);
}


uint32_t uct_dcx_keys_give_rkey(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    ucs_spin_lock(&keys->lock);
    key->is_given = 1;
    ucs_spin_unlock(&keys->lock);
    return key->rkey;
}


/* --- owned keys ----------------------------------------------------------- */

/* Finds the number for the next owner, which no peer has. Variants are used in
 * turn, so if the next one was released lately, most others were: these are
 * tried if @is_thorough. */
static int uct_dcx_keys_number(const uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                               int is_thorough)
{
    uint32_t next = (key->lkey & ~0xffu) | (uint8_t)(key->lkey + 1);

    if (!uct_dcx_keys_is_stale(keys, next)) {
        key->lkey = next;
        return 1;
    }
    return is_thorough && uct_dcx_keys_next_number(
                              keys, key, IBV_ACCESS_REMOTE_READ, &key->lkey);
}


static uct_dcx_key_t *uct_dcx_keys_find_number(uct_dcx_keys_t *keys,
                                               uct_dcx_key_size_t *size,
                                               int is_thorough)
{
    uct_dcx_key_t *key;

    ucs_list_for_each (key, &size->lru, list) {
        if (uct_dcx_keys_number(keys, key, is_thorough)) {
            return key;
        }
    }
    return NULL;
}


/* Makes more keys, or waits for a thread that makes some. Returns UCS_OK if one
 * may be available now. */
static ucs_status_t uct_dcx_keys_more(uct_dcx_keys_t *keys,
                                      uct_dcx_key_size_t *size)
{
    if (size->num < size->max) {
        return uct_dcx_keys_grow(keys, size);
    }

    if (size->is_growing == 0) {
        return UCS_ERR_IO_ERROR;
    }

    uct_dcx_keys_yield(keys);
    return UCS_OK;
}


/* Takes a key without owner; makes more if there is none. */
static ucs_status_t uct_dcx_keys_take(uct_dcx_keys_t *keys,
                                      uct_dcx_key_size_t *size,
                                      uct_dcx_key_t **key_p)
{
    ucs_status_t status = UCS_OK;
    uct_dcx_key_t *key;

    key = uct_dcx_keys_find_number(keys, size, 0);
    while ((key == NULL) && (status == UCS_OK)) {
        status = uct_dcx_keys_more(keys, size);
        key    = uct_dcx_keys_find_number(keys, size, status != UCS_OK);
    }

    if (key == NULL) {
        return status;
    }

    key->rkey    = key->lkey;
    key->is_lost = 0;
    ucs_list_del(&key->list);
    ucs_list_head_init(&key->list);
    *key_p = key;
    return UCS_OK;
}


/* Returns a key without layout to the pool. @is_given: a peer has the
 * number. */
static void uct_dcx_keys_leave(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                               int is_given)
{
    key->is_given = is_given;
    uct_dcx_keys_retire(keys, key);
    ucs_list_add_tail(&key->size->lru, &key->list);
}


static ucs_status_t uct_dcx_keys_own_locked(uct_dcx_keys_t *keys,
                                            unsigned num_klm,
                                            uct_dcx_key_t **key_p)
{
    uct_dcx_key_size_t *size =
        uct_dcx_keys_size(&keys->sizes[UCT_DCX_KEY_SIZES], num_klm);
    ucs_status_t status;

    if (size == NULL) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    if (UCS_STATUS_IS_ERR(keys->status)) {
        return keys->status;
    }

    if (size->num_owned == keys->params.max_owned) {
        return UCS_ERR_NO_RESOURCE;
    }

    size->num_owned++; /* taking it may release the lock */
    status = uct_dcx_keys_take(keys, size, key_p);
    if ((status == UCS_OK) && UCS_STATUS_IS_ERR(keys->status)) {
        uct_dcx_keys_leave(keys, *key_p, 0);
        status = keys->status;
    }

    size->num_owned -= (status != UCS_OK);
    return status;
}


ucs_status_t uct_dcx_keys_own(uct_dcx_keys_t *keys, unsigned num_klm,
                              uct_dcx_key_t **key_p)
{
    ucs_status_t status;

    ucs_spin_lock(&keys->lock);
    status = uct_dcx_keys_own_locked(keys, num_klm, key_p);
    ucs_spin_unlock(&keys->lock);
    return status;
}


static int uct_dcx_keys_can_set(uct_dcx_keys_t *keys, const uct_dcx_key_t *key)
{
    return (key->state != UCT_DCX_KEY_PENDING) &&
           (key->state != UCT_DCX_KEY_GOING) && uct_dcx_keys_can_post(keys);
}


/* Exchanges a key that has lost its layout, as peers have its number. Making
 * keys releases the lock. */
static ucs_status_t uct_dcx_keys_exchange(uct_dcx_keys_t *keys,
                                          uct_dcx_key_t **key_p)
{
    uct_dcx_key_t *key = NULL;
    ucs_status_t status;

    status = uct_dcx_keys_take(keys, (*key_p)->size, &key);
    if (status == UCS_OK) {
        uct_dcx_keys_leave(keys, *key_p, 1);
        *key_p = key;
    }
    return status;
}


/* Returns 1 if the device has this layout in the key. */
static int uct_dcx_keys_has(const uct_dcx_key_t *key,
                            const uct_dcx_sgl_t *layout)
{
    return (key->state == UCT_DCX_KEY_READY) &&
           (key->layout->start == layout->start) &&
           uct_dcx_sgl_is_equal(key->layout, layout);
}


/* May release the lock, but not after it has begun to replace the layout. */
static ucs_status_t uct_dcx_keys_set_locked(uct_dcx_keys_t *keys,
                                            uct_dcx_key_t **key_p, int is_given,
                                            const uct_dcx_sgl_t *layout)
{
    ucs_status_t status = UCS_OK;

    if ((keys->status == UCS_OK) && uct_dcx_keys_has(*key_p, layout)) {
        if (layout->num_mems > 0) {
            uct_dcx_keys_update_refs(keys, *key_p, layout);
        }
        keys->stats.sets++;
        return UCS_OK;
    }

    if (!uct_dcx_keys_can_set(keys, *key_p)) {
        uct_dcx_keys_poll(keys);
    }

    if (uct_dcx_keys_can_set(keys, *key_p) && (*key_p)->is_lost && is_given) {
        status = uct_dcx_keys_exchange(keys, key_p);
    }

    if (UCS_STATUS_IS_ERR(keys->status)) {
        status = keys->status;
    }
    if (status != UCS_OK) {
        return status;
    }

    if (!uct_dcx_keys_can_set(keys, *key_p)) {
        uct_dcx_keys_ring(keys);
        uct_dcx_keys_check(keys, 0);
        return UCS_ERR_NO_RESOURCE;
    }

    uct_dcx_keys_post(keys, *key_p, layout, (*key_p)->lkey);
    (*key_p)->is_lost = 0;
    keys->stats.sets++;
    return UCS_OK;
}


ucs_status_t uct_dcx_keys_set(uct_dcx_keys_t *keys, uct_dcx_key_t **key_p,
                              int is_given, const uct_dcx_sgl_t *layout)
{
    ucs_status_t status;

    ucs_spin_lock(&keys->lock);
    status = uct_dcx_keys_set_locked(keys, key_p, is_given, layout);
    ucs_spin_unlock(&keys->lock);
    return status;
}


static ucs_status_t uct_dcx_keys_state(const uct_dcx_keys_t *keys,
                                       const uct_dcx_key_t *key)
{
    static const ucs_status_t result[] = {
        [UCT_DCX_KEY_FREE]    = UCS_ERR_NO_ELEM,
        [UCT_DCX_KEY_PENDING] = UCS_INPROGRESS,
        [UCT_DCX_KEY_READY]   = UCS_OK,
        [UCT_DCX_KEY_FAILED]  = UCS_ERR_IO_ERROR,
        [UCT_DCX_KEY_GOING]   = UCS_ERR_NO_ELEM,
    };

    return ((key->state == UCT_DCX_KEY_PENDING) && (keys->status != UCS_OK)) ?
               keys->status :
               result[key->state];
}


ucs_status_t uct_dcx_keys_peek(uct_dcx_keys_t *keys, const uct_dcx_key_t *key)
{
    ucs_status_t status;

    ucs_spin_lock(&keys->lock);
    status = uct_dcx_keys_state(keys, key);
    ucs_spin_unlock(&keys->lock);
    return status;
}


ucs_status_t uct_dcx_keys_test(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    ucs_status_t status;

    ucs_spin_lock(&keys->lock);
    if (key->state == UCT_DCX_KEY_PENDING) {
        uct_dcx_keys_poll(keys);
        uct_dcx_keys_ring(keys);
    }
    if (ucs_unlikely(key->state == UCT_DCX_KEY_PENDING)) {
        uct_dcx_keys_check(keys, 0);
    }
    status = uct_dcx_keys_state(keys, key);
    ucs_spin_unlock(&keys->lock);
    return status;
}


void uct_dcx_keys_disown(uct_dcx_keys_t *keys, uct_dcx_key_t *key, int is_given)
{
    uct_dcx_keys_forget_key(keys, key);
    ucs_spin_lock(&keys->lock);
    key->size->num_owned--;
    uct_dcx_keys_leave(keys, key, is_given);
    ucs_spin_unlock(&keys->lock);
}


void uct_dcx_keys_query(uct_dcx_keys_t *keys, uct_dcx_keys_stats_t *stats)
{
    ucs_spin_lock(&keys->lock);
    *stats           = keys->stats;
    stats->doorbells = keys->umr.num_doorbells;
    ucs_spin_unlock(&keys->lock);
}


void uct_dcx_keys_count(uct_dcx_keys_t *keys)
{
    const uct_dcx_keys_stats_t *now = &keys->stats;
    uct_dcx_keys_stats_t *old       = &keys->counted;

    ucs_spin_lock(&keys->lock);
    uct_dcx_figures_add(UCT_DCX_FIGURE_HITS, now->hits - old->hits);
    uct_dcx_figures_add(UCT_DCX_FIGURE_MISSES, now->misses - old->misses);
    uct_dcx_figures_add(UCT_DCX_FIGURE_EVICTIONS,
                        now->evictions - old->evictions);
    uct_dcx_figures_add(UCT_DCX_FIGURE_EXHAUSTED,
                        now->exhausted - old->exhausted);
    uct_dcx_figures_add(UCT_DCX_FIGURE_SETS, now->sets - old->sets);
    *old = *now;
    ucs_spin_unlock(&keys->lock);
}
