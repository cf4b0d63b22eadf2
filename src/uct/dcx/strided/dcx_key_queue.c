/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys and the UMR queue; see dcx_key_queue.h.
 */
#include "dcx_key_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/time/time.h>


enum {
    /* failures of the queue after which keys are destroyed instead of
     * invalidated */
    UCT_DCX_KEY_ROUNDS = 3
};


/* --- references ----------------------------------------------------------- */

static inline void uct_dcx_key_add_ref(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                                       uint32_t lkey, const uct_dcx_mem_t *mem)
{
    uct_dcx_key_ref_t *ref = &key->refs[key->num_refs++];

    ref->key  = key;
    ref->mem  = mem;
    ref->lkey = lkey;
    ucs_list_add_tail(uct_dcx_keys_refs_of_lkey(keys, lkey), &ref->list);
}


static inline void uct_dcx_key_drop_refs(uct_dcx_key_ref_t *ref,
                                         unsigned *num_p)
{
    for (; *num_p > 0; --*num_p, ++ref) {
        ucs_list_del(&ref->list);
    }
}


/* Removes all references: the device has no layout of the key. */
static void uct_dcx_key_drop_all_refs(uct_dcx_key_t *key)
{
    uct_dcx_key_drop_refs(key->refs, &key->num_refs);
    uct_dcx_key_drop_refs(key->past, &key->num_past);
}


/* Keeps the references of the previous layout until the new one has arrived. */
static UCS_F_NOINLINE void uct_dcx_key_age_refs(uct_dcx_keys_t *keys,
                                                uct_dcx_key_t *key)
{
    uct_dcx_key_ref_t *past = key->past;

    if (key->num_past > 0) {
        uct_dcx_key_drop_all_refs(key);
        uct_dcx_key_add_ref(keys, key, UCT_DCX_KEY_ANY_LKEY, NULL);
    }

    key->past     = key->refs;
    key->num_past = key->num_refs;
    key->refs     = past;
    key->num_refs = 0;
}


/* Returns 1 if the old and the new layout refer to the same single key. */
static inline int uct_dcx_key_is_same_ref(const uct_dcx_key_t *key,
                                          const uct_dcx_sgl_t *layout)
{
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    const uct_dcx_sgl_entry_t *end   = entry + layout->num;
    const uct_dcx_key_ref_t *ref     = key->refs;

    if ((key->num_refs != 1) || (key->num_past != 0)) {
        return 0;
    }

    if (layout->num_mems > 0) {
        return (layout->num_mems == 1) && (ref->mem == layout->mems[0]) &&
               (ref->lkey == uct_dcx_mem_strict_lkey(ref->mem));
    }

    while ((entry < end) && (entry->lkey == ref->lkey)) {
        ++entry;
    }
    return entry == end;
}


/* Replaces the references by those of a layout: to handles, or only to keys. */
static inline void uct_dcx_key_set_refs(uct_dcx_keys_t *keys,
                                        uct_dcx_key_t *key,
                                        const uct_dcx_sgl_t *layout)
{
    const uct_dcx_sgl_entry_t *entry = layout->entries;
    const uct_dcx_sgl_entry_t *end   = entry + layout->num;
    uint32_t lkey                    = UCT_DCX_KEY_ANY_LKEY;
    unsigned i;

    if (uct_dcx_key_is_same_ref(key, layout)) {
        return;
    }

    if (key->num_refs > 0) {
        uct_dcx_key_age_refs(keys, key);
    }

    for (i = 0; i < layout->num_mems; ++i) {
        uct_dcx_key_add_ref(keys, key, uct_dcx_mem_strict_lkey(layout->mems[i]),
                            layout->mems[i]);
    }

    for (; (i == 0) && (entry < end); ++entry) {
        if (entry->lkey != lkey) { /* most have that of the previous entry */
            lkey = entry->lkey;
            uct_dcx_key_add_ref(keys, key, lkey, NULL);
        }
    }
}


void uct_dcx_keys_update_refs(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                              const uct_dcx_sgl_t *layout)
{
    if (!uct_dcx_key_is_same_ref(key, layout)) {
        uct_dcx_key_drop_refs(key->refs, &key->num_refs);
        uct_dcx_key_set_refs(keys, key, layout);
    }
}


