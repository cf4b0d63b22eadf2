/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of MPI as shapes, from the constructors and arguments that the MPI
 * in this process reports. No MPI is linked, and no header of one is included:
 * functions are looked up, and constants are those of the binary interface.
 *
 * Any thread may call this; within a call of MPI, only if is_askable() returns
 * 1. The type must be committed and alive.
 */
#ifndef MPI_TYPE_H
#define MPI_TYPE_H

#include "mpi_lib.h"
#include "views/shape/shape.h"

/* Returns the bytes of an element of the type whose generic data type has
 * @context; 0: it has none, or they are unknown. */
size_t mpi_type_size(const mpi_lib_t *lib, const void *context);

/* Returns the shape of the type whose generic data type has @context. The
 * caller frees it by free(). NULL: it is unknown or too complex, has a negative
 * extent or more than @max_nests nests, or there is no memory. */
shape_t *mpi_type_shape(const mpi_lib_t *lib, const void *context,
                        size_t max_nests);

#endif
