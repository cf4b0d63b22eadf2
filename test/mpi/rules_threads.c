/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Several threads with a communicator each; with types of their own, and with
 * one that is new to all
 */
#include "test/mpi/rules.h"

#include <pthread.h>

enum { NUM_THREADS = 4 };

struct thread {
    pthread_t pthread;
    int index;
    MPI_Comm comm;
    const struct area *shared;
    pthread_barrier_t *barrier;
    int errors;
};

static void *thread_run(void *arg)
{
    struct thread *thread = arg;

    for (int i = 0; i < 12; i++) {
        struct area out, in;

        area_init_layout(&out, (thread->index + i) % NUM_LAYOUTS, 120000);
        area_clone(&out, &in);
        thread->errors += exchange("thread", &out, &in, thread->index + i,
                                   thread->comm);
        thread->errors += exchange_late("thread", &out, &in, i, thread->comm);
        area_cleanup_clone(&in);
        area_cleanup(&out);
    }
    return NULL;
}

/* All threads start with the same type at once. */
static void *thread_run_shared(void *arg)
{
    struct thread *thread = arg;
    struct area out, in;

    area_clone(thread->shared, &out);
    area_clone(thread->shared, &in);
    pthread_barrier_wait(thread->barrier);
    thread->errors += exchange("shared type", &out, &in, thread->index,
                               thread->comm);
    area_cleanup_clone(&in);
    area_cleanup_clone(&out);
    return NULL;
}

static int run_threads(struct thread *threads, void *(*run)(void *))
{
    int errors = 0;

    for (int i = 0; i < NUM_THREADS; i++) {
        threads[i].errors = 0;
        pthread_create(&threads[i].pthread, NULL, run, &threads[i]);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_join(threads[i].pthread, NULL);
        errors += threads[i].errors;
    }
    return errors;
}

static int threads_exchange(void)
{
    struct thread threads[NUM_THREADS];
    pthread_barrier_t barrier;
    struct area shared;
    int errors = 0;

    pthread_barrier_init(&barrier, NULL, NUM_THREADS);
    for (int i = 0; i < NUM_THREADS; i++) {
        threads[i].index   = i;
        threads[i].shared  = &shared;
        threads[i].barrier = &barrier;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    }
    errors += run_threads(threads, thread_run);
    for (int i = 0; i < 20; i++) {
        area_init_layout(&shared, i % 4, 120000);
        errors += run_threads(threads, thread_run_shared);
        area_cleanup(&shared);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        MPI_Comm_free(&threads[i].comm);
    }
    pthread_barrier_destroy(&barrier);
    return errors;
}

const struct check rules_threads_checks[] = {
    {"threads_exchange", threads_exchange},
    {NULL, NULL}};
