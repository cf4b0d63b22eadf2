/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Mutexes in memory that processes share: whoever holds one may be killed.
 */
#ifndef HCA_MUTEX_H
#define HCA_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

/* Robust, and shared by the processes that have it mapped. */
void hca_mutex_init(pthread_mutex_t *mutex);

/* @return true if the last owner died inside: the caller repairs what the
 * mutex guards (it is consistent again for pthreads). */
bool hca_mutex_lock(pthread_mutex_t *mutex);

/* Locks it if nobody has it, or the last owner died inside. @return true if it
 * is locked. */
bool hca_mutex_try(pthread_mutex_t *mutex);

void hca_mutex_unlock(pthread_mutex_t *mutex);

#endif
