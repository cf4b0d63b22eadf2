/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Interposes MPI_Type_commit() and MPI_Type_dup(), in which MPICH makes UCP's
 * data type. If MPICH must not be asked for the layout within a call of MPI
 * (is_askable()), it is asked when the function has returned.
 */
#ifndef HOOK_COMMIT_H
#define HOOK_COMMIT_H

#include "hook_type.h"

/* Records a new data type if this thread is within one of these functions:
 * takes a reference until that returns. Only the last type is kept. */
void hook_commit_add(hook_type_t *type);

#endif
