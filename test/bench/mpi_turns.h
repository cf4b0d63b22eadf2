/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Variants of an exchange in turns, in one job of MPI. Ranks 2i and 2i + 1 are
 * pair i, to which a job gives settings of its own:
 *
 *     mpirun -np 2 -x NAME=VALUE prog : -np 2 -x NAME=VALUE prog
 *
 * While a pair has its turn, the other ones sleep, so that two processors do for
 * any number of pairs. What the machine does beside is in all variants of a round.
 */
#ifndef DCX_BENCH_MPI_TURNS_H
#define DCX_BENCH_MPI_TURNS_H

#include <mpi.h>
#include <stddef.h>

enum {
    TURNS_MAX_VARIANTS = 10,
    TURNS_MAX_ROUNDS   = 101
};

typedef struct turns {
    struct turns_table *table;      /* in memory of all ranks */
    MPI_Comm           comm;        /* of the pair */
    int                pair;
    int                num_pairs;
    int                side;        /* 0 or 1 of the pair */
    char               *device_ticks;
} turns_t;

typedef struct turns_variant {
    int  pair;                      /* whose turn it is */
    void (*exchange)(void *arg);    /* to and fro, by both of the pair */
    void *arg;
} turns_variant_t;

/* After MPI_Init(), by all ranks, of which there are an even number */
void turns_init(turns_t *turns, const char *program);

void turns_cleanup(turns_t *turns);

/* A variant of this pair that is none */
enum { TURNS_NOBODY = -1 };

/* Rounds for some milliseconds, at least 3, of bursts of 'exchanges' to and fro.
 * Variants of pairs that are not there are left out. */
void turns_run(turns_t *turns, const turns_variant_t *variants, int num,
               int exchanges, int milliseconds);

/* Of the last run, lower quartiles: half of an exchange's microseconds; that over
 * another variant's; what processors were busy for both processes, without the
 * software device's work, over another variant's. Negative: there is none. */
double turns_us(const turns_t *turns, int variant);
double turns_ratio(const turns_t *turns, int variant, int to);
double turns_busy(const turns_t *turns, int variant, int to);

/* Variants of exchanges of a type: each pair has a contiguous one, to tell noise
 * by */
enum {
    FLAT,
    OTHER_FLAT,
    TYPE,
    PACKED,
    OTHER_TYPE,
    VARIANTS
};

/* Ends a line of these variants with their columns: each over contiguous, then the
 * other pair's type over a type and over packed, of time and of processors' time. */
void turns_print(const turns_t *turns);

#endif
