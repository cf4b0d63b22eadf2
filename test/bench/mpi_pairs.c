/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_pairs [ROUNDS [BYTES [WINDOW]]]: messages of BYTES, by default 8, between
 * rank 2i and rank 2i + 1, all pairs at once: in turn, or WINDOW of them one
 * way and an answer. Prints the one-way time in microseconds, the mean and the
 * median of 100 batches of rounds, each the mean of all ranks; with WINDOW the
 * messages that a pair moves, in millions a second.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 500, BATCHES = 100, MAX_BYTES = 1 << 20, MAX_WINDOW = 256 };

static union {
    long value; /* counts the rounds */
    char bytes[MAX_BYTES];
} buffer;

static int rank, bytes, window;

static void turn(void)
{
    int peer = rank ^ 1;

    if (rank % 2 == 0) {
        MPI_Send(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        buffer.value++;
        MPI_Send(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    }
}

static void stream(void)
{
    MPI_Request requests[MAX_WINDOW];
    int peer = rank ^ 1;

    for (int i = 0; i < window; i++) {
        if (rank % 2 == 0) {
            MPI_Isend(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                      &requests[i]);
        } else {
            MPI_Irecv(&buffer, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                      &requests[i]);
        }
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (rank % 2 == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    }
}

static double run(int rounds)
{
    double start = MPI_Wtime();

    for (int i = 0; i < rounds; i++) {
        if (window == 0) {
            turn();
        } else {
            stream();
        }
    }
    return MPI_Wtime() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Turns the seconds of some rounds into the figure. */
static double figure(double seconds, double rounds)
{
    return (window == 0) ? seconds * 1e6 / (2 * rounds) :
                           rounds * window / seconds / 1e6;
}

int main(int argc, char **argv)
{
    int rounds = (argc > 1) ? atoi(argv[1]) : 10000;
    double seconds[BATCHES], all = 0, mine[2], sum[2];
    int size, batch;

    bytes  = (argc > 2) ? atoi(argv[2]) : (int)sizeof(buffer.value);
    window = (argc > 3) ? atoi(argv[3]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((size % 2 != 0) || (rounds < 1) ||
        (bytes < (int)sizeof(buffer.value)) || (bytes > MAX_BYTES) ||
        (window < 0) || (window > MAX_WINDOW)) {
        fprintf(stderr, "usage: mpirun -np EVEN mpi_pairs "
                        "[ROUNDS [BYTES [WINDOW]]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    run(WARM_UP / (window + 1));
    buffer.value = 0;
    batch        = (rounds + BATCHES - 1) / BATCHES;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < BATCHES; i++) {
        seconds[i] = run(batch);
        all += seconds[i];
    }
    if ((rank % 2 == 0) && (window == 0) && (buffer.value != batch * BATCHES)) {
        fprintf(stderr, "mpi_pairs: %ld answers, expected %d\n", buffer.value,
                batch * BATCHES);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    qsort(seconds, BATCHES, sizeof(seconds[0]), compare);
    mine[0] = figure(all, (double)batch * BATCHES);
    mine[1] = figure(seconds[BATCHES / 2], batch);
    MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f %.3f\n", sum[0] / size, sum[1] / size);
    }
    MPI_Finalize();
    return 0;
}
