/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * OpenSHMEM's strided put and get of 8-byte elements, from PE 0 to PE 1: in
 * turn by the function that the program gets, and by the library's own if a
 * hook replaces it. Prints for each direction, number of elements and pair of
 * strides (remote, local; in elements) the time per element by the library's
 * function and by the program's in microseconds, the minimum of some rounds,
 * and their ratio:
 *
 *     oshrun -np 2 shmem_strided
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ELEMENTS = 10000, NEAR = 4, FAR = 100, MAX_ROUNDS = 10 };

typedef void (*strided_t)(long *dest, const long *source, ptrdiff_t dst,
                          ptrdiff_t sst, size_t nelems, int pe);

struct way {
    const char *name;
    strided_t usual; /* function that the program gets */
    strided_t own;   /* function of the library */
    long *dest;
    long *source;
};

struct shape {
    size_t nelems;
    ptrdiff_t there, here;
};

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static void *need(void *found, const char *what)
{
    if (found == NULL) {
        fprintf(stderr, "shmem_strided: no %s\n", what);
        shmem_global_exit(2);
    }
    return found;
}

static strided_t library_function(const char *name)
{
    void *library = need(dlopen("liboshmem.so.40", RTLD_LAZY | RTLD_NOLOAD),
                         "liboshmem.so.40");

    return (strided_t)need(dlsym(library, name), name);
}

/* Returns the time per element of one call, including its completion. */
static double call_us(const struct way *way, strided_t strided,
                      const struct shape *shape)
{
    int is_put   = way->name[0] == 'p';
    double start = now_us();

    strided(way->dest, way->source, is_put ? shape->there : shape->here,
            is_put ? shape->here : shape->there, shape->nelems, 1);
    shmem_quiet();
    return (now_us() - start) / shape->nelems;
}

static void report(const struct way *way, const struct shape *shape)
{
    int rounds   = MAX_ELEMENTS / shape->nelems - 1;
    double own   = call_us(way, way->own, shape);
    double usual = call_us(way, way->usual, shape);
    double us;

    for (int i = 0; (i < rounds) && (i < MAX_ROUNDS); i++) {
        us    = call_us(way, way->own, shape);
        own   = (us < own) ? us : own;
        us    = call_us(way, way->usual, shape);
        usual = (us < usual) ? us : usual;
    }
    printf("%s %zu %td/%td %.4f %.4f %.2f\n", way->name, shape->nelems,
           shape->there, shape->here, own, usual, own / usual);
    fflush(stdout);
}

int main(void)
{
    static const size_t counts[]        = {10, 1000, MAX_ELEMENTS};
    static const ptrdiff_t strides[][2] = {{1, NEAR},
                                           {NEAR, 1},
                                           {NEAR, NEAR},
                                           {FAR, 1}};
    long *there, *here;

    shmem_init();
    there = need(shmem_malloc(MAX_ELEMENTS * FAR * sizeof(*there)), "memory");
    here  = need(calloc(MAX_ELEMENTS * FAR, sizeof(*here)), "memory");
    shmem_barrier_all();
    for (unsigned i = 0; (shmem_my_pe() == 0) && (i < 24); i++) {
        struct way ways[] = {
            {"put", shmem_long_iput, library_function("shmem_long_iput"), there,
             here},
            {"get", shmem_long_iget, library_function("shmem_long_iget"), here,
             there},
        };
        struct shape shape = {counts[i % 3], strides[i / 3 % 4][0],
                              strides[i / 3 % 4][1]};

        report(&ways[i / 12], &shape);
    }
    shmem_barrier_all();
    free(here);
    shmem_free(there);
    shmem_finalize();
    return 0;
}
