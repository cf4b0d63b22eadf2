/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A message in both directions whose data has a derived type, in turn with the
 * same data packed by the program and with as many contiguous bytes:
 *
 *     mpirun [--oversubscribe] -np 2 -x UCX_DCX_TYPES=n   mpi_types ARGUMENT...
 *                            : -np 2 -x UCX_DCX_TYPES=try mpi_types ARGUMENT...
 *     ARGUMENTs: MILLISECONDS fresh|touched GROUP...
 *
 * The second pair of ranks is optional. Memory is that of turns_allocate(),
 * groups are those of mpi_layout.h. All data is checked once, and that nothing
 * else was written. For each layout, with blocks on both sides ("both") and on
 * one ("one": contiguous on the other), prints
 *
 *     NAME BYTES BLOCK SIDES US A B C D E F G H
 *
 *   US       us of the first pair's contiguous message: half the time of both
 *            directions
 *   A to D   time over US: of the other pair's contiguous message, which shows
 *            the noise; of a message of the type; of one packed by MPI_Pack and
 *            MPI_Unpack; of the other pair's message of the type
 *   E, F     time of the other pair's message of the type over that of the
 *            first pair's, and over that of the packed one
 *   G, H     as E and F, of processor time without the device's
 *
 * as lower quartiles over the rounds. "-" marks a missing pair, or a refused
 * message: MPICH reports a contiguous message as truncated if it is received by
 * a type in pieces that end within an element.
 */
#include "mpi_layout.h"
#include "mpi_turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLE = 0x5a, BURST_BYTES = 64 << 10, SIDES = 2 };

typedef struct job {
    turns_t turns;
    char *typed; /* memory of the type */
    char *flat;  /* as many bytes, contiguous */
    layout_t layout;
    int is_flat[2]; /* the side's data is contiguous */
    int is_refused; /* the MPI refused a message */
} job_t;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "mpi_types: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* Direction of a message: one side sends, then receives; the other receives
 * first */
typedef void (*way_t)(job_t *job);

static void to_and_fro(job_t *job, way_t send, way_t receive)
{
    way_t first = job->turns.side ? receive : send;
    way_t then  = job->turns.side ? send : receive;

    first(job);
    then(job);
}

static int peer(const job_t *job)
{
    return !job->turns.side;
}

static void send_flat(job_t *job)
{
    MPI_Send(job->flat, job->layout.bytes, MPI_PACKED, peer(job), 0,
             job->turns.comm);
}

static void receive_flat(job_t *job)
{
    job->is_refused |= MPI_Recv(job->flat, job->layout.bytes, MPI_PACKED,
                                peer(job), 0, job->turns.comm,
                                MPI_STATUS_IGNORE) != MPI_SUCCESS;
}

static void send_typed(job_t *job)
{
    if (job->is_flat[job->turns.side]) {
        send_flat(job);
    } else {
        MPI_Send(job->typed, 1, job->layout.type, peer(job), 0,
                 job->turns.comm);
    }
}

static void receive_typed(job_t *job)
{
    if (job->is_flat[job->turns.side]) {
        receive_flat(job);
    } else {
        job->is_refused |= MPI_Recv(job->typed, 1, job->layout.type, peer(job),
                                    0, job->turns.comm,
                                    MPI_STATUS_IGNORE) != MPI_SUCCESS;
    }
}

static void pack(job_t *job)
{
    int at = 0;

    MPI_Pack(job->typed, 1, job->layout.type, job->flat, job->layout.bytes, &at,
             MPI_COMM_SELF);
}

static void unpack(job_t *job)
{
    int at = 0;

    MPI_Unpack(job->flat, job->layout.bytes, &at, job->typed, 1,
               job->layout.type, MPI_COMM_SELF);
}

static void send_packed(job_t *job)
{
    if (!job->is_flat[job->turns.side]) {
        pack(job);
    }
    send_flat(job);
}

static void receive_packed(job_t *job)
{
    receive_flat(job);
    if (!job->is_flat[job->turns.side]) {
        unpack(job);
    }
}

static void exchange_flat(void *arg)
{
    to_and_fro(arg, send_flat, receive_flat);
}

static void exchange_typed(void *arg)
{
    to_and_fro(arg, send_typed, receive_typed);
}

static void exchange_packed(void *arg)
{
    to_and_fro(arg, send_packed, receive_packed);
}

/* --- check ---------------------------------------------------------------- */

