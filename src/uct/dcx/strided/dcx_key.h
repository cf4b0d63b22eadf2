/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys that get layouts: they are made ahead, in a few sizes, and get a layout
 * by one UMR. A layout that is asked for again is found by its content and
 * costs nothing; a new one takes a key that has none, or that of the layout
 * used least recently that nobody uses. Only uct_dcx_keys_forget() and the like
 * wait for the device: a call for a layout that is on its way returns at once
 * and is made again.
 *
 *            get, miss              its UMR has completed
 *    FREE ---------------> PENDING ----------------------> READY
 *     ^ ^  <---------------  | |  it failed                 | |
 *     | |  queue restarted   | v                            | |
 *     | +----------------- FAILED                           | |
 *     | |    get: told once  | |                            | |
 *     | +--------------------|-|----------------------------+ |
 *     |                      | |     the key is needed       |
 *     |                      v v                              |
 *     +------------------- GOING <----------------------------+
 *       it was invalidated       what the layout names goes
 *
 * The first WQE to an idle queue has its doorbell at once; what is asked for
 * while it is under way goes under one doorbell, when that has completed.
 *
 * A key may also be owned (uct_dcx_keys_own()): it is not found by content, no
 * other layout takes its place, and it keeps its number over
 * uct_dcx_keys_set(); only if peers have the number of a layout that was lost
 * does its owner get another key. Owned keys are not those of the cache: they
 * are never evicted, and operations wait only for keys that come back.
 *
 * Each layout that a key gets has another number: the index of the key with the
 * next variant. One with rights for peers that was given to one
 * (uct_dcx_keys_give_rkey()) does not come back before 4,096 others have been
 * given up, for the reasons that mem/dcx_mkey.h has.
 *
 * Keys are those of a memory domain, for all its threads: one spinlock. It is
 * not held while a thread waits for the device, by a command or for a WQE.
 */
#ifndef UCT_DCX_KEY_H
#define UCT_DCX_KEY_H

#include "dcx_umr.h"
#include "uct/dcx/base/dcx_stale.h"

#include <ucs/datastruct/list.h>
#include <ucs/time/time_def.h>
#include <ucs/type/spinlock.h>


enum {
    UCT_DCX_KEY_SIZES   = 3,
    UCT_DCX_KEY_KINDS   = 2 * UCT_DCX_KEY_SIZES,
    UCT_DCX_KEY_BUCKETS = 256,

    /* A layout that nobody has used since its UMR stays for so many
     * milliseconds: who asked for it comes back, or is gone. */
    UCT_DCX_KEY_GRACE   = 1000,

    /* Seconds without any progress, after which a queue that a thread waits for
     * counts as failed */
    UCT_DCX_KEY_TIMEOUT = 5
};


typedef enum uct_dcx_key_state {
    UCT_DCX_KEY_FREE,
    UCT_DCX_KEY_PENDING,
    UCT_DCX_KEY_READY,
    UCT_DCX_KEY_FAILED,
    UCT_DCX_KEY_GOING
} uct_dcx_key_state_t;


typedef struct uct_dcx_key_size uct_dcx_key_size_t;
typedef struct uct_dcx_key_name uct_dcx_key_name_t; /* dcx_key_queue.h */

/* The numbers stand first, as in a handle of memory. */
typedef struct uct_dcx_key {
    uint32_t           lkey;
    uint32_t           rkey;     /* the same number */
    uint32_t           users;
    uint32_t           held;     /* of these, until a peer does something */
    uint32_t           since;    /* milliseconds: when it got its layout */
    uint8_t            state;    /* uct_dcx_key_state_t */
    uint8_t            is_new;   /* nobody has used the layout yet */
    uint8_t            is_given; /* a peer has the number, of one that is
                                  * not owned */
    uint8_t            is_lost;  /* owned: the layout was forgotten since
                                  * it was set */
    uint32_t           was;      /* PENDING: the number of the layout of
                                  * before, which goes first; or 0 */
    uint16_t           begin;    /* PENDING, GOING: WQEBBs of its WQEs */
    uint16_t           end;
    uct_dcx_key_size_t *size;
    struct uct_dcx_key *chain;   /* of its bucket, if it is found */
    struct uct_dcx_key *numbered; /* the next one of keys->numbers */
    ucs_list_link_t    list;     /* those that are PENDING, those that are
                                  * GOING, or those of a size that may be
                                  * taken */
    uct_dcx_sgl_t      *layout;  /* room for the greatest */
    uct_dcx_key_name_t *names;   /* keys in @layout */
    uct_dcx_key_name_t *past;    /* keys in what the device may have had
                                  * before it */
    unsigned           num_names;
    unsigned           num_past;
    uct_dcx_umr_klm_t  *klm;     /* room for its translations; NULL: they
                                  * are inline */
    uint32_t           klm_lkey;
    uct_dcx_devx_obj_t obj;
} uct_dcx_key_t;


