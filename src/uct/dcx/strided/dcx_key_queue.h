/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys and the UMR queue: records which keys have layouts on the device, and
 * which are being invalidated; and an index of the keys that layouts name.
 * Called by the other files of keys, with their lock.
 *
 * The index has all layouts that the device may have. Of one key there may be
 * two: its current layout, and the previous one until the current one has
 * arrived. After failed UMRs there may be more: then the mkey may hold any old
 * translation, and so name any key.
 */
#ifndef UCT_DCX_KEY_QUEUE_H
#define UCT_DCX_KEY_QUEUE_H

#include "dcx_key.h"
#include "uct/dcx/mem/dcx_mem.h"

#include <sched.h>


enum {
    UCT_DCX_KEY_ANY_LKEY = 0 /* no key has this number */
};


struct uct_dcx_key_name {
    ucs_list_link_t list; /* names with the same hash */
    uct_dcx_key_t *key;
    const uct_dcx_mem_t *mem; /* handle that the owner of the key has named; or
                               * NULL */
    uint32_t lkey;
};


/* Returns 1 if the key's current layout has this name, not a previous one. */
static inline int uct_dcx_key_has_name(const uct_dcx_key_name_t *name)
{
    return (size_t)(name - name->key->names) < name->key->num_names;
}


/* Returns 1 if the device may have a layout of the key. */
static inline int uct_dcx_key_is_named(const uct_dcx_key_t *key)
{
    return (key->num_names + key->num_past) > 0;
}


/* Returns the list of names with the hash of @lkey. */
static inline ucs_list_link_t *uct_dcx_keys_names(uct_dcx_keys_t *keys,
                                                  uint32_t lkey)
{
    return &keys->names[(lkey >> 8) % UCT_DCX_KEY_BUCKETS];
}


/* Names the handles of @layout instead of those that the key was set by. The
 * device has this layout in the key, and none before it. */
void uct_dcx_keys_rename(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                         const uct_dcx_sgl_t *layout);

/* Returns the key with this layout, or NULL; does not find owned ones. */
uct_dcx_key_t *uct_dcx_keys_find(uct_dcx_keys_t *keys,
                                 const uct_dcx_sgl_t *layout);

/* Counts the key's layout, and makes it findable unless the key is owned. */
void uct_dcx_keys_hash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Removes the key's layout. */
void uct_dcx_keys_unhash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Lets other threads continue, before this one polls the device again. */
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


/* Posts a layout for a key, which is neither PENDING nor GOING, and gets this
 * number. Replaces the previous layout if the device has one. The queue has
 * room. The caller rings the doorbell. */
void uct_dcx_keys_post(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                       const uct_dcx_sgl_t *layout, uint32_t number);

/* Posts invalidations of keys that are GOING, until the queue is full, and
 * rings the doorbell. */
void uct_dcx_keys_ring(uct_dcx_keys_t *keys);

/* Takes completions; the queue is not idle. */
void uct_dcx_keys_take_completed(uct_dcx_keys_t *keys);

/* Takes completions. After a failure it restarts the queue, and releases the
 * lock meanwhile. */
static inline void uct_dcx_keys_poll(uct_dcx_keys_t *keys)
{
    if (ucs_unlikely((keys->status == UCS_OK) &&
                     !uct_dcx_umr_is_idle(&keys->umr))) {
        uct_dcx_keys_take_completed(keys);
    }
}

/* Makes the queue unusable: nothing posted is executed. @reason is for the log.
 * Releases the lock meanwhile. */
void uct_dcx_keys_give_up(uct_dcx_keys_t *keys, const char *reason);

/* Releases the number of a key: a peer may have it. */
void uct_dcx_keys_retire(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Ends a key that is GOING, and is on no list: the device has no layout of it
 * any longer. */
void uct_dcx_keys_release(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

#endif
