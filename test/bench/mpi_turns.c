/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Implements mpi_turns.h. Results, and the pair whose turn it is, are in memory
 * that all ranks share: messages go only between the ranks of a pair.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT, CPU_SET() */
#include "mpi_turns.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define LEAST_BUSY 0.001 /* minimum busy part of a burst's time */

typedef struct turns_table {
    pthread_barrier_t all;
    int rounds;
    int present[TURNS_MAX_VARIANTS];
    double us[TURNS_MAX_VARIANTS][TURNS_MAX_ROUNDS];
    double busy[TURNS_MAX_VARIANTS][2][TURNS_MAX_ROUNDS];
} turns_table_t;

/* Time of a burst */
typedef struct meter {
    double us, busy;
    uint64_t ticks, device;
} meter_t;

typedef double turns_column_t[TURNS_MAX_ROUNDS];


static void *share(int rank, const char *name)
{
    void *mem = MAP_FAILED;
    int fd;

    if (rank != 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    fd = shm_open(name, O_RDWR | ((rank == 0) ? O_CREAT | O_EXCL : 0), 0600);
    if ((fd >= 0) && ((rank != 0) || !ftruncate(fd, sizeof(turns_table_t)))) {
        mem = mmap(NULL, sizeof(turns_table_t), PROT_READ | PROT_WRITE,
                   MAP_SHARED, fd, 0);
    }
    if (mem == MAP_FAILED) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(fd);
    return mem;
}

static void make_barrier(turns_table_t *table, int ranks)
{
    pthread_barrierattr_t attr;

    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&table->all, &attr, ranks);
    pthread_barrierattr_destroy(&attr);
}

/* Binds the ranks of each pair to two processors, if there are two: else the
 * kernel may run one pair on both, and the other pair on one. */
static void bind_side(int side)
{
    int cpu = -1;
    cpu_set_t cpus;

    sched_getaffinity(0, sizeof(cpus), &cpus);
    if (CPU_COUNT(&cpus) < 2) {
        return;
    }
    for (int i = 0; i <= side; i++) {
        while (!CPU_ISSET(++cpu, &cpus)) {
        }
    }
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    sched_setaffinity(0, sizeof(cpus), &cpus);
}

