/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * OpenSHMEM's put of 8 bytes and shmem_long_atomic_fetch_add(), from PE 0 to PE
 * 1, which waits in a barrier:
 *
 *     oshrun -np 2 shmem_small
 *
 * Prints the time of each in microseconds, of a put with its completion: the
 * median of batches of calls. First to the symmetric heap, then to a static
 * variable.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 200, CALLS = 100 };

static long variable;
static long *word;

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static void put(void)
{
    shmem_long_p(word, 1, 1);
    shmem_quiet();
}

static void add(void)
{
    shmem_long_atomic_fetch_add(word, 1, 1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_us(void (*call)(void))
{
    double us[BATCHES];

    for (int i = 0; i < BATCHES; i++) {
        double start = now_us();

        for (int n = 0; n < CALLS; n++) {
            call();
        }
        us[i] = (now_us() - start) / CALLS;
    }
    qsort(us, BATCHES, sizeof(us[0]), compare);
    return us[BATCHES / 2];
}

/* Measures both to @to of PE 1, and checks it there. */
static void measure(long *to)
{
    const long expected = 1 + BATCHES * CALLS;

    word = to;
    if (shmem_my_pe() == 0) {
        printf("%.3f ", median_us(put));
        printf("%.3f ", median_us(add));
        fflush(stdout);
    }
    shmem_barrier_all();
    if ((shmem_my_pe() == 1) && (*word != expected)) {
        fprintf(stderr, "shmem_small: %ld, expected %ld\n", *word, expected);
        shmem_global_exit(1);
    }
}

int main(void)
{
    shmem_init();
    measure(shmem_calloc(1, sizeof(long)));
    measure(&variable);
    if (shmem_my_pe() == 0) {
        printf("\n");
    }
    shmem_finalize();
    return 0;
}
