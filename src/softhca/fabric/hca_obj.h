/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Numbered objects, in tables of the fabric segment. An object belongs to the
 * process that created it; any process may look it up by number. What each kind
 * is made of says the table that hca_fabric_attach() is given (exec/hca_nic.h);
 * event channels are of this room (hca_chan.h).
 *
 * A number is never used again soon: its upper bits count the lives of the
 * slot. A slot is never unmapped and its mutex is initialized once, so a stale
 * number is found out under the object's lock.
 */
#ifndef HCA_OBJ_H
#define HCA_OBJ_H

#include "hca_segment.h"

#include <time.h>

/* In this order they are taken back: first what refers to others. */
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

/* Who is told of an object's events by DEVX: a channel that gets the cookie,
 * for the types (HCA_EQE_*) whose bits are set. */
struct hca_subscription {
    uint32_t chan; /* 0: nobody */
    uint64_t mask, cookie;
};

struct hca_obj {
    pthread_mutex_t  lock;
    _Atomic(uint32_t) num; /* 0: free */
    uint16_t         gen;
    uint16_t         proc; /* slot of the owner */
    uint16_t         dev;  /* hca_dev.h */
    pid_t            stopped; /* who was last found to hold it, and be that */
    uint32_t         async_chan; /* where its async events go, 0 nowhere */
    uint64_t         user_handle; /* what its events report */
    uint32_t         events;      /* async events reported for it */
    struct hca_subscription devx;
};

/* By what another process that has the device file asks for an object: the file
 * (hca_fabric.num_files) and its handle there. */
struct hca_name {
    uint64_t file; /* 0: nobody may */
    uint32_t handle;
};

/* A kind of objects. The numbers of one have 24 bits at the most, 'index_bits' of
 * them the slot, the others count its lives. */
struct hca_kind_ops {
    const char *name;
    size_t      size;
    size_t      keep; /* bytes at the front that survive a slot's life */
    unsigned    index_bits;
    unsigned    gen_bits;
    unsigned    patience_ms; /* until one asks whether a holder is stopped */
    size_t      name_at;     /* of its struct hca_name, 0: it has none */
    void      (*init)(void *obj);    /* once for a slot: locks */
    void      (*repair)(void *obj);  /* finishes what the last holder of its
                                        lock, who died, had begun; with it */
    void      (*retire)(void *obj);  /* it goes; with its lock held */
    void      (*give_up)(void *obj); /* another process destroys it */
    void      (*leave)(void *obj);   /* its process goes, with all it has */
};

/* The table of all kinds, HCA_NUM_KINDS: hca_fabric_attach() sets it. */
extern const struct hca_kind_ops *hca_obj_kinds;

/* A fresh object of this process, locked against nobody: its number is not
 * known yet. Its memory after the header is zero; the caller fills it in and
 * then calls hca_obj_publish().
 * @return NULL if the table is full. */
void *hca_obj_alloc(enum hca_kind kind, unsigned dev);

/* Makes the object found by its number. @return the number. */
uint32_t hca_obj_publish(enum hca_kind kind, void *obj);

/* Takes a published or fresh object back. The caller holds no lock of it, and
 * nothing of its process refers to it any more.
 * @return false if it is given up: hca_obj_abandon(). What it refers to has to
 * stay then. */
bool hca_obj_free(enum hca_kind kind, void *obj);

/* Frees the slot of an object whose lock is held, and unlocks it: for
 * hca_obj_free() and hca_obj_reap(). */
void hca_obj_retire(enum hca_kind kind, void *obj);

/* The slot a number names, live or not, without its lock: for fields that do
 * not change in its life. @return NULL if no live object has that number. */
void *hca_obj_peek(enum hca_kind kind, uint32_t num);

/* Like hca_obj_peek(), and locked. Pairs with hca_obj_unlock(). A lock whose
 * last owner died is repaired first. For a process that is stopped (SIGSTOP, a
 * debugger, a frozen cgroup) in the middle of something nobody waits longer than
 * 20 ms, of a CQ a second: NULL, as if the object were gone. */
void *hca_obj_lock(enum hca_kind kind, uint32_t num);
void hca_obj_unlock(void *obj);

/* Like hca_obj_lock(), but waits for a stopped process no longer than until
 * `deadline` of CLOCK_MONOTONIC. */
void *hca_obj_lock_until(enum hca_kind kind, uint32_t num,
                         const struct timespec *deadline);

/* Locks an object that is there, or was.
 * @return false if a process that is stopped has it. */
bool hca_obj_hold(enum hca_kind kind, void *obj);

/* Waits until nobody has an object locked, or who has is stopped.
 * @return whether that one is. */
bool hca_obj_is_stuck(enum hca_kind kind, void *obj);

/* The same of another lock of the object, which needs no repair. Waits for nobody
 * who is stopped. @return false if a process that is stopped has it. */
bool hca_obj_lock_other(enum hca_kind kind, void *obj, pthread_mutex_t *lock);

/* Gives up an object of this process that is stuck: nobody finds it any more. Its
 * slot is used again once this process is gone. */
void hca_obj_abandon(enum hca_kind kind, void *obj);

#define HCA_ANY_PROC 0u

/* Calls fn for each live object of process proc, or of any. fn may free it. */
void hca_obj_foreach(enum hca_kind kind, unsigned proc,
                     void (*fn)(void *obj, void *arg), void *arg);

/* Which slot of its table it has. */
uint32_t hca_obj_index(enum hca_kind kind, const void *obj);

/* Number to be given to the object when published. */
uint32_t hca_obj_number(enum hca_kind kind, const void *obj);

/* The live object of that name, of whatever process, whose end is noticed from then
 * on (hca_proc_alive()); NULL if there is none. A kind whose objects have names. */
void *hca_obj_by_name(enum hca_kind kind, const struct hca_name *name);

/* Destroys an object of another process as far as others can: it has no name any
 * more, and its process is told to free it. @return 0; -ENOENT if it is gone;
 * -ETIMEDOUT if a process that is stopped has it. */
int hca_obj_give_up(enum hca_kind kind, void *obj, const struct hca_name *name);

/* Whether that was done. */
bool hca_obj_is_given_up(enum hca_kind kind, const void *obj);

/* Size of all tables in the segment, and their first initialization. */
size_t hca_obj_tables_size(void);
void hca_obj_tables_init(void);

/* Takes back all objects of a dead process, or of this one at exit.
 * @return false if another process holds one and does not let go (it is
 * stopped): some are left. */
bool hca_obj_reap(unsigned proc);

#endif
