/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPIs of the machine, by what their own commands say of them, and which of them
 * does not work with dcx.
 */
#ifndef DCX_INFO_MPI_H
#define DCX_INFO_MPI_H

#include "info_verdict.h"

/* An MPI as ompi_info or mpichversion describe it */
struct info_mpi {
    char version[64]; /* "" if it is not there */
    char device[64];  /* MPICH's, "ch4:ucx" */
    bool has_ucx;
};

/* Those that PATH leads to. */
void info_mpi_find_ompi(struct info_mpi *mpi);
void info_mpi_find_mpich(struct info_mpi *mpi);

/* A cause: the MPI that has started this process, or that `mpirun` is of, has no
 * UCX, or srun has started it by no PMI. */
void info_mpi(const struct info_report *report, struct info_verdict *verdict);

#endif
