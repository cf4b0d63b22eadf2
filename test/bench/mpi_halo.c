/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The exchange of a 3-D halo between two ranks, each the other's neighbour on
 * all six sides, of boxes of 16^3 to 256^3 doubles with one layer around: in
 * turn with derived types, with faces that the program packs, and with
 * contiguous faces.
 *
 *     mpirun [--oversubscribe] -np 2 -x UCX_DCX_TYPES=n   mpi_halo ARGUMENT...
 *                            : -np 2 -x UCX_DCX_TYPES=try mpi_halo ARGUMENT...
 *     ARGUMENTs: MILLISECONDS fresh|touched [MAX]
 *
 * Memory is that of turns_allocate(). All halos are checked once. Prints lines
 * as mpi_types.c does, with
 *
 *     halo BYTES-OF-A-FACE N 3d   us of an exchange, ...
 */
#include "mpi_turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 3, FACES = 2 * DIMS, MIN = 16, MAX = 256 };

typedef struct job {
    turns_t turns;
    const char *memory;        /* kind, for turns_allocate() */
    int n;                     /* cells of a box in each dimension */
    double *box;               /* with one more cell at each end */
    MPI_Datatype inner[FACES]; /* cells sent to the neighbour */
    MPI_Datatype outer[FACES]; /* cells received from the neighbour */
    double *send[FACES];       /* packed faces */
    double *receive[FACES];
} job_t;

