/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Strided mkeys: keys that get layouts. They are made ahead, in a few sizes,
 * and get a layout by one UMR. A known layout is found by its content, without
 * cost. A new one takes a key without layout, or evicts the layout used least
 * recently, from a key that is not in use. Only functions that invalidate
 * layouts wait for the device: a call for a layout that is on its way returns
 * at once and is repeated.
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
 * A layout of the cache rings the doorbell at once if the queue is idle.
 * Layouts requested while WQEs are outstanding share one doorbell, rung when
 * these have completed.
 *
 * A key may also be owned (uct_dcx_keys_own()): it is not found by content, its
 * layout is never evicted, and it keeps its number over uct_dcx_keys_set(). Its
 * owner gets another key only if peers have the number of a layout that was
 * lost. Owned keys are separate from those of the cache, so no operation waits
 * for an owner.
 *
 * Each new layout changes the number of a key of the cache: the same index with
 * the next variant. A number that was given to a peer
 * (uct_dcx_keys_give_rkey()) is not used again, with rights for peers, before
 * 4,096 others have been released; mem/dcx_mkey.h has the reasons.
 *
 * Keys belong to a memory domain, and are shared by all its threads: one
 * spinlock. No thread holds it while it waits for the device, for a command or
 * for a WQE.
 */
#ifndef UCT_DCX_KEY_H
#define UCT_DCX_KEY_H

#include "dcx_umr.h"
#include "uct/dcx/base/dcx_stale.h"
#include "uct/dcx/dev/dcx_async.h"

#include <ucs/datastruct/list.h>
#include <ucs/time/time_def.h>
#include <ucs/type/spinlock.h>


enum {
    UCT_DCX_KEY_SIZES   = 4,
    UCT_DCX_KEY_KINDS   = 2 * UCT_DCX_KEY_SIZES,
    UCT_DCX_KEY_BUCKETS = 256,

    /* Milliseconds for which a layout is not evicted before its first use: the
     * operation that requested it tries again by then, or never. */
    UCT_DCX_KEY_GRACE = 1000,

