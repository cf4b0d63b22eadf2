/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_pairs [ROUNDS [BYTES]]: ping-pong of BYTES, by default 8, between rank 2i
 * and rank 2i + 1, all pairs at once. Prints the mean one-way time of the
 * pairs, in microseconds. contrib/bench compares one pair with several on the
 * same cores.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 500, MAX_BYTES = 1 << 20 };

static union {
    long value; /* counts the rounds */
    char bytes[MAX_BYTES];
} buffer;

static double pair_seconds(int rank, int rounds, int bytes)
{
    double start;

    buffer.value = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        if (rank % 2 == 0) {
            MPI_Send(&buffer, bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&buffer, bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&buffer, bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            buffer.value++;
            MPI_Send(&buffer, bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD);
        }
    }
    if ((rank % 2 == 0) && (buffer.value != rounds)) {
        fprintf(stderr, "mpi_pairs: %ld answers, expected %d\n", buffer.value,
                rounds);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    int rounds = (argc > 1) ? atoi(argv[1]) : 10000;
    int bytes  = (argc > 2) ? atoi(argv[2]) : (int)sizeof(buffer.value);
    int rank, size;
    double mine, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if ((size % 2 != 0) || (rounds < 1) ||
        (bytes < (int)sizeof(buffer.value)) || (bytes > MAX_BYTES)) {
        fprintf(stderr, "usage: mpirun -np EVEN mpi_pairs [ROUNDS [BYTES]]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pair_seconds(rank, WARM_UP, bytes);
    mine = pair_seconds(rank, rounds, bytes) * 1e6 / (2.0 * rounds);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.3f\n", sum / size);
    }
    MPI_Finalize();
    return 0;
}
