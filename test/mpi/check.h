/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPI checks. mpi_check.c runs them in the order of these tables; each
 * table is in the file of its name. They run on two ranks or more.
 */
#ifndef DCX_TEST_MPI_CHECK_H
#define DCX_TEST_MPI_CHECK_H

#include "test/check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

extern int rank;  /* number in MPI_COMM_WORLD */
extern int ranks; /* number of all ranks */

/* Each table ends with a row of NULLs. */
extern const struct check mpi_p2p_checks[];
extern const struct check mpi_match_checks[];
extern const struct check mpi_types_checks[];
extern const struct check mpi_rma_checks[];
extern const struct check mpi_coll_checks[];

/* Neighbours in the ring */
static inline int next_rank(void)
{
    return (rank + 1) % ranks;
}

static inline int prev_rank(void)
{
    return (rank + ranks - 1) % ranks;
}

/* Runs a check; returns 1 if there were errors on any rank. */
int run_check(const struct check *check);

/* Runs the checks whose names begin with all of 'words', or do not begin with
 * one after a '-'; a NULL ends 'words'. Returns non-zero if a check failed, or
 * none matches. */
int run_checks(const char *program, const struct check *const *tables, int num,
               char *const *words);

/* Allocates memory; ends the job if there is none. */
void *need(size_t len);

#endif
