/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Invalidates layouts whose memory is deregistered; see dcx_key.h. Layouts that
 * refer to the memory are marked: they are out of use at once, and are
 * invalidated in the order in which they were marked. The thread that marks
 * them waits for that, without the lock. Layouts that refer to a marked key are
 * marked before it, so they are invalidated first.
 */
#include "dcx_key_queue.h"
#include "uct/dcx/ucx/dcx_ucx.h"


/* --- marking -------------------------------------------------------------- */

/* Returns 1 if a current layout refers to @lkey; if @mem is not NULL, by this
 * handle. */
static inline int uct_dcx_key_ref_is(const uct_dcx_key_ref_t *ref,
                                     uint32_t lkey, const uct_dcx_mem_t *mem)
{
    return (ref->lkey == lkey) && uct_dcx_key_ref_is_current(ref) &&
           ((mem == NULL) || (ref->mem == mem));
}


static void uct_dcx_keys_mark_refs(uct_dcx_keys_t *keys, uint32_t lkey,
                                   const uct_dcx_mem_t *mem)
{
    const uct_dcx_key_ref_t *ref;

    ucs_list_for_each (ref, uct_dcx_keys_refs_of_lkey(keys, lkey), list) {
        if (uct_dcx_key_ref_is(ref, lkey, mem)) {
            uct_dcx_keys_mark(keys, ref->key);
        }
    }
}


/* Marks a key, and keys whose layouts refer to it; only owned keys have any.
 * Returns 1 if it was not marked before. */
static int uct_dcx_keys_mark_key(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    int is_listed = key->users == 0;

    if (key->state == UCT_DCX_KEY_GOING) {
        return 0;
    }

    if (key->state != UCT_DCX_KEY_FREE) {
        uct_dcx_keys_unhash(keys, key);
    }

    key->is_new = 0;
    if (uct_dcx_key_may_be_on_device(key)) {
        key->state   = UCT_DCX_KEY_GOING;
        key->is_lost = 1;
    }
    if (key->size->is_owned) {
        uct_dcx_keys_mark_refs(keys, key->lkey, NULL);
    }
    if (key->state == UCT_DCX_KEY_FREE) {
        return 0;
    }

    if (is_listed) {
        ucs_list_del(&key->list);
    }
    ucs_list_add_tail(&keys->leaving, &key->list);
    return 1;
}


void uct_dcx_keys_mark(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    keys->stats.invalidated += uct_dcx_keys_mark_key(keys, key);
}


/* --- waiting -------------------------------------------------------------- */

/* Remembers the numbers of a destroyed key that peers may have. Another kind of
 * key may get its index, but not these numbers. */
static void uct_dcx_keys_keep_numbers(uct_dcx_keys_t *keys,
                                      const uct_dcx_key_t *key)
{
    const uct_dcx_keys_params_t *params = &keys->params;
    unsigned i;

    if (params->add_stale == NULL) {
        return;
    }

    params->add_stale(params->arg, key->lkey);
    for (i = 0; i < UCT_DCX_STALE_NUMBERS; ++i) {
        if (keys->stale.numbers[i] >> 8 == key->obj.number) {
            params->add_stale(params->arg, keys->stale.numbers[i]);
        }
    }
}


/* Returns the key that is GOING and was marked first; there is one. */
static uct_dcx_key_t *uct_dcx_keys_first_going(uct_dcx_keys_t *keys)
{
    uct_dcx_key_t *key;

    ucs_list_for_each (key, &keys->pending, list) {
        if (key->state == UCT_DCX_KEY_GOING) {
            return key;
        }
    }
    return ucs_list_head(&keys->leaving, uct_dcx_key_t, list);
}


/* Destroys a key instead of its layout, as the queue is unusable. */
static void uct_dcx_keys_destroy_going(uct_dcx_keys_t *keys)
{
    uct_dcx_key_t *key     = uct_dcx_keys_first_going(keys);
    ucs_status_t status    = keys->status;
    uct_dcx_devx_obj_t obj = key->obj;

    ucs_list_del(&key->list);
    uct_dcx_keys_keep_numbers(keys, key);
    key->obj.obj = NULL;
    uct_dcx_keys_begin_command(keys);
    uct_dcx_devx_destroy(&obj);
    uct_dcx_keys_end_command(keys, status);
    uct_dcx_keys_release(keys, key);
}


/* Makes progress, also for other waiting threads. If the queue is unusable,
 * some key is GOING. */