/* --- content -------------------------------------------------------------- */

static uct_dcx_key_t **uct_dcx_keys_bucket(uct_dcx_keys_t *keys,
                                           const uct_dcx_sgl_t *layout)
{
    return &keys->buckets[layout->hash % UCT_DCX_KEY_BUCKETS];
}


uct_dcx_key_t *uct_dcx_keys_find(uct_dcx_keys_t *keys,
                                 const uct_dcx_sgl_t *layout)
{
    uct_dcx_key_t *key = *uct_dcx_keys_bucket(keys, layout);

    while ((key != NULL) && !uct_dcx_sgl_is_equal(key->layout, layout)) {
        key = key->chain;
    }
    return key;
}


void uct_dcx_keys_hash(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    uct_dcx_key_t **bucket = uct_dcx_keys_bucket(keys, key->layout);

    keys->stats.num_set++;
    if (!key->size->is_owned) {
        key->chain = *bucket;
        *bucket    = key;
    }
}


void uct_dcx_keys_unhash(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    uct_dcx_key_t **link = uct_dcx_keys_bucket(keys, key->layout);

    keys->stats.num_set--;
    key->state = UCT_DCX_KEY_FREE;
    if (key->size->is_owned) {
        return;
    }

    while (*link != key) {
        link = &(*link)->chain;
    }
    *link = key->chain;
}


/* --- the queue ------------------------------------------------------------ */

/* Ends a PENDING key, which has no user except its owner. */
static void uct_dcx_keys_complete(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                                  uct_dcx_key_state_t state)
{
    key->state = state;
    ucs_list_del(&key->list);
    if (key->size->is_owned) {
        ucs_list_head_init(&key->list);
    } else {
        ucs_list_add_tail(&key->size->lru, &key->list);
    }
}


void uct_dcx_keys_retire(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    if (key->is_given) {
        uct_dcx_stale_add(&keys->stale, key->lkey);
        keys->num_given++;
        key->is_given = 0;
    }
}


/* Makes the key available; if it is in use, uct_dcx_keys_put() does that
 * later. */
void uct_dcx_keys_release(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    uct_dcx_keys_retire(keys, key);
    uct_dcx_key_drop_all_refs(key);
    key->state = UCT_DCX_KEY_FREE;
    if (key->size->is_owned) {
        ucs_list_head_init(&key->list);
    } else if (key->users == 0) {
        ucs_list_add_head(&key->size->lru, &key->list);
    }
}


static int uct_dcx_keys_precedes(uint16_t a, uint16_t b)
{
    return (int16_t)(a - b) <= 0;
}


/* Ends keys whose WQEs end at WQEBB @until or before. */
static void uct_dcx_keys_complete_until(uct_dcx_keys_t *keys, uint16_t until)
{
    uct_dcx_key_t *key, *next;

    ucs_list_for_each_safe (key, next, &keys->pending, list) {
        if (!uct_dcx_keys_precedes(key->end, until)) {
            break;
        }
        if (key->state == UCT_DCX_KEY_PENDING) {
            uct_dcx_key_drop_refs(key->past, &key->num_past);
            uct_dcx_keys_complete(keys, key, UCT_DCX_KEY_READY);
        } else {
            ucs_list_del(&key->list);
            uct_dcx_keys_release(keys, key);
            keys->num_tries = 0;
        }
    }
}


/* Handles a failed queue. WQEs behind the failed one were not executed: their
 * layouts are requested again, except those of owners, which stay pending, as
 * do keys that are GOING. They may be half changed: after a failed UMR the mkey
 * may hold its old translation, so the references stay. */
