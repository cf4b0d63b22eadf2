/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tables of numbered objects. Slots are handed out next-fit under the mutex
 * of the fabric; a number is looked up without any lock.
 */
#define _GNU_SOURCE
#include "hca_obj.h"
#include "softhca/base/hca_log.h"
#include "softhca/base/hca_mutex.h"
#include "hca_proc.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const struct hca_kind_ops *hca_kinds;

/* Largest table, in 64-bit words of its bitmap. */
#define HCA_MAP_WORDS ((1u << 20) / 64)

struct hca_table {
    _Atomic uint64_t used[HCA_MAP_WORDS];
    uint32_t         next; /* where the search for a free slot goes on */
    hca_off_t        slots;
};

void hca_obj_set_kinds(const struct hca_kind_ops *kinds)
{
    hca_kinds = kinds;
}

static struct hca_table *hca_table(enum hca_kind kind)
{
    return (struct hca_table*)hca_ptr(hca_fabric->tables) + kind;
}

/* Slots start on cache lines of their own. */
static size_t hca_slot_size(enum hca_kind kind)
{
    return (hca_kinds[kind].size + 63) & ~63ul;
}

static void *hca_slot(enum hca_kind kind, uint32_t index)
{
    return (char*)hca_ptr(hca_table(kind)->slots) +
           index * hca_slot_size(kind);
}

uint32_t hca_obj_index(enum hca_kind kind, const void *obj)
{
    return ((const char*)obj - (char*)hca_slot(kind, 0)) /
           hca_slot_size(kind);
}

static uint32_t hca_num_slots(enum hca_kind kind)
{
    return 1u << hca_kinds[kind].index_bits;
}

size_t hca_obj_tables_size(void)
{
    size_t size = sizeof(struct hca_table) * HCA_NUM_KINDS;

    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        size += 4096 + hca_slot_size(kind) * hca_num_slots(kind);
    }
    return size;
}

void hca_obj_tables_init(void)
{
    hca_off_t off = hca_fabric->tables +
                    sizeof(struct hca_table) * HCA_NUM_KINDS;

    for (unsigned kind = 0; kind < HCA_NUM_KINDS; kind++) {
        off                    = (off + 4095) & ~4095ul;
        hca_table(kind)->slots = off;
        off                   += hca_slot_size(kind) * hca_num_slots(kind);
    }
}

/* @return a slot that was free, or the number of slots if all are taken. */
static uint32_t hca_slot_take(enum hca_kind kind)
{
    struct hca_table *table = hca_table(kind);
    uint32_t words          = hca_num_slots(kind) / 64;
    uint32_t index          = hca_num_slots(kind);

    hca_mutex_lock(&hca_fabric->lock);
    for (uint32_t i = 0; i <= words; i++) {
        uint32_t word  = (table->next / 64 + i) % words;
        uint64_t taken = atomic_load(&table->used[word]);

        if (i == 0) {
            taken |= (1ull << (table->next % 64)) - 1;
        }
        if (taken != ~0ull) {
            index = word * 64 + __builtin_ctzll(~taken);
            /* before the slot counts as taken, for hca_obj_foreach() */
            ((struct hca_obj*)hca_slot(kind, index))->proc = hca_self;
            atomic_fetch_or(&table->used[word], 1ull << (index % 64));
            table->next = (index + 1) % hca_num_slots(kind);
            break;
        }
    }
    hca_mutex_unlock(&hca_fabric->lock);
    return index;
}

void *hca_obj_alloc(enum hca_kind kind, unsigned dev)
{
    const struct hca_kind_ops *ops = &hca_kinds[kind];
    uint32_t index                 = hca_slot_take(kind);
    struct hca_obj *obj            = hca_slot(kind, index);

    if (index == hca_num_slots(kind)) {
        hca_error("%s: all %u are in use", ops->name, index);
        return NULL;
    }

    if (obj->gen == 0) {
        hca_mutex_init(&obj->lock);
        if (ops->init != NULL) {
            ops->init(obj);
        }
    }
    memset((char*)obj + ops->keep, 0, ops->size - ops->keep);
    obj->gen = (obj->gen % ((1u << ops->gen_bits) - 1)) + 1;
    obj->dev         = dev;
    obj->async_chan  = 0;
    obj->user_handle = 0;
    obj->events      = 0;
    obj->devx.chan   = 0;
    return obj;
}

uint32_t hca_obj_number(enum hca_kind kind, const void *obj)
{
    return ((uint32_t)((const struct hca_obj*)obj)->gen
            << hca_kinds[kind].index_bits) | hca_obj_index(kind, obj);
}

