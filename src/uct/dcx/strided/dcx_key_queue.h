/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys and the UMR queue: which keys have layouts on the device, and which are
 * being invalidated. Index: lkey -> layouts on the device that refer to it. The
 * caller holds keys->lock, except where stated.
 *
 * The index has all layouts that the device may have. Of one key there may be
 * two: its current layout, and the previous one until the current one has
 * arrived. After failed UMRs there may be more: then the mkey may hold any old
 * translation, and so refer to any key.
 */
#ifndef UCT_DCX_KEY_QUEUE_H
#define UCT_DCX_KEY_QUEUE_H

#include "dcx_key.h"
#include "uct/dcx/mem/dcx_mem.h"

#include <sched.h>


enum {
    /* lkey of a reference that may be to any key, as UMRs of its key failed. No
     * key has this number. */
    UCT_DCX_KEY_ANY_LKEY = 0
};


/* Reference from a layout of @key to another key, @lkey */
struct uct_dcx_key_ref {
    ucs_list_link_t list; /* references with the same hash */
    uct_dcx_key_t *key;
    const uct_dcx_mem_t *mem; /* handle of @lkey that the owner of @key passed;
                               * or NULL */
    uint32_t lkey;
};


/* Returns 1 if the reference is of the key's current layout, 0 if it is of a
 * previous one. */
static inline int uct_dcx_key_ref_is_current(const uct_dcx_key_ref_t *ref)
{
    return (size_t)(ref - ref->key->refs) < ref->key->num_refs;
}


/* Returns 1 if the device may have a layout of the key. */
static inline int uct_dcx_key_may_be_on_device(const uct_dcx_key_t *key)
{
    return (key->num_refs + key->num_past) > 0;
}


/* Returns the list of references with the hash of @lkey. The low byte is the
 * variant. */
static inline ucs_list_link_t *uct_dcx_keys_refs_of_lkey(uct_dcx_keys_t *keys,
                                                         uint32_t lkey)
{
    return &keys->refs[(lkey >> 8) % UCT_DCX_KEY_BUCKETS];
}


/* Replaces the key's references by those to the handles of @layout. The device
 * has this layout in the key, and no previous one. */
void uct_dcx_keys_update_refs(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                              const uct_dcx_sgl_t *layout);

/* Returns the key with this layout, or NULL; does not find owned ones. */
uct_dcx_key_t *uct_dcx_keys_find(uct_dcx_keys_t *keys,
                                 const uct_dcx_sgl_t *layout);

/* Counts the key's layout, and makes it findable unless the key is owned. */
void uct_dcx_keys_hash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Makes the key FREE, and its layout is not found any longer. The device may
 * still have it. */
void uct_dcx_keys_unhash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Drops the lock and takes it again, so that other threads continue before this
 * one polls the device again. */
static inline void uct_dcx_keys_yield(uct_dcx_keys_t *keys)
{
    ucs_spin_unlock(&keys->lock);
    sched_yield();
    ucs_spin_lock(&keys->lock);
}


/* Releases the lock for a command, which takes long. Until its end no other
 * thread may touch the queue, or the keys of the command. */
static inline void uct_dcx_keys_begin_command(uct_dcx_keys_t *keys)
{
    keys->status = UCS_INPROGRESS;
    ucs_spin_unlock(&keys->lock);
}


/* Takes the lock again after a command. @status: of the queue from now on */
static inline void uct_dcx_keys_end_command(uct_dcx_keys_t *keys,
                                            ucs_status_t status)
{
    ucs_spin_lock(&keys->lock);
    keys->status = status;
}


/* Returns 1 if a layout may be posted now. Keys that are GOING come first. */
static inline int uct_dcx_keys_can_post(uct_dcx_keys_t *keys)
{
    return (keys->status == UCS_OK) && ucs_list_is_empty(&keys->leaving) &&
           uct_dcx_umr_is_available(&keys->umr);
}


/* Posts a layout for a key, which is neither PENDING nor GOING. @number becomes
 * its lkey and rkey. Replaces the previous layout if the device has one. The
 * queue has room. The caller rings the doorbell. */
void uct_dcx_keys_post(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                       const uct_dcx_sgl_t *layout, uint32_t number);

/* Posts invalidations of keys that are GOING, until the queue is full, and
 * rings the doorbell. */
void uct_dcx_keys_ring(uct_dcx_keys_t *keys);

/* Takes completions; the queue is not idle. Restarts a queue that failed, and
 * releases the lock meanwhile. */
void uct_dcx_keys_take_completed(uct_dcx_keys_t *keys);

/* Calls uct_dcx_keys_take_completed() if the queue is in use. */
static inline void uct_dcx_keys_poll(uct_dcx_keys_t *keys)
{
    if (ucs_unlikely((keys->status == UCS_OK) &&
                     !uct_dcx_umr_is_idle(&keys->umr))) {
        uct_dcx_keys_take_completed(keys);
    }
}

/* Called while something is on its way, after uct_dcx_keys_poll(). Restarts a
 * queue whose QP has failed without a completion: the device reports that, or
 * the queue has not moved for too long. The layout at its head fails. With
 * @is_final, a queue that has not moved is given up, and so is one whose
 * completion queue or device has failed. Time without such a call does not
 * count: the process may have been stopped. May release the lock. */
void uct_dcx_keys_check(uct_dcx_keys_t *keys, int is_final);

/* Keeps the number of a key from reuse for a while if a peer has it. */
void uct_dcx_keys_retire(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Makes a key FREE that is GOING and on no list: the device no longer has a
 * layout of it. */
void uct_dcx_keys_release(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

#endif
