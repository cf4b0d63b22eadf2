/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks MPI over any transport: runs each check on all ranks, adds up the
 * errors, reports one line per check, and exits with 1 if a value was wrong
 * anywhere. With arguments, runs only the checks whose names begin with all of
 * them, or do not begin with one after a '-'. Expected values are computed
 * locally.
 */
#include "test/mpi/check.h"

int main(int argc, char **argv)
{
    static const struct check *const tables[] = {
        mpi_p2p_checks,  mpi_match_checks, mpi_types_checks,
        mpi_coll_checks, mpi_rma_checks,
    };
    int is_failed;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fprintf(stderr, "mpi_check: needs 2 ranks or more (mpirun -np 2)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    is_failed = run_checks("mpi_check", tables,
                           sizeof(tables) / sizeof(tables[0]), argv + 1);
    MPI_Finalize();
    return is_failed;
}
