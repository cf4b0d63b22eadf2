/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Robust mutexes in shared memory: a process may be killed while it holds one.
 */
#ifndef HCA_MUTEX_H
#define HCA_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

/* Initializes a robust, process-shared mutex. */
void hca_mutex_init(pthread_mutex_t *mutex);

/* Waits for the mutex. @return true if the last owner died with it: the caller
 * then repairs the guarded data. (The mutex itself is consistent again.) */
bool hca_mutex_lock(pthread_mutex_t *mutex);

/* Locks the mutex if it is free, or if its last owner died with it, which the
 * caller does not learn. @return true if the caller holds the mutex now. */
bool hca_mutex_try(pthread_mutex_t *mutex);

void hca_mutex_unlock(pthread_mutex_t *mutex);

#endif
