/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Numbered objects, in tables of the fabric segment. An object belongs to the
 * process that created it; any process may look it up by number. The table that
 * hca_fabric_attach() is given (exec/hca_nic.h) describes the kinds. One of
 * them, event channels, is of this directory (hca_chan.h).
 *
 * A number is not soon reused: its upper bits count the lives of the slot. A
 * slot is never unmapped and its mutex is initialized once, so a stale number
 * is detected under the object's lock.
 */
#ifndef HCA_OBJ_H
#define HCA_OBJ_H

#include "hca_segment.h"

#include <time.h>

/* Objects of a dead process are freed in this order: first the kinds that refer
 * to others. */
enum hca_kind {
    HCA_KIND_QP,
    HCA_KIND_SRQ,
    HCA_KIND_CQ,
    HCA_KIND_CHAN,
    HCA_KIND_XRCD,
    HCA_KIND_MKEY,
    HCA_KIND_QPNS,
    HCA_KIND_PD,
    HCA_KIND_DM,
    HCA_NUM_KINDS
};

/* Subscription by DEVX to an object's events: a channel that gets the cookie,
 * for the types (HCA_EQE_*) whose bits are set. */
struct hca_subscription {
    uint32_t chan; /* 0: none */
    uint64_t mask, cookie;
};

struct hca_obj {
    struct hca_mutex lock;
    _Atomic(uint32_t) num; /* 0: free */
    uint16_t gen;
    uint16_t proc;        /* slot of the owner */
    uint16_t dev;         /* hca_dev.h */
    uint32_t async_chan;  /* for its async events, 0 none */
    uint64_t user_handle; /* reported in its events */
    uint32_t events;      /* number of its async events that were written */
    struct hca_subscription devx;
};

/* A kind of objects. A number has at most 24 bits: 'index_bits' of them are the
 * slot, the others count its lives. */
struct hca_kind_ops {
    const char *name;
    size_t size;
    size_t keep; /* bytes at the front that survive a slot's life */
    unsigned index_bits;
    unsigned gen_bits;
    /* Functions, NULL if there is nothing to do: */
    void (*init)(void *obj);   /* initializes other locks, once for a slot */
    void (*repair)(void *obj); /* completes the work of a holder of the lock
                                 * that died; the lock is held again */
    void (*retire)(void *obj); /* before its slot is free; the lock is held */
};

/* The table of all kinds, HCA_NUM_KINDS: hca_fabric_attach() sets it. */
extern const struct hca_kind_ops *hca_obj_kinds;

/* Takes a slot for a new object of this process, which is not locked, as no
 * process knows its number yet. Its memory is zero after the first `keep` bytes
 * of its kind. The caller fills it in and then calls hca_obj_publish().
 * @return NULL if the table is full, which is logged. */
void *hca_obj_alloc(enum hca_kind kind, unsigned dev);

/* Gives the object its number, by which any process finds it from now on.
 * @return the number. */
uint32_t hca_obj_publish(enum hca_kind kind, void *obj);

/* Frees a published or new object. The caller holds no lock of it, and nothing
 * of its process refers to it any more. */
void hca_obj_free(enum hca_kind kind, void *obj);

/* Frees the slot of an object whose lock is held, and unlocks it. */
void hca_obj_retire(enum hca_kind kind, void *obj);

/* Slots of a kind, where this process has them mapped. */
struct hca_slots {
    char *first;
    uint32_t size; /* each starts on a cache line of its own */
    uint32_t mask; /* bits of a number that are its slot */
};

extern struct hca_slots hca_obj_slots[HCA_NUM_KINDS]
    __attribute__((visibility("hidden")));

/* Returns the live object of a number without locking it: it may be freed at
 * any moment. For fields that do not change in its life.
 * @return NULL if no live object has that number. */
static inline void *hca_obj_peek(enum hca_kind kind, uint32_t num)
{
    const struct hca_slots *slots = &hca_obj_slots[kind];
    struct hca_obj *obj =
        (struct hca_obj *)(slots->first +
                           (size_t)(num & slots->mask) * slots->size);

    if (obj == NULL) {
        __builtin_unreachable(); /* spares callers the test of what is found */
    }
    /* pairs with the store in hca_obj_publish() */
    return ((num != 0) &&
            (atomic_load_explicit(&obj->num, memory_order_acquire) == num)) ?
               obj :
               NULL;
}

static inline void hca_obj_unlock(void *obj)
{
    hca_mutex_unlock(&((struct hca_obj *)obj)->lock);
}

/* Locks the object in a slot, which may not be live any more. If the lock's
 * last owner died, the object is repaired first. */
void hca_obj_hold(enum hca_kind kind, void *obj);

/* Locks the object that hca_obj_peek() found, as hca_obj_hold() does.
 * @return false, with no lock held, if it has another number by now. */
static inline bool hca_obj_lock_found(enum hca_kind kind, void *ptr,
                                      uint32_t num)
{
    struct hca_obj *obj = (struct hca_obj *)ptr;

    if (!hca_mutex_take(&obj->lock)) {
        hca_obj_hold(kind, obj);
    }
    if (__builtin_expect(
            atomic_load_explicit(&obj->num, memory_order_relaxed) == num, 1)) {
        return true;
    }
    hca_obj_unlock(obj);
    return false;
}

/* Locks the live object of a number. Pairs with hca_obj_unlock().
 * @return NULL if no live object has that number. */
static inline void *hca_obj_lock(enum hca_kind kind, uint32_t num)
{
    void *obj = hca_obj_peek(kind, num);

    return ((obj != NULL) && hca_obj_lock_found(kind, obj, num)) ? obj : NULL;
}

/* hca_obj_hold() until @deadline (hca_mutex_deadline()) at most.
 * @return false if the time is over. */
bool hca_obj_hold_until(enum hca_kind kind, void *obj,
                        const struct timespec *deadline);

/* Locks an object of this process to destroy it; does not wait for a stopped
 * process for ever (hca_mutex_deadline()).
 * @param first  another of its locks, which is taken before; or NULL
 * @return false, logged, with no lock held, if the time is over: the object
 *         stays as it is. */
bool hca_obj_hold_last(enum hca_kind kind, void *obj, struct hca_mutex *first);

#define HCA_ANY_PROC 0u

/* Calls @fn, without a lock, for the object of each used slot of process @proc,
 * or of any. An object that is not published yet, or abandoned, has the number
 * 0. @fn may free it. */
void hca_obj_foreach(enum hca_kind kind, unsigned proc,
                     void (*fn)(void *obj, void *arg), void *arg);

/* Returns the object's slot in its table. */
uint32_t hca_obj_index(enum hca_kind kind, const void *obj);

/* Returns the number that hca_obj_publish() gives the object. */
uint32_t hca_obj_number(enum hca_kind kind, const void *obj);

/* Return the size of all tables in bytes, and find them in a segment that this
 * process has mapped. A new segment, all zero, has empty ones. */
size_t hca_obj_tables_size(void);
void hca_obj_tables_find(void);

/* Frees all objects of a dead process, or of this one at exit. Waits for their
 * locks until hca_mutex_deadline().
 * @return false if some are left, held by another process. */
bool hca_obj_reap(unsigned proc);

#endif