static char pattern(size_t i)
{
    return i * 7 + (i >> 8) * 13 + (i >> 16);
}

static void fill(char *mem, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        mem[i] = pattern(i);
    }
}

/* Fills in the initial data of the first side, and packs it. */
static void fill_first(job_t *job)
{
    fill(job->typed, job->layout.span);
    pack(job);
}

static void check_holes(job_t *job)
{
    memset(job->flat, HOLE, job->layout.bytes);
    unpack(job);
    for (size_t i = 0; i < job->layout.span; i++) {
        if (job->typed[i] != HOLE) {
            fail("wrote where it should not");
        }
    }
}

/* Checks that the data of the first side has arrived, and that nothing else was
 * written. */
static void check_came(job_t *job, const char *expected)
{
    if (job->is_flat[job->turns.side]) {
        if (memcmp(job->flat, expected, job->layout.bytes)) {
            fail("wrong data");
        }
        return;
    }
    pack(job);
    if (memcmp(job->flat, expected, job->layout.bytes)) {
        fail("wrong data in blocks");
    }
    check_holes(job);
}

static void clear(job_t *job)
{
    memset(job->typed, HOLE, job->layout.span);
    memset(job->flat, 0, job->layout.bytes);
}

/* Sends a message to the other side and back, and checks it on both. */
static void check_both_ways(job_t *job, const char *expected)
{
    if (job->turns.side == 0) {
        send_typed(job);
        clear(job);
        receive_typed(job);
    } else {
        clear(job);
        receive_typed(job);
        send_typed(job);
    }
    if (!job->is_refused) {
        check_came(job, expected);
    }
}

/* Returns 1 if the MPI supports the message. */
static int check(job_t *job)
{
    char *expected = malloc(job->layout.bytes);
    int refused;

    if (expected == NULL) {
        fail("no memory");
    }
    fill_first(job);
    memcpy(expected, job->flat, job->layout.bytes);
    job->is_refused = 0;
    check_both_ways(job, expected);
    MPI_Allreduce(&job->is_refused, &refused, 1, MPI_INT, MPI_LOR,
                  job->turns.comm);
    free(expected);
    return !refused;
}

/* --- measurement ---------------------------------------------------------- */

static void print(const job_t *job)
{
    const turns_t *turns = &job->turns;

    printf("%-13s %8zu %6zu %-4s %9.2f", job->layout.name, job->layout.bytes,
           job->layout.block, job->is_flat[1] ? "one" : "both",
           turns_us(turns, FLAT));
    turns_print(turns);
}

static void run(job_t *job, int milliseconds)
{
    int can_do                               = check(job);
    const turns_variant_t variants[VARIANTS] = {
        [FLAT]       = {0, exchange_flat, job},
        [OTHER_FLAT] = {1, exchange_flat, job},
        [TYPE]       = {can_do ? 0 : TURNS_NOBODY, exchange_typed, job},
        [PACKED]     = {0, exchange_packed, job},
        [OTHER_TYPE] = {can_do ? 1 : TURNS_NOBODY, exchange_typed, job},
    };

    turns_run(&job->turns, variants, VARIANTS,
              1 + BURST_BYTES / job->layout.bytes, milliseconds);
    if ((job->turns.pair == 0) && (job->turns.side == 0)) {
        print(job);
    }
}

static void run_group(job_t *job, const char *group, int milliseconds)
{
    for (int i = 0; layout_create(group, i, &job->layout); i++) {
        for (job->is_flat[1] = 0; job->is_flat[1] < SIDES; job->is_flat[1]++) {
            run(job, milliseconds);
        }
        layout_destroy(&job->layout);
    }
}

int main(int argc, char **argv)
{
    job_t job = {0};

    MPI_Init(&argc, &argv);
    if (argc < 4) {
        fail("usage: MILLISECONDS fresh|touched GROUP...");
    }
    turns_init(&job.turns, "mpi_types");
    MPI_Comm_set_errhandler(job.turns.comm, MPI_ERRORS_RETURN);
    job.typed = turns_allocate(&job.turns, LAYOUT_MAX_SPAN + (1 << 20),
                               argv[2]);
    job.flat  = turns_allocate(&job.turns, LAYOUT_MAX_BYTES, argv[2]);
    for (int i = 3; i < argc; i++) {
        run_group(&job, argv[i], atoi(argv[1]));
    }
    free(job.typed);
    free(job.flat);
    turns_cleanup(&job.turns);
    MPI_Finalize();
    return 0;
}