static void uct_dcx_keys_complete_failed(uct_dcx_keys_t *keys)
{
    const uct_dcx_umr_t *umr = &keys->umr;
    int is_going             = 0;
    uct_dcx_key_t *key, *next;

    uct_dcx_keys_complete_until(keys, umr->failed);
    ucs_list_for_each_safe (key, next, &keys->pending, list) {
        if (key->state == UCT_DCX_KEY_GOING) {
            is_going = 1;
        } else if (uct_dcx_keys_precedes(key->begin, umr->failed)) {
            ucs_error(
                "%s: UMR of mkey 0x%x, %s of %u entries and %lu bytes, "
                "failed: %s",
                uct_dcx_device_name(keys->params.dev), key->lkey,
                (key->layout->kind == UCT_DCX_SGL_LIST) ? "a list" : "blocks",
                key->layout->num, key->layout->length, umr->error->reason);
            uct_dcx_keys_complete(keys, key, UCT_DCX_KEY_FAILED);
        } else if (!key->size->is_owned) {
            uct_dcx_keys_unhash(keys, key);
            key->is_new = 0;
            uct_dcx_keys_complete(keys, key, UCT_DCX_KEY_FREE);
        }
    }
    keys->num_tries += is_going;
}


/* Writes the WQEs of a key that is PENDING or GOING. */
static UCS_F_ALWAYS_INLINE void uct_dcx_keys_post_wqes(uct_dcx_keys_t *keys,
                                                       uct_dcx_key_t *key)
{
    uct_dcx_umr_t *umr = &keys->umr;

    key->begin = umr->qp.sq.pi;
    if (key->state == UCT_DCX_KEY_GOING) {
        uct_dcx_umr_post_invalidate(umr, key->lkey);
    } else {
        if (key->was != 0) {
            uct_dcx_umr_post_invalidate(umr, key->was);
        }
        uct_dcx_umr_post_layout(umr, key->lkey, key->layout, key->klm,
                                key->klm_lkey);
    }
    key->end = umr->qp.sq.pi;
}


void uct_dcx_keys_post(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                       const uct_dcx_sgl_t *layout, uint32_t number)
{
    int is_based;

    key->was = uct_dcx_key_may_be_on_device(key) ? key->lkey : 0;
    if (key->state != UCT_DCX_KEY_FREE) {
        uct_dcx_keys_unhash(keys, key);
    }

    if (number != key->lkey) {
        uct_dcx_keys_retire(keys, key);
    }

    is_based = key->layout->is_based || (layout->start != 0);
    memcpy(key->layout, layout, uct_dcx_sgl_size(layout->num));
    key->layout->is_based = is_based; /* never reset, as no UMR would reset the
                                       * start */

    key->lkey = number;
    key->rkey = number;
    uct_dcx_key_set_refs(keys, key, layout);
    uct_dcx_keys_hash(keys, key);
    key->state = UCT_DCX_KEY_PENDING;
    ucs_list_del(&key->list);
    ucs_list_add_tail(&keys->pending, &key->list);
    uct_dcx_keys_post_wqes(keys, key);
}


static UCS_F_NOINLINE void uct_dcx_keys_post_leaving(uct_dcx_keys_t *keys)
{
    uct_dcx_key_t *key;

    while (!ucs_list_is_empty(&keys->leaving) &&
           uct_dcx_umr_is_available(&keys->umr)) {
        key = ucs_list_extract_head(&keys->leaving, uct_dcx_key_t, list);
        ucs_list_add_tail(&keys->pending, &key->list);
        uct_dcx_keys_post_wqes(keys, key);
    }
}


void uct_dcx_keys_ring(uct_dcx_keys_t *keys)
{
    if (keys->status != UCS_OK) {
        return;
    }

    if (ucs_unlikely(!ucs_list_is_empty(&keys->leaving))) {
        uct_dcx_keys_post_leaving(keys);
    }
    uct_dcx_umr_ring(&keys->umr);
}


/* Posts everything again. The queue is empty, so all that was in it fits. */
static void uct_dcx_keys_repost(uct_dcx_keys_t *keys)
{
    uct_dcx_key_t *key;

    ucs_list_for_each (key, &keys->pending, list) {
        uct_dcx_keys_post_wqes(keys, key);
    }
    uct_dcx_keys_ring(keys);
}


static ucs_status_t uct_dcx_keys_restart(uct_dcx_keys_t *keys)
{
    ucs_status_t status;

    keys->stats.failures++;
    keys->looked = 0; /* it begins anew */
    uct_dcx_keys_begin_command(keys);
    status = uct_dcx_umr_restart(&keys->umr);
    uct_dcx_keys_end_command(keys, status);
    return status;
}


