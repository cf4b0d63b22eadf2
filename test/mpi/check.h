/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPI checks: mpi_check.c runs them in the order of these tables, each of
 * which is in the file of its name. They run on any number of ranks from two.
 */
#ifndef DCX_TEST_MPI_CHECK_H
#define DCX_TEST_MPI_CHECK_H

#include "test/check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

extern int rank;  /* this process in MPI_COMM_WORLD */
extern int ranks; /* how many there are */

/* Each ends with a row of NULLs */
extern const struct check mpi_p2p_checks[];
extern const struct check mpi_match_checks[];
extern const struct check mpi_types_checks[];
extern const struct check mpi_rma_checks[];
extern const struct check mpi_coll_checks[];

/* The ring's neighbours */
static inline int next_rank(void)
{
    return (rank + 1) % ranks;
}

static inline int prev_rank(void)
{
    return (rank + ranks - 1) % ranks;
}

/* Returns whether there were errors on any rank */
int run_check(const struct check *check);

/* Those whose names begin with each of 'words', or, behind a '-', do not; a NULL ends
 * these. Returns non-zero if one failed, or there is none. */
int run_checks(const char *program, const struct check *const *tables, int num,
               char *const *words);

/* malloc() that ends the job when there is no memory */
void *need(size_t len);

#endif
