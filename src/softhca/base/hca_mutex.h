/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Robust mutexes in shared memory: a process may be killed while it holds one.
 */
#ifndef HCA_MUTEX_H
#define HCA_MUTEX_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* Initializes a robust, process-shared mutex. */
void hca_mutex_init(pthread_mutex_t *mutex);

/* Waits for the mutex. @return true if the last owner died with it: the caller
 * then repairs the guarded data. (The mutex itself is consistent again.) */
bool hca_mutex_lock(pthread_mutex_t *mutex);

/* hca_mutex_lock() that waits until @deadline (hca_mutex_deadline()) at most.
 * @param is_broken  set if the last owner died with it
 * @return false if the time is over. */
bool hca_mutex_lock_until(pthread_mutex_t *mutex,
                          const struct timespec *deadline, bool *is_broken);

/* Returns the end of the time for which the end of an object or a process waits
 * for locks: two seconds from now. A stopped process may hold them. All else
 * waits for any holder, as for a mutex of threads. */
struct timespec hca_mutex_deadline(void);

/* Locks the mutex if it is free, or if its last owner died with it, which the
 * caller does not learn. @return true if the caller holds the mutex now. */
bool hca_mutex_try(pthread_mutex_t *mutex);

void hca_mutex_unlock(pthread_mutex_t *mutex);

#endif
