/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Windows of shared memory, which no transport supports, beside a window of the
 * program's own memory, which uses UCX. Each rank stores to its neighbour's
 * part of the first, and puts to that of the second.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, ranks, next, unit, wrong, all;
    MPI_Win shared, own;
    MPI_Aint size;
    int *part, *other;
    _Alignas(16) int put = -1; /* see mpich.matrix */

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (rank + 1) % ranks;

    MPI_Win_allocate_shared(sizeof(*part), sizeof(*part), MPI_INFO_NULL,
                            MPI_COMM_WORLD, &part, &shared);
    MPI_Win_create(&put, sizeof(put), sizeof(put), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &own);
    MPI_Win_shared_query(shared, next, &size, &unit, &other);

    MPI_Win_fence(0, shared);
    *other = rank;
    MPI_Win_fence(0, shared);
    MPI_Win_fence(0, own);
    MPI_Put(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, own);
    MPI_Win_fence(0, own);

    wrong = (*part != (rank + ranks - 1) % ranks) || (put != *part);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("mpi_shared: %d ranks, %d wrong\n", ranks, all);
    }
    MPI_Win_free(&own);
    MPI_Win_free(&shared);
    MPI_Finalize();
    return all != 0;
}