/* Makes the queue unusable. Resets it: if it was only late, it must not change
 * keys that have got the indices of ours. Releases the lock meanwhile. */
static void uct_dcx_keys_give_up(uct_dcx_keys_t *keys, const char *reason)
{
    ucs_error("%s: the UMR queue %s: layouts can no longer be used",
              uct_dcx_device_name(keys->params.dev), reason);
    uct_dcx_keys_restart(keys);
    keys->status = UCS_ERR_IO_ERROR;
}


static UCS_F_NOINLINE void uct_dcx_keys_recover(uct_dcx_keys_t *keys)
{
    uct_dcx_keys_complete_failed(keys);
    if (uct_dcx_keys_restart(keys) != UCS_OK) {
        ucs_error("%s: failed to reset the UMR queue: layouts can no longer "
                  "be used",
                  uct_dcx_device_name(keys->params.dev));
        keys->status = UCS_ERR_IO_ERROR;
    } else if (keys->num_tries == UCT_DCX_KEY_ROUNDS) {
        uct_dcx_keys_give_up(keys, "failed repeatedly");
    } else {
        uct_dcx_keys_repost(keys);
    }
}


/* Restarts a queue whose WQEs do not complete: the first one fails, unless it
 * has completed meanwhile. */
static void uct_dcx_keys_unstall(uct_dcx_keys_t *keys)
{
    static const uct_dcx_syndrome_t silent = {
        UCS_ERR_IO_ERROR,
        "the UMR queue does not move",
        "it has failed without a completion",
    };

    if (uct_dcx_umr_poll(&keys->umr) == UCS_OK) {
        keys->umr.error  = &silent;
        keys->umr.failed = keys->umr.qp.sq.ci;
    }
    uct_dcx_keys_recover(keys);
}


/* Returns 1 if the queue has not moved since a time that is too long ago. */
static int uct_dcx_keys_is_stuck(uct_dcx_keys_t *keys)
{
    ucs_time_t now = ucs_get_time();

    if ((keys->seen_ci != keys->umr.qp.sq.ci) ||
        (now - keys->looked > keys->timeout / 4)) {
        keys->seen_ci = keys->umr.qp.sq.ci;
        keys->since   = now;
    }
    keys->looked = now;
    return now - keys->since > keys->timeout;
}


/* Returns 1 if the device has reported that the QP has failed, and the QP is
 * still in error: the report may be one of a failure before the last restart.
 * Releases the lock meanwhile. */
static int uct_dcx_keys_has_failed(uct_dcx_keys_t *keys)
{
    int has_failed;

    if (!uct_dcx_async_is_marked(&keys->watch.has_failed)) {
        return 0;
    }

    uct_dcx_async_unmark(&keys->watch.has_failed);
    uct_dcx_keys_begin_command(keys);
    has_failed = !uct_dcx_devx_qp_is_ready(&keys->umr.qp);
    uct_dcx_keys_end_command(keys, UCS_OK);
    return has_failed;
}


void uct_dcx_keys_check(uct_dcx_keys_t *keys, int is_final)
{
    int is_stuck;

    if ((keys->status != UCS_OK) || uct_dcx_umr_is_idle(&keys->umr)) {
        return;
    }

    is_stuck = uct_dcx_keys_is_stuck(keys);
    if (uct_dcx_async_is_marked(&keys->umr.cq.has_failed) ||
        uct_dcx_async_is_marked(&keys->params.dev->has_failed)) {
        uct_dcx_keys_give_up(keys, "has failed");
    } else if (is_stuck && is_final) {
        uct_dcx_keys_give_up(keys, "does not move");
    } else if (is_stuck || uct_dcx_keys_has_failed(keys)) {
        uct_dcx_keys_unstall(keys);
    }
}


void uct_dcx_keys_take_completed(uct_dcx_keys_t *keys)
{
    uct_dcx_umr_t *umr = &keys->umr;

    if (uct_dcx_umr_poll(umr) != UCS_OK) {
        uct_dcx_keys_recover(keys);
        return;
    }

    uct_dcx_keys_complete_until(keys, umr->qp.sq.ci);
    if (umr->qp.sq.ci == umr->rung) {
        uct_dcx_keys_ring(keys);
    }
}
