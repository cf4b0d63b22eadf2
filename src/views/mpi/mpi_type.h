/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of MPI as shapes, as MPI_Type_get_envelope() and
 * MPI_Type_get_contents() of the MPI in this process report them. No MPI is
 * linked, and no header of one is included: functions are looked up, and
 * constants are those of the binary interface.
 */
#ifndef MPI_TYPE_H
#define MPI_TYPE_H

#include "mpi_lib.h"
#include "views/shape/shape.h"

/* Returns the bytes of an element of the type whose generic data type has
 * @context; 0: it has none, or they are unknown. */
size_t mpi_type_size(const mpi_lib_t *lib, const void *context);

/* Returns the shape of the type whose generic data type has @context. The
 * caller frees it by free(). NULL: it is unknown, or has more than @max_nests
 * nests. Any thread may call this, within calls of MPI only if is_askable().
 * The type must be committed and alive. */
shape_t *mpi_type_shape(const mpi_lib_t *lib, const void *context,
                        size_t max_nests);

#endif
