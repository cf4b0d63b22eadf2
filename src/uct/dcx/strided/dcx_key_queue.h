/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys and the UMR queue: which of them have what the device was told, or was
 * told to drop; and an index of the keys that layouts name. Called with the
 * lock of the keys by the other files of them.
 *
 * The index has all layouts that the device may have. Of one key these are
 * two: that of the key, and the one in whose place that was given to the
 * device and has not arrived. After UMRs that failed there may be more of them:
 * the key may name any key then.
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
    ucs_list_link_t     list; /* names whose keys have the same hash */
    uct_dcx_key_t       *key;
    const uct_dcx_mem_t *mem; /* that the owner of the key has named; or NULL */
    uint32_t            lkey;
};


/* Returns 1 if the layout of the key names it, not one that was before. */
static inline int uct_dcx_key_has_name(const uct_dcx_key_name_t *name)
{
    return (size_t)(name - name->key->names) < name->key->num_names;
}


/* Returns 1 if the device may have a layout of the key. */
static inline int uct_dcx_key_is_named(const uct_dcx_key_t *key)
{
    return (key->num_names + key->num_past) > 0;
}


/* All names whose keys have the hash of this one */
static inline ucs_list_link_t *
uct_dcx_keys_names(uct_dcx_keys_t *keys, uint32_t lkey)
{
    return &keys->names[(lkey >> 8) % UCT_DCX_KEY_BUCKETS];
}


/* The key that has this layout, or NULL; owned ones are not found. */
uct_dcx_key_t *
uct_dcx_keys_find(uct_dcx_keys_t *keys, const uct_dcx_sgl_t *layout);

/* Its layout counts, and is found from now on; that of an owned one is not. */
void uct_dcx_keys_hash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* It has no layout any more. */
void uct_dcx_keys_unhash(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Lets other threads go on before this one looks at the device again. */
static inline void uct_dcx_keys_yield(uct_dcx_keys_t *keys)
{
    ucs_spin_unlock(&keys->lock);
    sched_yield();
    ucs_spin_lock(&keys->lock);
}


/* Lets go of the lock for a command, which takes long. Until its end nobody
 * else touches the queue, or the keys that it is for. */
static inline void uct_dcx_keys_begin_command(uct_dcx_keys_t *keys)
{
    keys->status = UCS_INPROGRESS;
    ucs_spin_unlock(&keys->lock);
}


static inline void
uct_dcx_keys_end_command(uct_dcx_keys_t *keys, ucs_status_t status)
{
    ucs_spin_lock(&keys->lock);
    keys->status = status;
}


/* Returns 1 if a layout may be posted now. Those that are GOING come first. */
static inline int uct_dcx_keys_can_post(uct_dcx_keys_t *keys)
{
    return (keys->status == UCS_OK) && ucs_list_is_empty(&keys->leaving) &&
           uct_dcx_umr_is_available(&keys->umr);
}


/* A layout for a key, which is neither PENDING nor GOING and has this number
 * from now on, in the place of another one if the device has one. It may be
 * posted. The doorbell is the caller's business. */
void uct_dcx_keys_post(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                       const uct_dcx_sgl_t *layout, uint32_t number);

/* Posts invalidations for those that are GOING, as many as there is room for,
 * and has the device begin with all that was posted. */
void uct_dcx_keys_ring(uct_dcx_keys_t *keys);

/* The queue is not idle. */
void uct_dcx_keys_take_completed(uct_dcx_keys_t *keys);

/* Takes what has completed. If something has failed, restarts the queue, for
 * which it lets go of the lock. */
static inline void uct_dcx_keys_poll(uct_dcx_keys_t *keys)
{
    if (ucs_unlikely((keys->status == UCS_OK) &&
                     !uct_dcx_umr_is_idle(&keys->umr))) {
        uct_dcx_keys_take_completed(keys);
    }
}

/* The queue is of no use any more, and executes nothing of what was posted:
 * 'reason' is for the log. Lets go of the lock meanwhile. */
void uct_dcx_keys_give_up(uct_dcx_keys_t *keys, const char *reason);

/* The number of a key is given up: a peer may have it. */
void uct_dcx_keys_retire(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* The device has no layout any more of one that is GOING, and is on no list. */
void uct_dcx_keys_gone(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

#endif
