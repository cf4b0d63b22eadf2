/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* Waits for a mutex: see hca_mutex.h. */
#define _GNU_SOURCE
#include "hca_mutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Longest sleep: after it a thread looks if the owner is dead, or a wake-up was
 * lost. */
#define HCA_MUTEX_TICK_NS 10000000l

/* Most locks are held for less than the kernel takes to put a thread to sleep
 * and to wake it. */
#define HCA_MUTEX_SPINS 100u

/* The lower half, which has the owner's number and HCA_MUTEX_WAITED. */
static void *hca_mutex_futex(struct hca_mutex *mutex)
{
    return &mutex->word; /* little-endian */
}

void hca_mutex_wake(struct hca_mutex *mutex)
{
    int err = errno;

    syscall(SYS_futex, hca_mutex_futex(mutex), FUTEX_WAKE, 1, NULL, NULL, 0);
    errno = err;
}

/* Returns false on one CPU, where the owner cannot run meanwhile. */
static bool hca_mutex_may_spin(void)
{
    static _Atomic int num_cpus;
    int num = atomic_load_explicit(&num_cpus, memory_order_relaxed);
    cpu_set_t cpus;

    if (num == 0) {
        num = (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) ?
                  CPU_COUNT(&cpus) :
                  1;
        atomic_store_explicit(&num_cpus, num, memory_order_relaxed);
    }
    return num > 1;
}

static bool hca_mutex_spin(struct hca_mutex *mutex)
{
    for (unsigned i = 0; i < HCA_MUTEX_SPINS; i++) {
        if ((atomic_load_explicit(&mutex->word, memory_order_relaxed) == 0) &&
            hca_mutex_take(mutex)) {
            return true;
        }
        __builtin_ia32_pause();
    }
    return false;
}

/* Takes the mutex if its word still is @word; marks it as waited for, as other
 * threads may sleep. */
static bool hca_mutex_replace(struct hca_mutex *mutex, uint64_t word)
{
    return atomic_compare_exchange_strong_explicit(
        &mutex->word, &word, hca_task_self() | HCA_MUTEX_WAITED,
        memory_order_acquire, memory_order_relaxed);
}

/* Sleeps while the mutex's word is @word, for HCA_MUTEX_TICK_NS at most.
 * @return true if it has not changed until then or until a signal, as signals
 *         may come more often. */
static bool hca_mutex_sleep(struct hca_mutex *mutex, uint64_t word)
{
    const struct timespec tick = {.tv_nsec = HCA_MUTEX_TICK_NS};

    if (!(word & HCA_MUTEX_WAITED) &&
        !atomic_compare_exchange_strong_explicit(
            &mutex->word, &word, word | HCA_MUTEX_WAITED, memory_order_relaxed,
            memory_order_relaxed)) {
        return false;
    }
    return (syscall(SYS_futex, hca_mutex_futex(mutex), FUTEX_WAIT,
                    (uint32_t)(word | HCA_MUTEX_WAITED), &tick, NULL,
                    0) != 0) &&
           ((errno == ETIMEDOUT) || (errno == EINTR));
}

static bool hca_mutex_is_over(const struct timespec *deadline)
{
    struct timespec now;

    if (deadline == NULL) {
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec > deadline->tv_sec) ||
           ((now.tv_sec == deadline->tv_sec) &&
            (now.tv_nsec >= deadline->tv_nsec));
}

static bool hca_mutex_wait_long(struct hca_mutex *mutex,
                                const struct timespec *deadline,
                                bool *is_broken)
{
    uint64_t word;

    do {
        word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
        if (word == 0) {
            if (hca_mutex_replace(mutex, 0)) {
                return true;
            }
        } else if (hca_mutex_sleep(mutex, word) && hca_task_is_dead(word) &&
                   hca_mutex_replace(mutex, word | HCA_MUTEX_WAITED)) {
            *is_broken = true;
            return true;
        }
    } while (!hca_mutex_is_over(deadline));
    return false;
}

bool hca_mutex_wait(struct hca_mutex *mutex, const struct timespec *deadline,
                    bool *is_broken)
{
    int err = errno;
    bool ret;

    ret = (hca_mutex_may_spin() && hca_mutex_spin(mutex)) ||
          hca_mutex_wait_long(mutex, deadline, is_broken);
    errno = err;
    return ret;
}

bool hca_mutex_lock_until(struct hca_mutex *mutex,
                          const struct timespec *deadline, bool *is_broken)
{
    *is_broken = false;
    return hca_mutex_take(mutex) || hca_mutex_wait(mutex, deadline, is_broken);
}

struct timespec hca_mutex_deadline(void)
{
    struct timespec deadline;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 2;
    return deadline;
}

bool hca_mutex_try(struct hca_mutex *mutex)
{
    uint64_t word;

    if (hca_mutex_take(mutex)) {
        return true;
    }
    word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
    return (word != 0) && hca_task_is_dead(word) &&
           hca_mutex_replace(mutex, word);
}