    /* Seconds without progress after which a queue counts as failed, while a
     * thread waits for it or keeps asking */
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
typedef struct uct_dcx_key_ref uct_dcx_key_ref_t; /* dcx_key_queue.h */

/* The numbers are first, as in a memory handle. */
typedef struct uct_dcx_key {
    uint32_t lkey;
    uint32_t rkey;    /* the same number */
    uint32_t users;   /* see uct_dcx_keys_get() */
    uint32_t held;    /* users with @is_held */
    uint32_t since;   /* milliseconds: time when it got its layout */
    uint8_t state;    /* uct_dcx_key_state_t */
    uint8_t is_new;   /* the layout has not been used yet */
    uint8_t is_given; /* a peer has the number; of one that is not
                       * owned */
    uint8_t is_lost;  /* owned: the layout was forgotten since it was
                       * set */
    uint32_t was;     /* PENDING: number of the previous layout, to
                       * be invalidated first; or 0 */
    uint16_t begin;   /* PENDING, GOING: WQEBBs of its WQEs */
    uint16_t end;
    uct_dcx_key_size_t *size;
    struct uct_dcx_key *chain;    /* next one of its bucket, if it can be
                                   * found */
    struct uct_dcx_key *numbered; /* the next one of keys->numbers */
    ucs_list_link_t list;         /* entry of the list of PENDING keys, of GOING
                                   * keys, or of a size's keys that may be
                                   * taken */
    uct_dcx_sgl_t *layout;        /* room for the largest */
    uct_dcx_key_ref_t *refs;      /* of @layout */
    uct_dcx_key_ref_t *past;      /* of previous layouts, if the device may
                                   * have them */
    unsigned num_refs;
    unsigned num_past;
    uct_dcx_umr_klm_t *klm; /* room for its translations; NULL: they are
                             * inline */
    uint32_t klm_lkey;
    uct_dcx_devx_obj_t obj;
} uct_dcx_key_t;


/* Keys that were made together, with their memory */
typedef struct uct_dcx_key_batch {
    ucs_list_link_t list;
    unsigned num;
    void *klm;
    size_t klm_size;
    struct ibv_mr *mr; /* of @klm; NULL: none is needed */
    uint8_t *rooms;    /* for layouts and references of each key */
    uct_dcx_key_t keys[];
} uct_dcx_key_batch_t;


struct uct_dcx_key_size {
    int is_owned; /* its keys are not in the cache */
    unsigned num_klm;
    unsigned num;        /* keys that exist, or are being made */
    unsigned max;        /* keys that may exist */
    unsigned num_held;   /* keys that are held */
    unsigned num_owned;  /* keys that have owners */
    int is_growing;      /* number of threads that make more */
    ucs_list_link_t lru; /* keys that may be taken: first keys without a
                          * layout, then the least recently used. If
                          * @is_owned: keys without an owner */
    ucs_list_link_t batches;
};


typedef struct uct_dcx_keys_stats {
    uint64_t hits;        /* layouts that were found */
    uint64_t misses;      /* layouts that needed a UMR */
    uint64_t evictions;   /* misses that replaced another layout */
    uint64_t exhausted;   /* no key was available, or none is large enough, or
                           * too many are held */
    uint64_t invalidated; /* layouts invalidated with the memory they named */
    uint64_t failures;    /* UMRs that failed */
    uint64_t sets;        /* layouts of owned keys */
    uint64_t doorbells;
    unsigned num_keys;
    unsigned num_set; /* keys with a layout */
} uct_dcx_keys_stats_t;


typedef struct uct_dcx_keys_params {
    const uct_dcx_device_t *dev;
    uct_dcx_async_t *async; /* reports that the queue has failed; or NULL */
    unsigned max_keys;      /* keys of the cache, of each size */
    unsigned max_owned;     /* keys with an owner, of each size */
    unsigned max_entries;   /* entries of the largest layout */

    /* returns 1 if another key had this number, and a peer may still use it; or
     * NULL */
    int (*is_stale)(void *arg, uint32_t number);

    /* called when a key with this number is destroyed, and peers may have the
     * number; or NULL */
    void (*add_stale)(void *arg, uint32_t number);
    void *arg;
} uct_dcx_keys_params_t;


typedef struct uct_dcx_keys {
    uct_dcx_keys_params_t params;
    ucs_spinlock_t lock; /* protects the fields below */
    int is_open;
    ucs_status_t status; /* UCS_INPROGRESS: a thread runs commands for
                          * the queue or its keys, without the lock,
                          * and no other thread may touch them; an
                          * error: the queue is unusable */
    ucs_time_t timeout;  /* UCT_DCX_KEY_TIMEOUT */
    ucs_time_t looked;   /* last call of uct_dcx_keys_check() */
    ucs_time_t since;    /* the first one that found @seen_ci */
    uint16_t seen_ci;    /* umr.qp.sq.ci at that time */
    uct_dcx_umr_t umr;
    uct_dcx_async_watch_t watch; /* of umr.qp, until async ends */
    uct_dcx_key_size_t sizes[UCT_DCX_KEY_KINDS]; /* first the cache's, then
                                                  * owned ones */
    ucs_list_link_t handles;                     /* uct_dcx_mem_layout_t */
    ucs_list_link_t pending;                     /* keys with WQEs, in order of
                                                  * posting */
    ucs_list_link_t leaving;                     /* GOING, not posted yet */
    unsigned num_tries; /* failures of the queue with keys that were GOING,
                         * since the last invalidation */
    uct_dcx_key_t *buckets[UCT_DCX_KEY_BUCKETS]; /* by content */
    uct_dcx_key_t *numbers[UCT_DCX_KEY_BUCKETS]; /* by key index */
    ucs_list_link_t refs[UCT_DCX_KEY_BUCKETS];
    uct_dcx_keys_stats_t stats;
    uct_dcx_keys_stats_t counted; /* @stats as they were added to the figures of
                                   * the process */
    uct_dcx_stale_t stale;        /* numbers of layouts that peers had */
    unsigned num_given;           /* numbers that were added to @stale */
} uct_dcx_keys_t;


/* Initializes the keys of a memory domain; creates none yet. */
ucs_status_t uct_dcx_keys_init(uct_dcx_keys_t *keys,
                               const uct_dcx_keys_params_t *params);

/* Destroys all keys and the queue; no key is in use or owned. */
void uct_dcx_keys_cleanup(uct_dcx_keys_t *keys);


/* Returns 1 if uct_dcx_keys_open() was successful. */
static inline int uct_dcx_keys_is_open(const uct_dcx_keys_t *keys)
{
    return __atomic_load_n(&keys->is_open, __ATOMIC_ACQUIRE);
}


/* Creates the UMR queue, unless it exists. @path leads to the own port. Returns
 * UCS_ERR_UNSUPPORTED, which is not logged, if the device has no DEVX or no UMR
 * for such keys. Logs other errors. */
ucs_status_t uct_dcx_keys_open(uct_dcx_keys_t *keys,
                               const uct_dcx_devx_path_t *path);

/* Returns the number of translations of the largest keys. */
unsigned uct_dcx_keys_max_klm(const uct_dcx_keys_t *keys);

/* Finds a key with this layout, or gives the layout to one. Keys that the
 * layout names are valid while it is in use. @keys are open.
 *
 * @is_held: the caller keeps the key until a peer takes a message or fetches
 * data. That may depend on other operations that need keys: so at most half of
 * each size can be held. A key counts once for any number of holders.
 *
 * Returns
 *   UCS_OK                 the caller is a user of @key_p until
 *                          uct_dcx_keys_put()
 *   UCS_ERR_NO_RESOURCE    the layout is on its way, or the queue has no room:
 *                          ask again
 *   UCS_ERR_BUSY           all keys are in use, are being made, or wait for the
 *                          operations that requested their layouts: ask again,
 *                          or do without. No peer has to act before one is
 *                          released
 *   UCS_ERR_EXCEEDS_LIMIT  it is too large, no key can be made, or the maximum
 *                          of keys is held: do without
 *   UCS_ERR_NO_MEMORY      for more keys, which was logged: ask again, or do
 *                          without
 *   UCS_ERR_IO_ERROR       its UMR has failed, which was logged, or the queue
 *                          is unusable */
ucs_status_t uct_dcx_keys_get(uct_dcx_keys_t *keys, const uct_dcx_sgl_t *layout,
                              int is_held, uct_dcx_key_t **key_p);

/* Ends a use of a key; @is_held as in uct_dcx_keys_get(). The key keeps its
 * layout until it is needed for another one. */
void uct_dcx_keys_put(uct_dcx_keys_t *keys, uct_dcx_key_t *key, int is_held);

/* Returns the number for a peer, and marks it as given. The caller uses the
 * key, whose layout has rights for peers. */
uint32_t uct_dcx_keys_give_rkey(uct_dcx_keys_t *keys, uct_dcx_key_t *key);


/* Takes a key for an owner, with room for @num_klm translations. It has a
 * number that no peer has, and no layout. @keys are open. Returns UCS_OK, or
 *   UCS_ERR_EXCEEDS_LIMIT  no key is large enough
 *   UCS_ERR_NO_RESOURCE    the maximum of keys is owned
 *   UCS_ERR_NO_MEMORY      for more keys, which was logged
 *   UCS_ERR_IO_ERROR       no more can be made, which was logged, or the queue
 *                          is unusable */
ucs_status_t uct_dcx_keys_own(uct_dcx_keys_t *keys, unsigned num_klm,
                              uct_dcx_key_t **key_p);

/* Returns a key to the pool: invalidates its layout on the device, and layouts
 * that refer to it. Waits until that is complete. @is_given: a peer has the
 * number. */
void uct_dcx_keys_disown(uct_dcx_keys_t *keys, uct_dcx_key_t *key,
                         int is_given);

/* Invalidates the layout of a key, and layouts that refer to it; the owner
 * keeps the key. Waits until that is complete. */
void uct_dcx_keys_forget_key(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Begins to invalidate the layout of a key, and layouts that refer to it.
 * Called with the lock. No layout is set in them until that is complete, for
 * which a thread has to wait. */
void uct_dcx_keys_mark(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Gives an owned key a layout, which fits, and replaces the previous one,
 * unless that is the same. Call uct_dcx_keys_test() to ring the doorbell. If
 * the previous layout was lost, and @is_given, exchanges @key_p: it may be
 * another key even on an error. Returns UCS_OK, or
 *   UCS_ERR_NO_RESOURCE    the previous one is still on its way, or too many
 *                          others are: ask again
 *   UCS_ERR_NO_MEMORY      for another key where one is needed, which was
 *                          logged
 *   UCS_ERR_IO_ERROR       the queue is unusable, or no key can be made where
 *                          another one is needed */
ucs_status_t uct_dcx_keys_set(uct_dcx_keys_t *keys, uct_dcx_key_t **key_p,
                              int is_given, const uct_dcx_sgl_t *layout);

/* Returns UCS_OK if an owned key has its layout; otherwise UCS_INPROGRESS,
 * UCS_ERR_IO_ERROR (the UMR failed, which was logged, or the queue is unusable)
 * or UCS_ERR_NO_ELEM (it has none). Takes completions and rings the doorbell
 * while the layout is on its way. */
ucs_status_t uct_dcx_keys_test(uct_dcx_keys_t *keys, uct_dcx_key_t *key);

/* Returns as uct_dcx_keys_test(), as far as is known without access to the
 * device. */
ucs_status_t uct_dcx_keys_peek(uct_dcx_keys_t *keys, const uct_dcx_key_t *key);

/* Returns 1 if a current layout refers to this handle. */
int uct_dcx_keys_is_named(uct_dcx_keys_t *keys, const struct uct_dcx_mem *mem);

/* Invalidates all layouts that refer to this handle, which is about to be
 * deregistered, and layouts that refer to these. Waits until that is complete.
 * Its region may stay. */
void uct_dcx_keys_forget_mem(uct_dcx_keys_t *keys,
                             const struct uct_dcx_mem *mem);

/* Takes all layouts that refer to @lkey out of use, for any handle: memory with
 * this number is about to be deregistered. Returns 1 if the device has none of
 * them any more; waits for that if @is_waiting. */
int uct_dcx_keys_forget(uct_dcx_keys_t *keys, uint32_t lkey, int is_waiting);

/* Finds the memory of the byte at @addr in the space of @lkey. A number that is
 * no strided mkey's is one of memory, whose addresses are those of the process.
 * Returns UCS_ERR_NO_ELEM if there is no such byte: a layout is shorter, or was
 * invalidated with its memory. */
ucs_status_t uct_dcx_keys_place(uct_dcx_keys_t *keys, uint32_t lkey,
                                uint64_t addr, void **place_p);

/* Copies @length bytes from @addr on to @buffer. Returns as
 * uct_dcx_keys_place(); on an error, some bytes may have been copied. */
ucs_status_t uct_dcx_keys_read(uct_dcx_keys_t *keys, uint32_t lkey,
                               uint64_t addr, size_t length, void *buffer);

/* Stores all statistics. */
void uct_dcx_keys_query(uct_dcx_keys_t *keys, uct_dcx_keys_stats_t *stats);

/* Adds the statistics since the last call to the figures of the process. */
void uct_dcx_keys_count(uct_dcx_keys_t *keys);

#endif
