/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks MPI over whatever transport it was started with: runs each check on
 * all ranks, adds up the errors, reports one line a check, and exits with 1 if
 * a value was wrong anywhere. With an argument, only the checks whose names
 * begin with it, or, behind a '-', do not. The values expected are computed
 * locally.
 */
#include "test/mpi/check.h"

int rank;
int ranks;

void *need(size_t len)
{
    void *ptr = malloc(len);

    if (ptr == NULL) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", rank, len);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return ptr;
}

static int run_check(const struct check *check)
{
    double start = MPI_Wtime();
    int errors   = check->run();
    int all;

    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%-4s %-28s %6.2f s\n", all ? "FAIL" : "ok", check->name,
               MPI_Wtime() - start);
        fflush(stdout);
    }
    return all != 0;
}

static int is_chosen(const char *name, const char *prefix)
{
    int is_excluded = (prefix[0] == '-');

    prefix += is_excluded;
    return (strncmp(name, prefix, strlen(prefix)) != 0) == is_excluded;
}

int main(int argc, char **argv)
{
    static const struct check *const tables[] = {
        mpi_p2p_checks, mpi_match_checks, mpi_types_checks, mpi_coll_checks,
        mpi_rma_checks
    };
    int run = 0, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2) {
        fprintf(stderr, "mpi_check: needs 2 ranks or more (mpirun -np 2)\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct check *check = tables[i]; check->name; check++) {
            if ((argc < 2) || is_chosen(check->name, argv[1])) {
                failed += run_check(check);
                run++;
            }
        }
    }

    if (rank == 0) {
        printf("mpi_check: %d ranks, %d checks, %d failed\n", ranks, run,
               failed);
    }
    MPI_Finalize();
    return (failed != 0) || (run == 0);
}