static void uct_dcx_keys_go_on(uct_dcx_keys_t *keys)
{
    if (UCS_STATUS_IS_ERR(keys->status)) {
        uct_dcx_keys_destroy_going(keys);
    } else {
        uct_dcx_keys_ring(keys);
        uct_dcx_keys_poll(keys);
        uct_dcx_keys_check(keys, 1);
        uct_dcx_keys_yield(keys);
    }
}


/* Returns non-zero if the device may have a layout that refers to a key and is
 * not in use: it is GOING, or is being replaced. If the replacement failed, or
 * never arrives, the key is marked. */
static int uct_dcx_keys_is_left(uct_dcx_keys_t *keys,
                                const uct_dcx_key_ref_t *ref)
{
    const uct_dcx_key_t *key = ref->key;

    if ((key->state == UCT_DCX_KEY_FREE) ||
        (key->state == UCT_DCX_KEY_FAILED) ||
        ((key->state == UCT_DCX_KEY_PENDING) &&
         UCS_STATUS_IS_ERR(keys->status))) {
        uct_dcx_keys_mark(keys, ref->key);
    }
    return (key->state == UCT_DCX_KEY_GOING) ||
           ((key->state == UCT_DCX_KEY_PENDING) && (key->was != 0));
}


static int uct_dcx_keys_num_left(uct_dcx_keys_t *keys, uint32_t lkey)
{
    int num = 0;
    const uct_dcx_key_ref_t *ref;

    ucs_list_for_each (ref, uct_dcx_keys_refs_of_lkey(keys, lkey), list) {
        num += (ref->lkey == lkey) && uct_dcx_keys_is_left(keys, ref);
    }
    return num;
}


/* Returns 1 if the device may have a layout that refers to @lkey. */
static int uct_dcx_keys_are_left(uct_dcx_keys_t *keys, uint32_t lkey)
{
    return (uct_dcx_keys_num_left(keys, lkey) > 0) ||
           (uct_dcx_keys_num_left(keys, UCT_DCX_KEY_ANY_LKEY) > 0);
}


/* Waits until the device has no layout that refers to @lkey, except layouts in
 * use. */
static void uct_dcx_keys_wait(uct_dcx_keys_t *keys, uint32_t lkey)
{
    while (uct_dcx_keys_are_left(keys, lkey)) {
        uct_dcx_keys_go_on(keys);
    }
}


/* --- marking and waiting -------------------------------------------------- */

int uct_dcx_keys_forget(uct_dcx_keys_t *keys, uint32_t lkey, int is_waiting)
{
    int is_gone;

    if (ucs_likely(!uct_dcx_keys_is_open(keys))) {
        return 1;
    }

    ucs_spin_lock(&keys->lock);
    uct_dcx_keys_mark_refs(keys, lkey, NULL);
    if (is_waiting) {
        uct_dcx_keys_wait(keys, lkey);
    }
    is_gone = !uct_dcx_keys_are_left(keys, lkey);
    ucs_spin_unlock(&keys->lock);
    return is_gone;
}


/* Waits even if no current layout refers to the memory: the device may still
 * have one that does, until its replacement arrives. */
void uct_dcx_keys_forget_mem(uct_dcx_keys_t *keys, const uct_dcx_mem_t *mem)
{
    uint32_t lkey = uct_dcx_mem_strict_lkey(mem);

    ucs_spin_lock(&keys->lock);
    uct_dcx_keys_mark_refs(keys, lkey, mem);
    uct_dcx_keys_wait(keys, lkey);
    ucs_spin_unlock(&keys->lock);
}


int uct_dcx_keys_is_named(uct_dcx_keys_t *keys, const uct_dcx_mem_t *mem)
{
    uint32_t lkey = uct_dcx_mem_strict_lkey(mem);
    int num       = 0;
    const uct_dcx_key_ref_t *ref;

    ucs_spin_lock(&keys->lock);
    ucs_list_for_each (ref, uct_dcx_keys_refs_of_lkey(keys, lkey), list) {
        num += uct_dcx_key_ref_is(ref, lkey, mem);
    }
    ucs_spin_unlock(&keys->lock);
    return num > 0;
}


void uct_dcx_keys_forget_key(uct_dcx_keys_t *keys, uct_dcx_key_t *key)
{
    ucs_spin_lock(&keys->lock);
    uct_dcx_keys_mark_key(keys, key);
    while (key->state == UCT_DCX_KEY_GOING) {
        uct_dcx_keys_go_on(keys);
    }
    ucs_spin_unlock(&keys->lock);
}