uint32_t hca_obj_publish(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    uint32_t num        = hca_obj_number(kind, obj);

    atomic_store(&obj->num, num);
    hca_info("%s 0x%x: created on device %u", hca_kinds[kind].name, num,
             obj->dev);
    return num;
}

/* With the object locked; unlocks it. */
static void hca_obj_retire(enum hca_kind kind, struct hca_obj *obj)
{
    uint32_t index = hca_obj_index(kind, obj);

    hca_info("%s 0x%x: destroyed", hca_kinds[kind].name,
             atomic_load(&obj->num));
    if (hca_kinds[kind].retire != NULL) {
        hca_kinds[kind].retire(obj);
    }
    atomic_store(&obj->num, 0);
    hca_mutex_unlock(&obj->lock);
    atomic_fetch_and(&hca_table(kind)->used[index / 64],
                     ~(1ull << (index % 64)));
}

void *hca_obj_peek(enum hca_kind kind, uint32_t num)
{
    struct hca_obj *obj = hca_slot(kind, num & (hca_num_slots(kind) - 1));

    /* pairs with the store in hca_obj_publish() */
    return ((num != 0) && (atomic_load_explicit(&obj->num,
                                                memory_order_acquire) == num)) ?
           obj : NULL;
}

/* What is left of those that have none is whole at each moment. */
static void hca_obj_repair(enum hca_kind kind, struct hca_obj *obj)
{
    hca_info("%s 0x%x: its last user died", hca_kinds[kind].name,
             atomic_load(&obj->num));
    if (hca_kinds[kind].repair != NULL) {
        hca_kinds[kind].repair(obj);
    }
}

/* Its lock is held, is_broken: after an owner that died. @return it, unlocked and
 * NULL if it is another one by now. */
static inline void *hca_obj_locked(enum hca_kind kind, struct hca_obj *obj,
                                   uint32_t num, bool is_broken)
{
    if (__builtin_expect(is_broken, 0) &&
        (atomic_load(&obj->num) != 0)) {
        hca_obj_repair(kind, obj);
    }
    if (atomic_load_explicit(&obj->num, memory_order_relaxed) != num) {
        hca_mutex_unlock(&obj->lock);
        return NULL;
    }
    return obj;
}

/* @return false if the deadline came first. */
static bool hca_lock_wait(pthread_mutex_t *lock, const struct timespec *deadline,
                          bool *is_broken)
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
    deadline->tv_sec  += ms / 1000;
    deadline->tv_nsec += ms % 1000 * 1000000l;
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_nsec -= 1000000000;
        deadline->tv_sec++;
    }
}

/* @return whether who has it locked is stopped, which is said once. */
static bool hca_obj_is_held_up(enum hca_kind kind, struct hca_obj *obj,
                               pid_t holder)
{
    if (!hca_proc_is_stopped(holder)) {
        obj->stopped = 0;
        return false;
    }
    if (obj->stopped != holder) {
        hca_warn("%s 0x%x: held by process %d, which is stopped",
                 hca_kinds[kind].name, atomic_load(&obj->num), holder);
        obj->stopped = holder;
    }
    return true;
}

/* Looks each time after a while who it is that does not let go; at once, if that
 * one was found to be stopped before.
 * @param lock  one of the object's
 * @return false if it is. */
static bool hca_obj_wait_live(enum hca_kind kind, struct hca_obj *obj,
                              pthread_mutex_t *lock, bool *is_broken)
{
    pid_t holder = lock->__data.__owner;
    unsigned ms  = ((holder != 0) && (holder == obj->stopped)) ?
                   0 : hca_kinds[kind].patience_ms;
    struct timespec deadline;

    do {
        hca_deadline(&deadline, ms);
        if (hca_lock_wait(lock, &deadline, is_broken)) {
            return true;
        }
        ms = hca_kinds[kind].patience_ms;
    } while (!hca_obj_is_held_up(kind, obj, lock->__data.__owner));
    return false;
}

/* @return false if a process that is stopped has it. */
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

void hca_obj_abandon(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;

    hca_warn("%s 0x%x: given up: process %d, which is stopped, is in the middle "
             "of a message", hca_kinds[kind].name, atomic_load(&obj->num),
             obj->lock.__data.__owner);
    atomic_store(&obj->num, 0);
}