void turns_init(turns_t *turns, const char *program)
{
    char name[64];
    int rank, ranks;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks % 2 != 0) {
        fprintf(stderr, "usage: mpirun -np EVEN %s ...\n", program);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(name, sizeof(name), "/%s.%d", program, getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    turns->table        = share(rank, name);
    turns->pair         = rank / 2;
    turns->num_pairs    = ranks / 2;
    turns->side         = rank % 2;
    turns->device_ticks = dlsym(RTLD_DEFAULT, "softhca_ticks");
    bind_side(turns->side);
    if (rank == 0) {
        make_barrier(turns->table, ranks);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_split(MPI_COMM_WORLD, turns->pair, rank, &turns->comm);
    if (rank == 0) {
        shm_unlink(name);
    }
}

void turns_cleanup(turns_t *turns)
{
    MPI_Comm_free(&turns->comm);
    munmap(turns->table, sizeof(*turns->table));
}

static void first_exchange(const turns_t *turns, void *mem, size_t size)
{
    if (turns->side == 0) {
        MPI_Send(mem, size, MPI_BYTE, 1, 0, turns->comm);
    } else {
        MPI_Recv(mem, size, MPI_BYTE, 0, 0, turns->comm, MPI_STATUS_IGNORE);
    }
}

void *turns_allocate(const turns_t *turns, size_t size, const char *memory)
{
    void *mem = NULL;

    if (posix_memalign(&mem, 2 << 20, size)) {
        fprintf(stderr, "bench: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (strcmp(memory, "fresh")) {
        memset(mem, 0, size);
    } else {
        first_exchange(turns, mem, size);
    }
    return mem;
}

static double clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

static uint64_t device_ticks(const turns_t *turns)
{
    uint64_t (*ticks)(void) = (uint64_t(*)(void))turns->device_ticks;

    return (ticks != NULL) ? ticks() : 0;
}

static void meter_read(const turns_t *turns, meter_t *meter)
{
    meter->busy   = clock_us(CLOCK_PROCESS_CPUTIME_ID);
    meter->device = device_ticks(turns);
    meter->ticks  = __rdtsc();
    meter->us     = clock_us(CLOCK_MONOTONIC);
}

/* Sets the time since meter_read(), without the device's. The device's time
 * also passes while other processes have the processor: on a busy machine it
 * may exceed the whole. */
static void meter_stop(const turns_t *turns, meter_t *meter)
{
    double device;
    meter_t now;

    meter_read(turns, &now);
    meter->us = now.us - meter->us;
    device    = (now.device - meter->device) * meter->us /
             (now.ticks - meter->ticks);
    meter->busy = now.busy - meter->busy - device;
    if (meter->busy < meter->us * LEAST_BUSY) {
        meter->busy = meter->us * LEAST_BUSY;
    }
}

/* Runs a burst of this pair. The first exchange, after a sleep, is a warm-up. A
 * barrier follows the burst, too: a rank that sleeps makes no progress, and
 * might still owe an answer. */
static void burst(turns_t *turns, const turns_variant_t *variant, int v,
                  int exchanges, int round)
{
    meter_t meter;

    variant->exchange(variant->arg);
    MPI_Barrier(turns->comm);
    meter_read(turns, &meter);
    for (int i = 0; i < exchanges; i++) {
        variant->exchange(variant->arg);
    }
    meter_stop(turns, &meter);
    MPI_Barrier(turns->comm);
    turns->table->busy[v][turns->side][round] = meter.busy;
    if (turns->side == 0) {
        turns->table->us[v][round] = meter.us / exchanges / 2;
        turns->table->present[v]   = 1;
    }
}

/* Runs all variants; each round starts with another one. */
static void run_round(turns_t *turns, const turns_variant_t *variants, int num,
                      int exchanges, int round)
{
    for (int i = 0; i < num; i++) {
        int v = (i + round) % num;

        pthread_barrier_wait(&turns->table->all);
        if (variants[v].pair == turns->pair) {
            burst(turns, &variants[v], v, exchanges, round);
        }
    }
    pthread_barrier_wait(&turns->table->all);
}

static void set_rounds(turns_t *turns, double round_us, int milliseconds)
{
    double rounds = milliseconds * 1e3 / round_us;

    turns->table->rounds = (rounds < 3)                ? 3 :
                           (rounds < TURNS_MAX_ROUNDS) ? (int)rounds | 1 :
                                                         TURNS_MAX_ROUNDS;
}

void turns_run(turns_t *turns, const turns_variant_t *variants, int num,
               int exchanges, int milliseconds)
{
    int is_first = (turns->pair == 0) && (turns->side == 0);
    double start;

    pthread_barrier_wait(&turns->table->all);
    if (is_first) {
        memset(turns->table->present, 0, sizeof(turns->table->present));
    }
    run_round(turns, variants, num, exchanges, 0);
    start = clock_us(CLOCK_MONOTONIC);
    run_round(turns, variants, num, exchanges, 0);
    if (is_first) {
        set_rounds(turns, clock_us(CLOCK_MONOTONIC) - start, milliseconds);
    }
    pthread_barrier_wait(&turns->table->all);
    for (int i = 0; i < turns->table->rounds; i++) {
        run_round(turns, variants, num, exchanges, i);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the lower quartile: it is affected less by other load than a
 * median. */
static double typical(const turns_column_t values, int count)
{
    turns_column_t sorted;

    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    return sorted[count / 4];
}

static int has(const turns_t *turns, int variant)
{
    return turns->table->present[variant];
}

double turns_us(const turns_t *turns, int variant)
{
    return has(turns, variant) ?
               typical(turns->table->us[variant], turns->table->rounds) :
               -1;
}

double turns_ratio(const turns_t *turns, int variant, int to)
{
    return (has(turns, variant) && has(turns, to)) ?
               turns_us(turns, variant) / turns_us(turns, to) :
               -1;
}

static double busy(const turns_t *turns, int variant)
{
    const turns_table_t *table = turns->table;
    turns_column_t sums;

    for (int i = 0; i < table->rounds; i++) {
        sums[i] = table->busy[variant][0][i] + table->busy[variant][1][i];
    }
    return typical(sums, table->rounds);
}

double turns_busy(const turns_t *turns, int variant, int to)
{
    return (has(turns, variant) && has(turns, to)) ?
               busy(turns, variant) / busy(turns, to) :
               -1;
}

/* Prints a ratio in a column, or "-" if there is none. */
static void print_ratio(double ratio)
{
    if (ratio < 0) {
        printf(" %6s", "-");
    } else {
        printf(" %6.3f", ratio);
    }
}

void turns_print(const turns_t *turns)
{
    for (int v = OTHER_FLAT; v < VARIANTS; v++) {
        print_ratio(turns_ratio(turns, v, FLAT));
    }
    print_ratio(turns_ratio(turns, OTHER_TYPE, TYPE));
    print_ratio(turns_ratio(turns, OTHER_TYPE, PACKED));
    print_ratio(turns_busy(turns, OTHER_TYPE, TYPE));
    print_ratio(turns_busy(turns, OTHER_TYPE, PACKED));
    printf("\n");
    fflush(stdout);
}
