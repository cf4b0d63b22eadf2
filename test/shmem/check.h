/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The OpenSHMEM checks. shmem_check.c runs them in the order of these tables;
 * each table is in the file of its name. They need two PEs or more, and
 * OpenSHMEM 1.4 (signals are new in 1.5).
 */
#ifndef DCX_TEST_SHMEM_CHECK_H
#define DCX_TEST_SHMEM_CHECK_H

#include "test/check.h"

#include <shmem.h>
#include <stdlib.h>
#include <string.h>

extern int pe;  /* number of this PE */
extern int pes; /* number of PEs */

/* Each table ends with a row of NULLs. */
extern const struct check shmem_rma_checks[];
extern const struct check shmem_strided_checks[];
extern const struct check shmem_atomics_checks[];
extern const struct check shmem_coll_checks[];

/* Neighbours in the ring */
static inline int next_pe(void)
{
    return (pe + 1) % pes;
}

static inline int prev_pe(void)
{
    return (pe + pes - 1) % pes;
}

/* Allocates zeroed symmetric memory; ends the job if there is none.
 * Collective. */
void *need_symmetric(size_t len);

#endif
