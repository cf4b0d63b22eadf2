/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_rules [-threads | -dies | -multiple | [-]NAME...]: checks messages of
 * derived types. NAMEs choose checks as in mpi_check. The settings of the ranks
 * decide whether the messages are zero-copy. -threads runs the checks of
 * several threads, which need MPI_THREAD_MULTIPLE; -multiple runs the other
 * checks with it. With -dies the last rank dies after it has started a message.
 */
#include "test/mpi/rules.h"

#include <signal.h>

static int run_threads(void)
{
    int failed = run_check(&rules_threads_checks[0]);

    if (rank == 0) {
        printf("mpi_rules: %d ranks, threads, %d failed\n", ranks, failed);
    }
    return failed;
}

/* Sends to and receives from a rank that has died: the job ends, and does not
 * hang. */
static int run_dies(void)
{
    struct area out, in;

    area_init_layout(&out, 0, 4000000);
    area_clone(&out, &in);
    for (unsigned i = 0; i < 1000; i++) {
        if ((i == 10) && (rank == ranks - 1)) {
            MPI_Request request;

            MPI_Isend(out.buffer, 1, out.type, next_rank(), TAG, MPI_COMM_WORLD,
                      &request);
            raise(SIGKILL);
        }
        exchange("dies", &out, &in, i, MPI_COMM_WORLD);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct check *const tables[] = {
        rules_shapes_checks, rules_p2p_checks, rules_memory_checks,
        rules_coll_checks};
    const char *what = (argc < 2) ? "" : argv[1];
    int is_threads   = !strcmp(what, "-threads");
    int is_multiple  = !strcmp(what, "-multiple");
    int is_failed, provided;

    MPI_Init_thread(&argc, &argv,
                    (is_threads || is_multiple) ? MPI_THREAD_MULTIPLE :
                                                  MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (is_threads) {
        is_failed = run_threads();
    } else if (!strcmp(what, "-dies")) {
        is_failed = run_dies();
    } else {
        is_failed = run_checks("mpi_rules", tables,
                               sizeof(tables) / sizeof(tables[0]),
                               is_multiple ? argv + argc : argv + 1);
    }
    MPI_Finalize();
    return is_failed;
}
