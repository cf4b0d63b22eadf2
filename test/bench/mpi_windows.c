/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Time in which all ranks create windows, and free them. Each window has 4 KiB
 * of memory of its own, which is registered and whose key goes to all other
 * ranks:
 *
 *     OMPI_MCA_osc=ucx mpirun ... mpi_windows WINDOWS
 *
 * Rank 0 prints "windows WINDOWS SECONDS SECONDS": to create and to free all. A
 * put to each window must arrive.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 4096 };

static int rank, ranks;

static void windows_make(MPI_Win *windows, int **memory, int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Win_allocate(BYTES, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                         &memory[i], &windows[i]);
    }
}

/* Returns the number of the previous rank's puts that did not arrive. */
static int windows_use(MPI_Win *windows, int **memory, int count)
{
    int wrong = 0;

    for (int i = 0; i < count; i++) {
        MPI_Win_fence(0, windows[i]);
        MPI_Put(&i, 1, MPI_INT, (rank + 1) % ranks, rank, 1, MPI_INT,
                windows[i]);
        MPI_Win_fence(0, windows[i]);
        wrong += memory[i][(rank + ranks - 1) % ranks] != i;
    }
    return wrong;
}

static void windows_free(MPI_Win *windows, int count)
{
    for (int i = 0; i < count; i++) {
        MPI_Win_free(&windows[i]);
    }
}

int main(int argc, char **argv)
{
    int count = (argc > 1) ? atoi(argv[1]) : 1000;
    MPI_Win *windows;
    double make, free;
    int **memory;
    int wrong;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    windows = calloc(count, sizeof(*windows));
    memory  = calloc(count, sizeof(*memory));

    MPI_Barrier(MPI_COMM_WORLD);
    make = -MPI_Wtime();
    windows_make(windows, memory, count);
    make += MPI_Wtime();
    wrong = windows_use(windows, memory, count);
    MPI_Barrier(MPI_COMM_WORLD);
    free = -MPI_Wtime();
    windows_free(windows, count);
    free += MPI_Wtime();

    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("windows %d %.3f %.3f\n", count, make, free);
    }
    MPI_Finalize();
    return wrong != 0;
}