static void fail(const char *what)
{
    fprintf(stderr, "mpi_halo: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static size_t face_bytes(const job_t *job)
{
    return (size_t)job->n * job->n * sizeof(double);
}

/* Creates the type of a plane across a dimension. Layers 0 and n + 1 are the
 * halo. */
static MPI_Datatype plane(const job_t *job, int dim, int layer)
{
    int all[DIMS], part[DIMS], from[DIMS];
    MPI_Datatype type;

    for (int d = 0; d < DIMS; d++) {
        all[d]  = job->n + 2;
        part[d] = (d == dim) ? 1 : job->n;
        from[d] = (d == dim) ? layer : 1;
    }
    MPI_Type_create_subarray(DIMS, all, part, from, MPI_ORDER_C, MPI_DOUBLE,
                             &type);
    MPI_Type_commit(&type);
    return type;
}

static void *allocate(const job_t *job, size_t size)
{
    return turns_allocate(&job->turns, size, job->memory);
}

static void job_open(job_t *job)
{
    size_t cells = (size_t)(job->n + 2) * (job->n + 2) * (job->n + 2);

    job->box = allocate(job, cells * sizeof(double));
    for (int f = 0; f < FACES; f++) {
        job->inner[f]   = plane(job, f / 2, (f % 2) ? job->n : 1);
        job->outer[f]   = plane(job, f / 2, (f % 2) ? job->n + 1 : 0);
        job->send[f]    = allocate(job, face_bytes(job));
        job->receive[f] = allocate(job, face_bytes(job));
    }
}

static void job_close(job_t *job)
{
    for (int f = 0; f < FACES; f++) {
        MPI_Type_free(&job->inner[f]);
        MPI_Type_free(&job->outer[f]);
        free(job->send[f]);
        free(job->receive[f]);
    }
    free(job->box);
}

/* A face is received by the opposite face. */
static void exchange_typed(void *arg)
{
    job_t *job = arg;
    MPI_Request reqs[2 * FACES];
    MPI_Status statuses[2 * FACES];

    for (int f = 0; f < FACES; f++) {
        MPI_Irecv(job->box, 1, job->outer[f], !job->turns.side, f ^ 1,
                  job->turns.comm, &reqs[f]);
    }
    for (int f = 0; f < FACES; f++) {
        MPI_Isend(job->box, 1, job->inner[f], !job->turns.side, f,
                  job->turns.comm, &reqs[FACES + f]);
    }
    MPI_Waitall(2 * FACES, reqs, statuses);
}

static void exchange_flat(void *arg)
{
    job_t *job = arg;
    MPI_Request reqs[2 * FACES];
    MPI_Status statuses[2 * FACES];

    for (int f = 0; f < FACES; f++) {
        MPI_Irecv(job->receive[f], face_bytes(job), MPI_PACKED,
                  !job->turns.side, f ^ 1, job->turns.comm, &reqs[f]);
    }
    for (int f = 0; f < FACES; f++) {
        MPI_Isend(job->send[f], face_bytes(job), MPI_PACKED, !job->turns.side,
                  f, job->turns.comm, &reqs[FACES + f]);
    }
    MPI_Waitall(2 * FACES, reqs, statuses);
}

static void exchange_packed(void *arg)
{
    job_t *job = arg;
    int at;

    for (int f = 0; f < FACES; f++) {
        at = 0;
        MPI_Pack(job->box, 1, job->inner[f], job->send[f], face_bytes(job), &at,
                 MPI_COMM_SELF);
    }
    exchange_flat(job);
    for (int f = 0; f < FACES; f++) {
        at = 0;
        MPI_Unpack(job->receive[f], face_bytes(job), &at, job->box, 1,
                   job->outer[f], MPI_COMM_SELF);
    }
}

/* --- check ---------------------------------------------------------------- */

/* Value of a cell of the side's box, 1 to n in each dimension */
static double value(int side, int x, int y, int z)
{
    return side * 1e9 + (x * 1000.0 + y) * 1000.0 + z;
}

static double *cell(const job_t *job, int x, int y, int z)
{
    size_t row = job->n + 2;

    return &job->box[(x * row + y) * row + z];
}

/* Wraps around to 1 to n. */
static int around(const job_t *job, int i)
{
    return (i == 0) ? job->n : (i > job->n) ? 1 : i;
}

/* Returns in how many dimensions a cell is in the halo: edges and corners are
 * not sent. */
static int halos(const job_t *job, int x, int y, int z)
{
    return (around(job, x) != x) + (around(job, y) != y) +
           (around(job, z) != z);
}

static double expected(const job_t *job, int x, int y, int z)
{
    switch (halos(job, x, y, z)) {
    case 0:
        return value(job->turns.side, x, y, z);
    case 1:
        return value(!job->turns.side, around(job, x), around(job, y),
                     around(job, z));
    default:
        return 0;
    }
}

typedef void (*visit_t)(const job_t *job, int x, int y, int z);

static void for_each_cell(const job_t *job, visit_t visit)
{
    for (int x = 0; x < job->n + 2; x++) {
        for (int y = 0; y < job->n + 2; y++) {
            for (int z = 0; z < job->n + 2; z++) {
                visit(job, x, y, z);
            }
        }
    }
}

static void set_cell(const job_t *job, int x, int y, int z)
{
    *cell(job, x, y, z) = halos(job, x, y, z) ? 0 :
                                                value(job->turns.side, x, y, z);
}

static void check_cell(const job_t *job, int x, int y, int z)
{
    if (*cell(job, x, y, z) != expected(job, x, y, z)) {
        fail("wrong halo");
    }
}

static void check(job_t *job)
{
    for_each_cell(job, set_cell);
    exchange_typed(job);
    for_each_cell(job, check_cell);
}

/* --- measurement ---------------------------------------------------------- */

static void print(const job_t *job)
{
    const turns_t *turns = &job->turns;

    printf("%-13s %8zu %6d %-4s %9.2f", "halo", face_bytes(job), job->n, "3d",
           2 * turns_us(turns, FLAT));
    turns_print(turns);
}

static void run(job_t *job, int milliseconds)
{
    const turns_variant_t variants[VARIANTS] = {
        [FLAT]       = {0, exchange_flat, job},
        [OTHER_FLAT] = {1, exchange_flat, job},
        [TYPE]       = {0, exchange_typed, job},
        [PACKED]     = {0, exchange_packed, job},
        [OTHER_TYPE] = {1, exchange_typed, job},
    };

    job_open(job);
    check(job);
    turns_run(&job->turns, variants, VARIANTS, 1, milliseconds);
    if ((job->turns.pair == 0) && (job->turns.side == 0)) {
        print(job);
    }
    job_close(job);
}

int main(int argc, char **argv)
{
    int max   = (argc > 3) ? atoi(argv[3]) : MAX;
    job_t job = {0};

    MPI_Init(&argc, &argv);
    if (argc < 3) {
        fail("usage: MILLISECONDS fresh|touched [MAX]");
    }
    job.memory = argv[2];
    turns_init(&job.turns, "mpi_halo");
    for (job.n = MIN; job.n <= max; job.n *= 2) {
        run(&job, atoi(argv[1]));
    }
    turns_cleanup(&job.turns);
    MPI_Finalize();
    return 0;
}