/* Keys that were made at a time, with memory for them */
typedef struct uct_dcx_key_batch {
    ucs_list_link_t list;
    unsigned        num;
    void            *klm;
    size_t          klm_size;
    struct ibv_mr   *mr;    /* of 'klm'; NULL: none is needed */
    uint8_t         *rooms; /* for layouts and names of each */
    uct_dcx_key_t   keys[];
} uct_dcx_key_batch_t;


struct uct_dcx_key_size {
    int             is_owned;   /* its keys are not those of the cache */
    unsigned        num_klm;
    unsigned        num;        /* keys that exist */
    unsigned        max;        /* keys that may exist */
    unsigned        num_held;   /* keys that are held */
    unsigned        num_owned;  /* keys that have owners */
    int             is_growing; /* threads that make more */
    ucs_list_link_t lru;        /* may be taken: those without a layout, then in
                                 * the order in which they were used */
    ucs_list_link_t batches;
};


typedef struct uct_dcx_keys_stats {
    uint64_t hits;        /* layouts that were there */
    uint64_t misses;      /* layouts that a UMR had to give */
    uint64_t evictions;   /* misses in the place of another layout */
    uint64_t exhausted;   /* none was to be had, or none is so large */
    uint64_t invalidated; /* layouts that went with what they named */
    uint64_t failures;    /* UMRs that failed */
    uint64_t sets;        /* layouts of owned keys */
    uint64_t doorbells;
    unsigned num_keys;
    unsigned num_set;     /* keys with a layout */
} uct_dcx_keys_stats_t;


typedef struct uct_dcx_keys_params {
    const uct_dcx_device_t *dev;
    unsigned               max_keys;    /* of each size */
    unsigned               max_owned;   /* the same */
    unsigned               max_entries; /* of the greatest layout */

    /* returns 1 if another key had this number, and a peer may still have it */
    int                    (*is_stale)(void *arg, uint32_t number);

    /* a key with this number is destroyed, peers may have it; or NULL */
    void                   (*add_stale)(void *arg, uint32_t number);
    void                   *arg;
} uct_dcx_keys_params_t;


typedef struct uct_dcx_keys {
    uct_dcx_keys_params_t params;
    ucs_spinlock_t        lock;    /* of what follows */
    int                   is_open;
    ucs_status_t          status;  /* UCS_INPROGRESS: a thread gives the
                                    * device commands for the queue or its
                                    * keys, without the lock, and nobody else
                                    * touches them; an error: the queue is of
                                    * no use */
    ucs_time_t            timeout; /* UCT_DCX_KEY_TIMEOUT */
    uct_dcx_umr_t         umr;
    uct_dcx_key_size_t    sizes[UCT_DCX_KEY_KINDS]; /* those of the cache,
                                                     * then owned ones */
    ucs_list_link_t       handles; /* of layouts */
    ucs_list_link_t       pending; /* in the order of their WQEs */
    ucs_list_link_t       leaving; /* GOING, without a WQE yet */
    unsigned              num_tries; /* failures since one was invalidated */
    uct_dcx_key_t         *buckets[UCT_DCX_KEY_BUCKETS]; /* by content */
    uct_dcx_key_t         *numbers[UCT_DCX_KEY_BUCKETS]; /* by key index */
    ucs_list_link_t       names[UCT_DCX_KEY_BUCKETS];
    uct_dcx_keys_stats_t  stats;
    uct_dcx_stale_t       stale;   /* numbers of layouts that peers had */
    unsigned              num_given;
} uct_dcx_keys_t;


/* Of a memory domain; nothing is made yet. */
ucs_status_t uct_dcx_keys_init(uct_dcx_keys_t *keys,
                               const uct_dcx_keys_params_t *params);

/* Nobody has a key any more. */
void uct_dcx_keys_cleanup(uct_dcx_keys_t *keys);


/* Returns 1 if uct_dcx_keys_open() was successful. */
static inline int uct_dcx_keys_is_open(const uct_dcx_keys_t *keys)
{
    return __atomic_load_n(&keys->is_open, __ATOMIC_ACQUIRE);
}


/* Before the first layout: makes the UMR queue, once. 'path' leads to the own
 * port. Returns UCS_ERR_UNSUPPORTED if the device has no UMR; errors are
 * logged. */
ucs_status_t
uct_dcx_keys_open(uct_dcx_keys_t *keys, const uct_dcx_devx_path_t *path);

/* Translations of the greatest layout */
unsigned uct_dcx_keys_max_klm(const uct_dcx_keys_t *keys);

/* A key that has this layout, whose keys are valid for as long as it is in
 * use. They are open. @is_held: the caller puts it back when a peer does
 * something: takes a message, fetches data. Such a user may wait for other
 * operations, which need keys, too: half of each size can be held. A key
 * counts once, however many hold it. Returns
 *   UCS_OK                 the caller is a user of '*key_p' until
 *                          uct_dcx_keys_put()
 *   UCS_ERR_NO_RESOURCE    it is on its way: ask again
 *   UCS_ERR_BUSY           all keys are in use, or wait for those who asked for
 *                          their layouts: ask again, or do without. They come
 *                          back with nobody's help
 *   UCS_ERR_EXCEEDS_LIMIT  it is too large, no key can be made, or as many as
 *                          can be are held: do without
 *   UCS_ERR_IO_ERROR       its UMR has failed, with a line that says why, or
 *                          the queue is of no use any more */
