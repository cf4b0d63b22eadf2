/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mutexes in shared memory that survive the death of their owner, a process
 * that is killed or a thread that ends. Without contention a lock is one
 * compare-and-swap, an unlock one exchange. The word of a mutex is
 *
 *   0            free:    a lock makes it the id of its thread (hca_task.h)
 *   id           held:    a thread that has to wait adds HCA_MUTEX_WAITED, and
 *                         sleeps as long as the lower half does not change
 *   id | WAITED  held:    the unlock wakes one thread, which locks with WAITED,
 *                         as others may sleep
 *   dead id      broken:  a thread that has slept for 10 ms asks if the owner
 *                         lives; if not, one takes its place
 *
 * No sleep is longer than that (HCA_MUTEX_TICK_NS in hca_mutex.c): if a thread
 * is killed after an unlock has woken it, or before it wakes another, the
 * others wait for one such time.
 */
#ifndef HCA_MUTEX_H
#define HCA_MUTEX_H

#include "hca_task.h"

#include <stdatomic.h>
#include <time.h>

#define HCA_MUTEX_WAITED (1ull << 31)

struct hca_mutex {
    _Atomic(uint64_t) word;
};

/* Locks a mutex that another thread held just now. @deadline as for
 * hca_mutex_lock_until(), or NULL for no limit. Sets *is_broken if the last
 * owner died with it, and never clears it.
 * @return false if the time is over. */
bool hca_mutex_wait(struct hca_mutex *mutex, const struct timespec *deadline,
                    bool *is_broken);

/* Wakes a thread that waits for the mutex, which is free. */
void hca_mutex_wake(struct hca_mutex *mutex);

static inline void hca_mutex_init(struct hca_mutex *mutex)
{
    atomic_init(&mutex->word, 0);
}

static inline bool hca_mutex_take(struct hca_mutex *mutex)
{
    uint64_t none = 0;

    return __builtin_expect(atomic_compare_exchange_strong_explicit(
                                &mutex->word, &none, hca_task_self(),
                                memory_order_acquire, memory_order_relaxed),
                            1);
}

/* Locks the mutex. @return true if the last owner died with it: the caller then
 * repairs the guarded data. */
static inline bool hca_mutex_lock(struct hca_mutex *mutex)
{
    bool is_broken = false;

    if (!hca_mutex_take(mutex)) {
        hca_mutex_wait(mutex, NULL, &is_broken);
    }
    return is_broken;
}

static inline void hca_mutex_unlock(struct hca_mutex *mutex)
{
    uint64_t word = atomic_exchange_explicit(&mutex->word, 0,
                                             memory_order_release);

    if (__builtin_expect((word & HCA_MUTEX_WAITED) != 0, 0)) {
        hca_mutex_wake(mutex);
    }
}

/* hca_mutex_lock() that waits until @deadline (hca_mutex_deadline()) at most.
 * @param is_broken  set if the last owner died with it
 * @return false if the time is over. */
bool hca_mutex_lock_until(struct hca_mutex *mutex,
                          const struct timespec *deadline, bool *is_broken);

/* Returns a deadline of two seconds from now, for locks that a stopped process
 * may hold: the destruction of an object, fork(), the end of a process, and the
 * like must not wait for ever. */
struct timespec hca_mutex_deadline(void);

/* Locks the mutex if it is free, or if its last owner died with it, which the
 * caller does not learn. @return true if the caller holds the mutex now. */
bool hca_mutex_try(struct hca_mutex *mutex);

#endif
