/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_pingpong [MAX_SIZE]: a ping-pong of two ranks, 1 B to 4 MiB or to
 * MAX_SIZE, that prints latency and bandwidth by size in the format of the OSU
 * benchmarks, and checks each payload. The messages of a round have slots of
 * their own, and are checked after the clock has stopped: checking costs no
 * measured time. The buffers fit into a cache, as those of the benchmarks do.
 */
#include "test/check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SIZE   = 4 << 20,
    POOL       = 32 << 20, /* maximum bytes of one side's slots */
    LAT_POOL   = 1 << 20,  /* bytes of slots in the latency rounds */
    MAX_SLOTS  = 500,
    WINDOW     = 64, /* messages in flight in the bandwidth rounds */
    LAT_ROUNDS = 8,
    BW_ROUNDS  = 12,
    WARM_UP    = 2 /* rounds that are checked but not counted */
};

struct job {
    int rank;
    char *out; /* sent by rank 0 */
    char *in;  /* received by each rank */
    long messages;
    long wrong;
};

static int min_int(int a, int b)
{
    return (a < b) ? a : b;
}

static int max_int(int a, int b)
{
    return (a > b) ? a : b;
}

static void fill_slots(struct job *job, int slots, int size, int round)
{
    memset(job->in, 0, (size_t)slots * size);
    for (int i = 0; i < slots; i++) {
        check_fill(job->out + (size_t)i * size, size, round * slots + i);
    }
}

static void check_slots(struct job *job, int slots, int size, int round)
{
    for (int i = 0; i < slots; i++) {
        job->wrong += check_data("payload", job->in + (size_t)i * size, size,
                                 round * slots + i);
    }
    job->messages += slots;
}

/* Runs a round of ping-pongs; rank 1 sends the message back. Returns
 * seconds. */
static double latency_round(struct job *job, int slots, int size)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < slots; i++) {
        char *in = job->in + (size_t)i * size;

        if (job->rank == 0) {
            MPI_Send(job->out + (size_t)i * size, size, MPI_CHAR, 1, 1,
                     MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            MPI_Send(in, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

/* Sends a window from rank 0 to rank 1, which answers when it has all messages.
 * Returns seconds. */
static double bandwidth_round(struct job *job, int slots, int size)
{
    MPI_Request req[WINDOW];
    double start;
    char ack = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < slots; i++) {
        if (job->rank == 0) {
            MPI_Isend(job->out + (size_t)i * size, size, MPI_CHAR, 1, 2,
                      MPI_COMM_WORLD, &req[i]);
        } else {
            MPI_Irecv(job->in + (size_t)i * size, size, MPI_CHAR, 0, 2,
                      MPI_COMM_WORLD, &req[i]);
        }
    }
    MPI_Waitall(slots, req, MPI_STATUSES_IGNORE);
    if (job->rank == 0) {
        MPI_Recv(&ack, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&ack, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

/* Returns one-way microseconds. */
static double latency(struct job *job, int size)
{
    int slots      = max_int(1, min_int(MAX_SLOTS, LAT_POOL / size));
    int rounds     = (slots == 1) ? 4 * LAT_ROUNDS : LAT_ROUNDS;
    double seconds = 0;

    for (int i = 0; i < WARM_UP + rounds; i++) {
        double round;

        fill_slots(job, slots, size, i);
        round = latency_round(job, slots, size);
        seconds += (i < WARM_UP) ? 0 : round;
        check_slots(job, slots, size, i);
    }
    return seconds * 1e6 / (2.0 * rounds * slots);
}

/* Returns megabytes (10^6 bytes) per second. */
static double bandwidth(struct job *job, int size)
{
    int slots      = min_int(WINDOW, POOL / size);
    double seconds = 0;

    for (int i = 0; i < WARM_UP + BW_ROUNDS; i++) {
        double round;

        fill_slots(job, slots, size, i);
        round = bandwidth_round(job, slots, size);
        seconds += (i < WARM_UP) ? 0 : round;
        if (job->rank == 1) {
            check_slots(job, slots, size, i);
        }
    }
    return 1e-6 * size * slots * BW_ROUNDS / seconds;
}

static void print_table(struct job *job, int max_size)
{
    if (job->rank == 0) {
        printf("# MPI ping-pong, 2 ranks, every payload checked\n"
               "# %-12s %16s %22s\n",
               "Size (bytes)", "Latency (us)", "Bandwidth (MB/s)");
    }
    for (int size = 1; size <= max_size; size *= 2) {
        double us = latency(job, size);
        double mb = bandwidth(job, size);

        if (job->rank == 0) {
            printf("%-14d %16.2f %22.2f\n", size, us, mb);
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    struct job job = {0};
    long sums[2];
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "mpi_pingpong: needs 2 ranks (mpirun -np 2)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    job.out = malloc(POOL);
    job.in  = malloc(POOL);
    if ((job.out == NULL) || (job.in == NULL)) {
        fprintf(stderr, "mpi_pingpong: no memory for %d bytes\n", 2 * POOL);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    print_table(&job, (argc > 1) ? min_int(atoi(argv[1]), MAX_SIZE) : MAX_SIZE);
    MPI_Allreduce((long[2]){job.messages, job.wrong}, sums, 2, MPI_LONG,
                  MPI_SUM, MPI_COMM_WORLD);
    if (job.rank == 0) {
        printf("# %ld messages checked, %ld wrong\n", sums[0], sums[1]);
    }
    free(job.in);
    free(job.out);
    MPI_Finalize();
    return (sums[0] == 0) || (sums[1] != 0);
}
