/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A large symmetric heap: prints the time of shmem_init(), the memory that the
 * process has after it, the time of puts and gets of 64 KiB at places of the
 * next PE's heap whose pages are not in memory, and the page faults of the
 * device, which are 0 if the heap is pinned. With an argument each PE
 * drops its pages between puts and gets, too, as the kernel does when memory is
 * short: that needs a heap of shared memory, which keeps its data
 * (OMPI_MCA_sshmem=sysv). Exits with 1 if a byte was wrong.
 */
#include <dlfcn.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define BLOCK  65536ul
#define BLOCKS 256u
#define ROUNDS 2u
#define SIZE   (1ul << 26) /* of the heap, in use */

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

/* Returns the place of block @i: each has its own part of the heap. */
static size_t place(unsigned i)
{
    const size_t part = SIZE / BLOCKS - 4096;

    return i * part + ((i * 7919ul) % (part / 4096 - 16)) * 4096;
}

static void fill(uint8_t *block, unsigned i, unsigned round, int pe)
{
    for (size_t k = 0; k < BLOCK; k++) {
        block[k] = (uint8_t)(k + i * 31 + round * 7 + pe);
    }
}

static int is_wrong(const uint8_t *block, unsigned i, unsigned round, int pe)
{
    static uint8_t expected[BLOCK];

    fill(expected, i, round, pe);
    return memcmp(block, expected, BLOCK) != 0;
}

static void drop(uint8_t *heap)
{
    if (madvise(heap, SIZE - 4096, MADV_DONTNEED) != 0) {
        perror("madvise");
        shmem_global_exit(2);
    }
    shmem_barrier_all();
}

static unsigned run(uint8_t *heap, unsigned round, int drops)
{
    static uint8_t block[BLOCK];
    int pe = shmem_my_pe(), pes = shmem_n_pes();
    int next = (pe + 1) % pes, from = (pe + pes - 1) % pes;
    unsigned wrong = 0;

    for (unsigned i = 0; i < BLOCKS; i++) {
        fill(block, i, round, pe);
        shmem_putmem(heap + place(i), block, BLOCK, next);
    }
    shmem_barrier_all();
    if (drops) {
        drop(heap);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        shmem_getmem(block, heap + place(i), BLOCK, next);
        wrong += is_wrong(block, i, round, pe);
        wrong += is_wrong(heap + place(i), i, round, from);
    }
    shmem_barrier_all();
    return wrong;
}

/* Returns the number of page faults that this PE has waited for. */
static unsigned long page_faults(void)
{
    uint64_t (*count)(void);

    *(void **)&count = dlsym(RTLD_DEFAULT, "softhca_page_faults");
    return (count == NULL) ? 0 : count();
}

int main(int argc, char **argv)
{
    int drops    = argc > 1;
    double start = now(), begun, ended;
    struct rusage usage;
    unsigned wrong = 0;
    uint8_t *heap;

    (void)argv;
    shmem_init();
    begun = now();
    getrusage(RUSAGE_SELF, &usage);
    heap = shmem_malloc(SIZE);
    if (heap == NULL) {
        fprintf(stderr, "no heap\n");
        shmem_global_exit(2);
    }
    heap += -(uintptr_t)heap % 4096;
    drop(heap); /* shmem_malloc() of Open MPI writes zeros */
    ended = now();
    for (unsigned round = 0; round < ROUNDS; round++) {
        wrong += run(heap, round, drops);
    }
    printf("PE %d: shmem_init %.2f s, %ld MiB resident, %u puts and gets "
           "%.2f s, %lu page faults, %u wrong\n",
           shmem_my_pe(), begun - start, usage.ru_maxrss / 1024,
           2 * BLOCKS * ROUNDS, now() - ended, page_faults(), wrong);
    fflush(stdout);
    shmem_finalize();
    return wrong != 0;
}
