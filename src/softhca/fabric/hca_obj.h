/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Numbered objects, in tables of the fabric segment. An object belongs to the
 * process that created it; any process may look it up by number. The kinds are
 * described by the table that hca_fabric_attach() is given (exec/hca_nic.h);
 * event channels are of this room (hca_chan.h).
 *
 * A number is not soon reused: its upper bits count the lives of the slot. A
 * slot is never unmapped and its mutex is initialized once, so a stale number
 * is detected under the object's lock.
 */
#ifndef HCA_OBJ_H
#define HCA_OBJ_H

#include "hca_segment.h"

#include <time.h>

/* Kinds are taken back in this order: first those that refer to others. */
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
    pthread_mutex_t lock;
    _Atomic(uint32_t) num; /* 0: free */
    uint16_t gen;
    uint16_t proc;        /* slot of the owner */
    uint16_t dev;         /* hca_dev.h */
    pid_t stopped;        /* holder last found stopped, 0 none */
    uint32_t async_chan;  /* for its async events, 0 none */
    uint64_t user_handle; /* reported in its events */
    uint32_t events;      /* async events reported for it */
    struct hca_subscription devx;
};

/* Name by which another process that has the device file asks for an object:
 * the file (hca_fabric.num_files) and its handle there. */
struct hca_name {
    uint64_t file; /* 0: no process may */
    uint32_t handle;
};

/* A kind of objects. A number has at most 24 bits: 'index_bits' of them are the
 * slot, the others count its lives. */
struct hca_kind_ops {
    const char *name;
    size_t size;
    size_t keep; /* bytes at the front that survive a slot's life */
    unsigned index_bits;
    unsigned gen_bits;
    unsigned patience_ms;       /* before checking if a holder is stopped */
    size_t name_at;             /* of its struct hca_name, 0: it has none */
    void (*init)(void *obj);    /* once for a slot: locks */
    void (*repair)(void *obj);  /* completes what the lock's last holder,
                                 * which died, began; with the lock held */
    void (*retire)(void *obj);  /* before it goes; with its lock held */
    void (*give_up)(void *obj); /* another process destroys it */
    void (*leave)(void *obj);   /* its process goes, with all objects */
};

/* The table of all kinds, HCA_NUM_KINDS: hca_fabric_attach() sets it. */
extern const struct hca_kind_ops *hca_obj_kinds;

/* Takes a slot for a new object of this process. It is not locked: its number
 * is not known yet. Its memory after the header is zero; the caller fills it in
 * and then calls hca_obj_publish().
 * @return NULL if the table is full. */
void *hca_obj_alloc(enum hca_kind kind, unsigned dev);

/* Makes the object found by its number. @return the number. */
uint32_t hca_obj_publish(enum hca_kind kind, void *obj);

/* Frees a published or new object. The caller holds no lock of it, and nothing
 * of its process refers to it any more.
 * @return false if it is given up instead: hca_obj_abandon(). Then the objects
 *         and memory that it refers to must stay. */
bool hca_obj_free(enum hca_kind kind, void *obj);

/* Frees the slot of an object whose lock is held, and unlocks it: for
 * hca_obj_free() and hca_obj_reap(). */
void hca_obj_retire(enum hca_kind kind, void *obj);

/* The slot a number names, live or not, without its lock: for fields that do
 * not change in its life. @return NULL if no live object has that number. */
void *hca_obj_peek(enum hca_kind kind, uint32_t num);

/* hca_obj_peek() that locks the object. Pairs with hca_obj_unlock(). If the
 * lock's last owner died, the object is repaired first. The wait for a holder
 * that is stopped (SIGSTOP, a debugger, a frozen cgroup) ends after 20 ms, for
 * a CQ after a second: NULL, as if the object were gone. */
void *hca_obj_lock(enum hca_kind kind, uint32_t num);
void hca_obj_unlock(void *obj);

/* hca_obj_lock() that waits for a stopped process until @deadline of
 * CLOCK_MONOTONIC. */
void *hca_obj_lock_until(enum hca_kind kind, uint32_t num,
                         const struct timespec *deadline);

/* Locks an object that is, or was, live.
 * @return false if a stopped process holds it. */
bool hca_obj_hold(enum hca_kind kind, void *obj);

/* Waits until an object is unlocked, or its holder is found stopped.
 * @return true if a stopped process holds it. */
bool hca_obj_is_stuck(enum hca_kind kind, void *obj);

/* Takes another lock of the object, which needs no repair.
 * @return false, without waiting longer, if a stopped process holds it. */
bool hca_obj_lock_other(enum hca_kind kind, void *obj, pthread_mutex_t *lock);

/* Gives up a stuck object of this process: no process finds it any more. Its
 * slot is used again once this process is gone. */
void hca_obj_abandon(enum hca_kind kind, void *obj);

#define HCA_ANY_PROC 0u

/* Calls @fn for each live object of process @proc, or of any. @fn may free
 * it. */
void hca_obj_foreach(enum hca_kind kind, unsigned proc,
                     void (*fn)(void *obj, void *arg), void *arg);

/* Returns the object's slot in its table. */
uint32_t hca_obj_index(enum hca_kind kind, const void *obj);

/* Number to be given to the object when published. */
uint32_t hca_obj_number(enum hca_kind kind, const void *obj);

/* Finds the live object of that name, of any process, whose end is noticed from
 * then on (hca_proc_alive()). For kinds whose objects have names.
 * @return NULL if there is none. */
void *hca_obj_by_name(enum hca_kind kind, const struct hca_name *name);

/* Destroys another process' object as far as possible: it loses its name, and
 * its process is told to free it. @return 0; -ENOENT if it is gone; -ETIMEDOUT
 * if a stopped process holds it. */
int hca_obj_give_up(enum hca_kind kind, void *obj, const struct hca_name *name);

/* Returns true if hca_obj_give_up() was called for it. */
bool hca_obj_is_given_up(enum hca_kind kind, const void *obj);

/* Size of all tables in the segment, and their first initialization. */
size_t hca_obj_tables_size(void);
void hca_obj_tables_init(void);

/* Takes back all objects of a dead process, or of this one at exit.
 * @return false if some are left, as another process holds one and does not
 *         release it (it is stopped). */
bool hca_obj_reap(unsigned proc);

#endif
