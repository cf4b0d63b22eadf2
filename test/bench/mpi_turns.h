/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Variants of an exchange in turn, in one job of MPI. Ranks 2i and 2i + 1 are
 * pair i, to which a job gives settings of its own:
 *
 *     mpirun -np 2 -x NAME=VALUE prog : -np 2 -x NAME=VALUE prog
 *
 * While a pair has its turn, the others sleep, so that two processors are
 * enough for any number of pairs. Other load on the machine affects all
 * variants of a round.
 */
#ifndef DCX_BENCH_MPI_TURNS_H
#define DCX_BENCH_MPI_TURNS_H

#include <mpi.h>
#include <stddef.h>

enum { TURNS_MAX_VARIANTS = 10, TURNS_MAX_ROUNDS = 101 };

typedef struct turns {
    struct turns_table *table; /* shared by all ranks */
    MPI_Comm comm;             /* communicator of the pair */
    int pair;
    int num_pairs;
    int side; /* 0 or 1 within the pair */
    char *device_ticks;
} turns_t;

typedef struct turns_variant {
    int pair;                    /* pair that runs it */
    void (*exchange)(void *arg); /* both directions; called by both ranks of
                                  * the pair */
    void *arg;
} turns_variant_t;

/* Call after MPI_Init(), on all ranks; their number must be even. */
void turns_init(turns_t *turns, const char *program);

void turns_cleanup(turns_t *turns);

/* Returns memory that starts at a multiple of 2 MiB. @memory: "fresh" memory is
 * exchanged with the other rank of the pair before it is touched, so that the
 * software device shares its pages; "touched" memory was written before. */
void *turns_allocate(const turns_t *turns, size_t size, const char *memory);

/* Marks a variant that this pair does not have */
enum { TURNS_NOBODY = -1 };

/* Runs rounds for some milliseconds, at least 3, of bursts of 'exchanges' in
 * both directions. Leaves out variants of missing pairs. */
void turns_run(turns_t *turns, const turns_variant_t *variants, int num,
               int exchanges, int milliseconds);

/* Lower quartiles of the last run: half of an exchange in microseconds; this
 * time over another variant's; and the busy time of both processes' processors,
 * without the software device's work, over another variant's. Negative: not
 * measured. */
double turns_us(const turns_t *turns, int variant);
double turns_ratio(const turns_t *turns, int variant, int to);
double turns_busy(const turns_t *turns, int variant, int to);

/* Variants of exchanges of a type. Each pair has a contiguous one, which shows
 * the noise. */
enum { FLAT, OTHER_FLAT, TYPE, PACKED, OTHER_TYPE, VARIANTS };

/* Ends a line with the columns of these variants: each over contiguous, then
 * the other pair's type over this pair's and over packed, for time and for
 * processor time. */
void turns_print(const turns_t *turns);

#endif