ucs_status_t
uct_dcx_keys_get(uct_dcx_keys_t *keys, const uct_dcx_sgl_t *layout,
                 int is_held, uct_dcx_key_t **key_p);

void uct_dcx_keys_put(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                      int is_held);

/* The number for a peer. The caller uses the key, whose layout has rights for
 * peers. */
uint32_t uct_dcx_keys_give_rkey(uct_dcx_keys_t *keys,
                                uct_dcx_key_t *key);


/* Takes a key out of those for owners, with room for 'num_klm' translations; it
 * has a number that no peer has, and no layout. They are open. Returns
 *   UCS_ERR_EXCEEDS_LIMIT  no key is so large
 *   UCS_ERR_NO_RESOURCE    as many as there may be are owned
 *   UCS_ERR_IO_ERROR       no more can be made, with a line that says why, or
 *                          the queue is of no use any more */
ucs_status_t uct_dcx_keys_own(uct_dcx_keys_t *keys, unsigned num_klm,
                              uct_dcx_key_t **key_p);

/* Gives it back: takes its layout from the device, and those that name its
 * number. Waits until that is done. 'is_given': a peer has the number. */
void uct_dcx_keys_disown(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                         int is_given);

/* The same, but its owner keeps the key. */
void uct_dcx_keys_forget_key(uct_dcx_keys_t *keys,
                             uct_dcx_key_t *key);

/* With the lock: begins to take the layout of a key from the device, and those
 * that name its number. Nothing is set in them until that is done, for which a
 * thread has to wait. */
void uct_dcx_keys_mark(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Gives an owned key a layout, which fits, in the place of the one before,
 * unless that is the same. It goes to the device with uct_dcx_keys_test() of
 * any owned key. If the one before was lost, and 'is_given', '*key_p' is
 * another key from now on, whatever is returned:
 *   UCS_ERR_NO_RESOURCE    the one before is on its way still, or too many are
 *   UCS_ERR_IO_ERROR       the queue is of no use any more, or no key can be made
 *                          where another one is needed */
ucs_status_t
uct_dcx_keys_set(uct_dcx_keys_t *keys, uct_dcx_key_t **key_p,
                 int is_given, const uct_dcx_sgl_t *layout);

/* Returns if an owned key has its layout: UCS_OK, UCS_INPROGRESS,
 * UCS_ERR_IO_ERROR (the UMR failed, with a line that says why), UCS_ERR_NO_ELEM
 * (it has none) */
ucs_status_t
uct_dcx_keys_test(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Returns the last result of uct_dcx_keys_test(); leaves the device alone. */
ucs_status_t
uct_dcx_keys_peek(uct_dcx_keys_t *keys, const uct_dcx_key_t *key);


/* Returns 1 if a layout names this handle. */
int uct_dcx_keys_is_named(uct_dcx_keys_t *keys,
                          const struct uct_dcx_mem *mem);

/* This handle is about to be deregistered: takes all layouts that name it from
 * the device, and those that name these, and waits until that is done. Its
 * region may stay. */
void uct_dcx_keys_forget_mem(uct_dcx_keys_t *keys,
                             const struct uct_dcx_mem *mem);

/* The other part of uct_dcx_keys_forget() */
int uct_dcx_keys_forget_lkey(uct_dcx_keys_t *keys, uint32_t lkey,
                             int is_waiting);

/* The same for memory with this key, whichever handles it has. Returns 1 if the
 * device has none of these layouts any more. It waits for that if @is_waiting,
 * else they are but out of use. */
static inline int
uct_dcx_keys_forget(uct_dcx_keys_t *keys, uint32_t lkey, int is_waiting)
{
    return ucs_likely(!uct_dcx_keys_is_open(keys)) ||
           uct_dcx_keys_forget_lkey(keys, lkey, is_waiting);
}

/* The place of the byte that has this address in the key's space. A key of no
 * key is one of memory, whose addresses are those of the process. Returns
 * UCS_ERR_NO_ELEM if there is none: a layout ends before, or was taken away with
 * its memory. */
ucs_status_t uct_dcx_keys_place(uct_dcx_keys_t *keys, uint32_t lkey,
                                uint64_t addr, void **place_p);

/* Copies 'length' bytes from there on. Returns the same; then some of them may
 * have been copied. */
ucs_status_t uct_dcx_keys_read(uct_dcx_keys_t *keys, uint32_t lkey,
                               uint64_t addr, size_t length, void *buffer);

void
uct_dcx_keys_query(uct_dcx_keys_t *keys, uct_dcx_keys_stats_t *stats);

#endif
