/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Measures how much of a transfer is hidden behind computation of the receiver:
 *
 *     mpirun -np 2 mpi_overlap [-b BLOCK] [MESSAGES [SECONDS [SIZE...]]]
 *
 * With -b the data on both sides is in blocks of BLOCK bytes with gaps of the
 * same length (MPI_Type_vector). SIZE is then a multiple of BLOCK.
 *
 * Rank 1 posts a receive and tells rank 0, which then sends by MPI_Isend (for
 * MPI_Send, UCX may choose another protocol). Rank 0 sends nothing else after
 * the barrier: a message in flight would keep a NIC from matching a receive
 * that is posted meanwhile. Rank 1 computes for twice the time of a transfer
 * without computation, and up to SECONDS more while the data is not there. It
 * does not enter MPI until MPI_Wait. Prints for each SIZE in bytes, by default
 * 64 KiB to 4 MiB:
 *
 *     SIZE   us of a transfer   us of MPI_Wait   part hidden   N of M there
 *
 * MPI_Wait is the median. A transfer is the lower quartile of messages without
 * computation: delays by other processes do not count as hidden. N of the M
 * messages had their last byte in place before MPI_Wait.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MAX_SIZE: with the gaps, the span has to fit into an int. */
enum { TRANSFERS = 11, MAX_MESSAGES = 1000, MAX_SIZE = (1 << 30) - 1 };

struct job {
    int rank;
    int messages;
    double patience; /* seconds that rank 1 computes in addition at most */
    int block;       /* 0: the data is contiguous */
    char *buf;
    int size; /* bytes of data */
    int span; /* from the first byte of data to the last */
    MPI_Datatype type;
    int there; /* messages whose data was there before MPI_Wait */
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the value of a quartile; 2: the median. */
static double quartile(double *values, int count, int quarters)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count * quarters / 4];
}

/* Returns 1 if the last byte has arrived. Reads memory, as MPI_Test() would
 * make progress. */
static int is_there(const struct job *job, char value)
{
    return *(volatile char *)(job->buf + job->span - 1) == value;
}

/* Computes for some time, and for up to 'patience' more while the data is
 * missing. */
static void compute(const struct job *job, char value, double seconds,
                    double patience)
{
    double start = MPI_Wtime(), passed = 0;
    volatile double x = 1;

    while ((passed < seconds) ||
           ((passed < seconds + patience) && !is_there(job, value))) {
        for (int i = 0; i < 100; i++) {
            x = x * 0.5 + 1;
        }
        passed = MPI_Wtime() - start;
    }
}

static void check(const struct job *job, char value)
{
    if ((job->buf[0] != value) || !is_there(job, value)) {
        fprintf(stderr, "mpi_overlap: wrong data\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Sends one message. Returns the seconds of MPI_Wait on rank 1, which has
 * computed for 'seconds' before. */
static double message(struct job *job, char value, double seconds)
{
    MPI_Request req;
    double start, waited;

    memset(job->buf, (job->rank == 0) ? value : 0, job->span);
    MPI_Barrier(MPI_COMM_WORLD);
    if (job->rank == 0) {
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(job->buf, 1, job->type, 1, 1, MPI_COMM_WORLD, &req);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
        return 0;
    }
    MPI_Irecv(job->buf, 1, job->type, 0, 1, MPI_COMM_WORLD, &req);
    MPI_Send(NULL, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    if (seconds > 0) {
        compute(job, value, seconds, job->patience);
        job->there += is_there(job, value);
    }
    start = MPI_Wtime();
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    waited = MPI_Wtime() - start;
    check(job, value);
    return waited;
}

/* Returns the median of TRANSFERS messages without computation. */
static double transfer_alone(struct job *job)
{
    double waits[TRANSFERS];

    for (int i = 0; i < TRANSFERS; i++) {
        waits[i] = message(job, 1 + i % 100, 0);
    }
    return quartile(waits, TRANSFERS, 2);
}

/* Messages without and with computation alternate: other load on the machine
 * affects both. */
static void run(struct job *job)
{
    static double alone[MAX_MESSAGES], waits[MAX_MESSAGES];
    double seconds, transfer, wait, hidden;

    seconds    = 2 * transfer_alone(job);
    job->there = 0;
    for (int i = 0; i < job->messages; i++) {
        alone[i] = message(job, 1 + i % 100, 0);
        waits[i] = message(job, 2 + i % 100, seconds);
    }
    transfer = quartile(alone, job->messages, 1);
    wait     = quartile(waits, job->messages, 2);
    hidden   = 1 - wait / transfer;
    if (job->rank == 1) {
        printf("%-8d %10.1f %10.1f %8.3f %6d of %d there\n", job->size,
               transfer * 1e6, wait * 1e6, (hidden > 0) ? hidden : 0,
               job->there, job->messages);
        fflush(stdout);
    }
}

static void usage(void)
{
    fprintf(stderr,
            "usage: mpirun -np 2 mpi_overlap "
            "[-b BLOCK] [MESSAGES [SECONDS [SIZE...]]]\n"
            "MESSAGES: 1 to %d; SIZE: 1 to %d, a multiple of BLOCK\n",
            MAX_MESSAGES, MAX_SIZE);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void run_size(struct job *job, int size)
{
    int block  = (job->block > 0) ? job->block : size;
    int blocks = size / block;

    if (size % block != 0) {
        usage();
    }
    job->size = size;
    job->span = (2 * blocks - 1) * block;
    job->buf  = malloc(job->span);
    MPI_Type_vector(blocks, block, 2 * block, MPI_CHAR, &job->type);
    MPI_Type_commit(&job->type);
    run(job);
    MPI_Type_free(&job->type);
    free(job->buf);
}

/* Ends the job unless the number is from 1 to @max. */
static int number(const char *arg, int max)
{
    char *end;
    long value = strtol(arg, &end, 10);

    if ((end == arg) || (*end != '\0') || (value < 1) || (value > max)) {
        usage();
    }
    return value;
}

int main(int argc, char **argv)
{
    struct job job = {.messages = 21};
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if ((argc > 2) && !strcmp(argv[1], "-b")) {
        job.block = number(argv[2], MAX_SIZE);
        argc -= 2;
        argv += 2;
    }
    if (argc > 1) {
        job.messages = number(argv[1], MAX_MESSAGES);
    }
    job.patience = (argc > 2) ? atof(argv[2]) : 0;
    if (ranks != 2) {
        usage();
    }
    for (int i = 3; i < argc; i++) {
        run_size(&job, number(argv[i], MAX_SIZE));
    }
    for (int size = 64 << 10; (argc <= 3) && (size <= 4 << 20); size *= 2) {
        run_size(&job, size);
    }
    MPI_Finalize();
    return 0;
}
