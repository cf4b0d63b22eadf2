/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Locks of objects, and the end of an object. A holder may die, which is
 * repaired, or be stopped, for which no process waits; and the object may be
 * another one by the time the lock is taken.
 */
#define _GNU_SOURCE
#include "hca_obj.h"
#include "hca_proc.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"

#include <errno.h>
#include <time.h>

/* Kinds without a repair leave an object whole at each moment. */
static void hca_obj_repair(enum hca_kind kind, struct hca_obj *obj)
{
    hca_info("%s 0x%x: the process that used it last has died",
             hca_obj_kinds[kind].name, atomic_load(&obj->num));
    if (hca_obj_kinds[kind].repair != NULL) {
        hca_obj_kinds[kind].repair(obj);
    }
}

/* Continues with the lock held; @is_broken: its owner died.
 * @return obj; NULL, with it unlocked, if it is another one by now. */
static inline void *hca_obj_locked(enum hca_kind kind, struct hca_obj *obj,
                                   uint32_t num, bool is_broken)
{
    if (__builtin_expect(is_broken, 0) && (atomic_load(&obj->num) != 0)) {
        hca_obj_repair(kind, obj);
    }
    if (atomic_load_explicit(&obj->num, memory_order_relaxed) != num) {
        hca_mutex_unlock(&obj->lock);
        return NULL;
    }
    return obj;
}

/* @return false if the deadline passed first. */
static bool hca_lock_wait(pthread_mutex_t *lock,
                          const struct timespec *deadline, bool *is_broken)
{
    int ret = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, deadline);

    *is_broken = (ret == EOWNERDEAD);
    if (*is_broken) {
        pthread_mutex_consistent(lock);
    }
    return ret != ETIMEDOUT;
}

void *hca_obj_lock_until(enum hca_kind kind, uint32_t num,
                         const struct timespec *deadline)
{
    struct hca_obj *obj = hca_obj_peek(kind, num);
    bool is_broken;

    if ((obj == NULL) || !hca_lock_wait(&obj->lock, deadline, &is_broken)) {
        return NULL;
    }
    return hca_obj_locked(kind, obj, num, is_broken);
}

static void hca_deadline(struct timespec *deadline, unsigned ms)
{
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += ms / 1000;
    deadline->tv_nsec += ms % 1000 * 1000000l;
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_nsec -= 1000000000;
        deadline->tv_sec++;
    }
}

/* @return true if the holder is stopped, which is logged once. */
static bool hca_obj_is_held_up(enum hca_kind kind, struct hca_obj *obj,
                               pid_t holder)
{
    if (!hca_proc_is_stopped(holder)) {
        obj->stopped = 0;
        return false;
    }
    if (obj->stopped != holder) {
        hca_warn("%s 0x%x: locked by process %d, which is stopped",
                 hca_obj_kinds[kind].name, atomic_load(&obj->num), holder);
        obj->stopped = holder;
    }
    return true;
}

/* Waits for a lock; checks at intervals if the holder is stopped, and at once
 * if that one was found stopped before.
 * @param lock  one of the object's
 * @return false if the holder is stopped. */
static bool hca_obj_wait_live(enum hca_kind kind, struct hca_obj *obj,
                              pthread_mutex_t *lock, bool *is_broken)
{
    pid_t holder = lock->__data.__owner;
    unsigned ms  = hca_obj_kinds[kind].patience_ms;
    struct timespec deadline;

    if ((holder != 0) && (holder == obj->stopped)) {
        ms = 0;
    }
    do {
        hca_deadline(&deadline, ms);
        if (hca_lock_wait(lock, &deadline, is_broken)) {
            return true;
        }
        ms = hca_obj_kinds[kind].patience_ms;
    } while (!hca_obj_is_held_up(kind, obj, lock->__data.__owner));
    return false;
}

/* @return false if a stopped process holds it. */
static inline bool hca_obj_lock_live(enum hca_kind kind, struct hca_obj *obj,
                                     bool *is_broken)
{
    int ret = pthread_mutex_trylock(&obj->lock);

    *is_broken = false;
    if (__builtin_expect(ret == EBUSY, 0)) {
        return hca_obj_wait_live(kind, obj, &obj->lock, is_broken);
    }
    if (__builtin_expect(ret == EOWNERDEAD, 0)) {
        pthread_mutex_consistent(&obj->lock);
        *is_broken = true;
    }
    return true;
}

void *hca_obj_lock(enum hca_kind kind, uint32_t num)
{
    struct hca_obj *obj = hca_obj_peek(kind, num);
    bool is_broken;

    if ((obj == NULL) || !hca_obj_lock_live(kind, obj, &is_broken)) {
        return NULL;
    }
    return hca_obj_locked(kind, obj, num, is_broken);
}

bool hca_obj_hold(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    bool is_broken;

    if (!hca_obj_lock_live(kind, obj, &is_broken)) {
        return false;
    }
    if (is_broken) {
        hca_obj_repair(kind, obj);
    }
    return true;
}

bool hca_obj_is_stuck(enum hca_kind kind, void *obj)
{
    if (!hca_obj_hold(kind, obj)) {
        return true;
    }
    hca_obj_unlock(obj);
    return false;
}

bool hca_obj_lock_other(enum hca_kind kind, void *obj, pthread_mutex_t *lock)
{
    bool is_broken;

    return hca_obj_wait_live(kind, obj, lock, &is_broken);
}

void hca_obj_unlock(void *obj)
{
    hca_mutex_unlock(&((struct hca_obj *)obj)->lock);
}

/* --- the end of an object ------------------------------------------------- */

void hca_obj_abandon(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;

    hca_warn("%s 0x%x: detached: process %d is stopped in the middle of a "
             "message",
             hca_obj_kinds[kind].name, atomic_load(&obj->num),
             obj->lock.__data.__owner);
    atomic_store(&obj->num, 0);
}

bool hca_obj_free(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    bool is_broken; /* ignored: it goes, so no repair */

    if (!hca_obj_lock_live(kind, obj, &is_broken)) {
        hca_obj_abandon(kind, obj);
        return false;
    }
    hca_obj_retire(kind, obj);
    return true;
}

struct hca_obj_reaper {
    enum hca_kind kind;
    struct timespec deadline; /* CLOCK_MONOTONIC, for all objects */
    bool is_done;
};

static void hca_obj_reap_one(void *ptr, void *arg)
{
    struct hca_obj_reaper *reaper = arg;
    struct hca_obj *obj           = ptr;
    bool is_broken; /* ignored: it goes, so no repair */

    if (!hca_lock_wait(&obj->lock, &reaper->deadline, &is_broken)) {
        reaper->is_done = false;
        return;
    }
    hca_obj_retire(reaper->kind, obj);
}

static void hca_obj_leave_one(void *obj, void *arg)
{
    const struct hca_obj_reaper *reaper = arg;

    hca_obj_kinds[reaper->kind].leave(obj);
}

bool hca_obj_reap(unsigned proc)
{
    struct hca_obj_reaper reaper = {.is_done = true};

    clock_gettime(CLOCK_MONOTONIC, &reaper.deadline);
    reaper.deadline.tv_sec++;
    for (reaper.kind = 0; reaper.kind < HCA_NUM_KINDS; reaper.kind++) {
        if (hca_obj_kinds[reaper.kind].leave != NULL) {
            hca_obj_foreach(reaper.kind, proc, hca_obj_leave_one, &reaper);
        }
        hca_obj_foreach(reaper.kind, proc, hca_obj_reap_one, &reaper);
    }
    return reaper.is_done;
}
