/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_unfinished HOW: sends some messages and ends without MPI_Finalize(). HOW
 * is `return`, `_exit`, or the number of a signal.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *how = (argc > 1) ? argv[1] : "return";
    int rank, size, got = -1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 10; i++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    printf("mpi_unfinished: %d of %d, from %d, ends by %s\n", rank, size, got,
           how);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "_exit")) {
        _exit(0);
    }
    if (strcmp(how, "return")) {
        raise(atoi(how));
    }
    return 0;
}