bool hca_obj_free(enum hca_kind kind, void *ptr)
{
    struct hca_obj *obj = ptr;
    bool is_broken; /* and needs no repair, as it goes */

    if (!hca_obj_lock_live(kind, obj, &is_broken)) {
        hca_obj_abandon(kind, obj);
        return false;
    }
    hca_obj_retire(kind, obj);
    return true;
}

void hca_obj_unlock(void *obj)
{
    hca_mutex_unlock(&((struct hca_obj*)obj)->lock);
}

void hca_obj_foreach(enum hca_kind kind, unsigned proc,
                     void (*fn)(void *obj, void *arg), void *arg)
{
    for (uint32_t word = 0; word < hca_num_slots(kind) / 64; word++) {
        uint64_t used = atomic_load(&hca_table(kind)->used[word]);

        for (; used != 0; used &= used - 1) {
            struct hca_obj *obj =
                    hca_slot(kind, word * 64 + __builtin_ctzll(used));

            if ((obj->proc == proc) || (proc == HCA_ANY_PROC)) {
                fn(obj, arg);
            }
        }
    }
}

struct hca_obj_search {
    enum hca_kind          kind;
    const struct hca_name *name;
    struct hca_obj        *found;
};

static struct hca_name *hca_obj_name(enum hca_kind kind, const void *obj)
{
    return (struct hca_name*)((char*)obj + hca_kinds[kind].name_at);
}

static bool hca_obj_is_named(enum hca_kind kind, const struct hca_obj *obj,
                             const struct hca_name *name)
{
    const struct hca_name *own = hca_obj_name(kind, obj);

    /* pairs with the store in hca_obj_publish() */
    return (atomic_load_explicit(&obj->num, memory_order_acquire) != 0) &&
           (own->file == name->file) && (own->handle == name->handle);
}

static void hca_obj_match(void *ptr, void *arg)
{
    struct hca_obj_search *search = arg;

    if (hca_obj_is_named(search->kind, ptr, search->name)) {
        search->found = ptr;
    }
}

void *hca_obj_by_name(enum hca_kind kind, const struct hca_name *name)
{
    struct hca_obj_search search = {.kind = kind, .name = name};

    hca_obj_foreach(kind, HCA_ANY_PROC, hca_obj_match, &search);
    return ((search.found != NULL) && hca_proc_alive(search.found->proc)) ?
           search.found : NULL;
}

int hca_obj_give_up(enum hca_kind kind, void *ptr, const struct hca_name *name)
{
    struct hca_obj *obj = ptr;
    bool is_there;

    if (!hca_obj_hold(kind, obj)) {
        return -ETIMEDOUT;
    }
    is_there = hca_obj_is_named(kind, obj, name);
    if (is_there) {
        hca_obj_name(kind, obj)->file = 0;
        if (hca_kinds[kind].give_up != NULL) {
            hca_kinds[kind].give_up(obj);
        }
        atomic_fetch_add(&hca_fabric->procs[obj->proc].given_up, 1);
    }
    hca_obj_unlock(obj);
    return is_there ? 0 : -ENOENT;
}

bool hca_obj_is_given_up(enum hca_kind kind, const void *obj)
{
    return hca_obj_name(kind, obj)->file == 0;
}

struct hca_obj_reaper {
    enum hca_kind   kind;
    struct timespec deadline; /* CLOCK_MONOTONIC, for all objects */
    bool            is_done;
};

static void hca_obj_reap_one(void *ptr, void *arg)
{
    struct hca_obj_reaper *reaper = arg;
    struct hca_obj *obj           = ptr;
    bool is_broken; /* and needs no repair, as it goes */

    if (!hca_lock_wait(&obj->lock, &reaper->deadline, &is_broken)) {
        reaper->is_done = false;
        return;
    }
    hca_obj_retire(reaper->kind, obj);
}

static void hca_obj_leave_one(void *obj, void *arg)
{
    const struct hca_obj_reaper *reaper = arg;

    hca_kinds[reaper->kind].leave(obj);
}

bool hca_obj_reap(unsigned proc)
{
    struct hca_obj_reaper reaper = {.is_done = true};

    clock_gettime(CLOCK_MONOTONIC, &reaper.deadline);
    reaper.deadline.tv_sec++;
    for (reaper.kind = 0; reaper.kind < HCA_NUM_KINDS; reaper.kind++) {
        if (hca_kinds[reaper.kind].leave != NULL) {
            hca_obj_foreach(reaper.kind, proc, hca_obj_leave_one, &reaper);
        }
        hca_obj_foreach(reaper.kind, proc, hca_obj_reap_one, &reaper);
    }
    return reaper.is_done;
}
