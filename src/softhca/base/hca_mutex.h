/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mutexes in shared memory: a process that holds one may be killed.
 */
#ifndef HCA_MUTEX_H
#define HCA_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

/* Initializes a robust, process-shared mutex. */
void hca_mutex_init(pthread_mutex_t *mutex);

/* @return true if the last owner died inside: the caller repairs the data that
 * the mutex guards (pthreads sees the mutex as consistent again). */
bool hca_mutex_lock(pthread_mutex_t *mutex);

/* Locks the mutex if it is free, or its last owner died inside.
 * @return true if it is locked. */
bool hca_mutex_try(pthread_mutex_t *mutex);

void hca_mutex_unlock(pthread_mutex_t *mutex);

#endif
