/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPIs of the machine, as their own commands describe them, and the reasons
 * why one does not work with dcx.
 */
#ifndef DCX_INFO_MPI_H
#define DCX_INFO_MPI_H

#include "info_verdict.h"

/* An MPI as ompi_info or mpichversion describe it */
struct info_mpi {
    char version[64]; /* "" if it is not installed */
    char device[64];  /* MPICH's, "ch4:ucx" */
    bool has_ucx;
};

/* Describe the MPIs whose commands are in PATH. */
void info_mpi_find_ompi(struct info_mpi *mpi);
void info_mpi_find_mpich(struct info_mpi *mpi);

/* A cause: the MPI that started this process, or that `mpirun` belongs to, has
 * no UCX, or srun started the process without a PMI. */
void info_mpi(const struct info_report *report, struct info_verdict *verdict);

#endif
