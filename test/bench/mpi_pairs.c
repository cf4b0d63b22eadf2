/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Ping-pong of 8 bytes between rank 2i and rank 2i + 1, all pairs at once.
 * Prints the mean one-way time of the pairs, in microseconds. contrib/bench
 * compares one pair with two on the same cores.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 500 };

static double pair_seconds(int rank, int rounds)
{
    double start;
    long value = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (rank % 2 == 0) {
            MPI_Send(&value, 1, MPI_LONG, rank + 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&value, 1, MPI_LONG, rank + 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&value, 1, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            value++;
            MPI_Send(&value, 1, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD);
        }
    }
    if ((rank % 2 == 0) && (value != rounds)) {
        fprintf(stderr, "mpi_pairs: %ld answers, expected %d\n", value, rounds);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    int rounds = (argc > 1) ? atoi(argv[1]) : 10000;
    int rank, size;
    double mine, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((size % 2 != 0) || (rounds < 1)) {
        fprintf(stderr, "usage: mpirun -np EVEN mpi_pairs [ROUNDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pair_seconds(rank, WARM_UP);
    mine = pair_seconds(rank, rounds) * 1e6 / (2.0 * rounds);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f\n", sum / size);
    }
    MPI_Finalize();
    return 0;
}
