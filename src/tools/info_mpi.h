/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPIs of the machine, as their own commands describe them, and the reasons
 * why one does not work with dcx.
 */
#ifndef DCX_INFO_MPI_H
#define DCX_INFO_MPI_H

#include "info_verdict.h"

/* An MPI as ompi_info or mpichversion describes it */
struct info_mpi {
    char version[64]; /* "" if it is not installed */
    char device[64];  /* of MPICH, as "ch4:ucx" */
    bool has_ucx;
};

/* Describe Open MPI and MPICH by their commands in PATH. */
void info_mpi_find_ompi(struct info_mpi *mpi);
void info_mpi_find_mpich(struct info_mpi *mpi);

/* A cause: the MPI in use has no UCX, or srun started several tasks without a
 * PMI. The MPI in use is the one that started this process; else, that of
 * `mpirun`. Without either, nothing is checked. */
void info_mpi(const struct info_report *report, struct info_verdict *verdict);

#endif
