/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of MPI as shapes: what MPI_Type_get_envelope() and
 * MPI_Type_get_contents() of the MPI in this process tell. Nothing of an MPI is
 * linked, and no header of one is included: its functions are looked up, its
 * constants are those of its binary interface.
 */
#ifndef MPI_TYPE_H
#define MPI_TYPE_H

#include "mpi_lib.h"
#include "views/shape/shape.h"

/* Bytes of an element of the type whose generic data type has 'context'; 0: it
 * has none, or they cannot be told. */
size_t mpi_type_size(const mpi_lib_t *lib, const void *context);

/* The shape of the type whose generic data type has 'context', which the caller
 * frees by free(); NULL: it cannot be told, or has more than 'max_nests' nests.
 * Called by any thread, within calls of MPI if that can be asked then; the type
 * is committed and alive. */
shape_t *mpi_type_shape(const mpi_lib_t *lib, const void *context,
                        size_t max_nests);

#endif
