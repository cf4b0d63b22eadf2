/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mutexes in the segment: process-shared, and robust, as a process that holds
 * one may be killed.
 */
#define _GNU_SOURCE
#include "hca_mutex.h"

#include <errno.h>

void hca_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

bool hca_mutex_lock(pthread_mutex_t *mutex)
{
    if (__builtin_expect(pthread_mutex_lock(mutex) != EOWNERDEAD, 1)) {
        return false;
    }
    pthread_mutex_consistent(mutex);
    return true;
}

bool hca_mutex_lock_until(pthread_mutex_t *mutex,
                          const struct timespec *deadline, bool *is_broken)
{
    int ret = pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, deadline);

    *is_broken = (ret == EOWNERDEAD);
    if (*is_broken) {
        pthread_mutex_consistent(mutex);
    }
    return ret != ETIMEDOUT;
}

struct timespec hca_mutex_deadline(void)
{
    struct timespec deadline;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 2;
    return deadline;
}

bool hca_mutex_try(pthread_mutex_t *mutex)
{
    int ret = pthread_mutex_trylock(mutex);

    if (ret == EOWNERDEAD) {
        pthread_mutex_consistent(mutex);
    }
    return (ret == 0) || (ret == EOWNERDEAD);
}

void hca_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}
