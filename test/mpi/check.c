/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs checks of MPI over any transport: each on all ranks. Adds up the errors,
 * and reports one line per check.
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

int run_check(const struct check *check)
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

static int is_chosen(const char *name, char *const *words)
{
    for (; *words != NULL; words++) {
        int is_excluded    = (**words == '-');
        const char *prefix = *words + is_excluded;

        if ((strncmp(name, prefix, strlen(prefix)) != 0) != is_excluded) {
            return 0;
        }
    }
    return 1;
}

int run_checks(const char *program, const struct check *const *tables, int num,
               char *const *words)
{
    int run = 0, failed = 0;

    for (int i = 0; i < num; i++) {
        for (const struct check *check = tables[i]; check->name; check++) {
            if (is_chosen(check->name, words)) {
                failed += run_check(check);
                run++;
            }
        }
    }

    if (rank == 0) {
        printf("%s: %d ranks, %d checks, %d failed\n", program, ranks, run,
               failed);
    }
    return (failed != 0) || (run == 0);
}
