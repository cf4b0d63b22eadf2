/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks OpenSHMEM over any transport: runs each check on all PEs, adds up the
 * errors, reports one line per check, and exits with 1 if a value was wrong
 * anywhere. An argument chooses checks: see is_chosen().
 * Expected values are computed locally.
 */
#include "test/shmem/check.h"

#include <time.h>

int pe;
int pes;

/* Symmetric. Summed with puts and barriers alone, so that a wrong reduction
 * cannot hide the errors. */
static int *error_counts;

void *need_symmetric(size_t len)
{
    void *ptr = shmem_align(64, len);

    if (ptr == NULL) {
        fprintf(stderr, "PE %d: no symmetric memory for %zu bytes\n", pe, len);
        shmem_global_exit(2);
    }
    memset(ptr, 0, len);
    shmem_barrier_all();
    return ptr;
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static int sum_errors(int errors)
{
    int sum = 0;

    for (int i = 0; i < pes; i++) {
        shmem_int_put(&error_counts[pe], &errors, 1, i);
    }
    shmem_barrier_all();
    for (int i = 0; i < pes; i++) {
        sum += error_counts[i];
    }
    shmem_barrier_all();
    return sum;
}

static int run_check(const struct check *check)
{
    double start = now();
    int errors   = sum_errors(check->run());

    if (pe == 0) {
        printf("%-4s %-28s %6.2f s\n", errors ? "FAIL" : "ok", check->name,
               now() - start);
        fflush(stdout);
    }
    return errors != 0;
}

/* Returns true if the name begins with @choice, or, if that is "-" and more,
 * does not begin with the rest. */
static int is_chosen(const char *name, const char *choice)
{
    int excludes = (choice[0] == '-');

    choice += excludes;
    return (strncmp(name, choice, strlen(choice)) != 0) == excludes;
}

int main(int argc, char **argv)
{
    static const struct check *const tables[] = {
        shmem_rma_checks,
        shmem_strided_checks,
        shmem_atomics_checks,
        shmem_coll_checks,
    };
    int run = 0, failed = 0;

    shmem_init();
    pe  = shmem_my_pe();
    pes = shmem_n_pes();
    if (pes < 2) {
        fprintf(stderr, "shmem_check: needs 2 PEs or more (oshrun -np 2)\n");
        shmem_global_exit(2);
    }

    error_counts = need_symmetric(pes * sizeof(*error_counts));
    for (unsigned i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct check *check = tables[i]; check->name; check++) {
            if ((argc < 2) || is_chosen(check->name, argv[1])) {
                failed += run_check(check);
                run++;
            }
        }
    }

    if (pe == 0) {
        printf("shmem_check: %d PEs, %d checks, %d failed\n", pes, run, failed);
    }
    shmem_free(error_counts);
    shmem_finalize();
    return (failed != 0) || (run == 0);
}
