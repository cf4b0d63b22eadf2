/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/* The rank of this process, for reports of the processes of a job. */
#ifndef DCX_COMMON_LAUNCH_RANK_H
#define DCX_COMMON_LAUNCH_RANK_H

#include <stddef.h>
#include <stdlib.h>

/* Returns the rank that the launcher has set in the environment, or NULL. */
static inline const char *launch_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    const char *rank                 = NULL;
    unsigned i;

    for (i = 0; (i < sizeof(names) / sizeof(*names)) && (rank == NULL); ++i) {
        rank = getenv(names[i]);
    }
    return rank;
}

#endif
