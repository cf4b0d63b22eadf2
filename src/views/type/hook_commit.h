/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What stands before MPI_Type_commit() and MPI_Type_dup(): MPICH makes UCP's
 * data type in these. Where it cannot be asked for a layout within a call, it
 * is asked when they have returned.
 */
#ifndef HOOK_COMMIT_H
#define HOOK_COMMIT_H

#include "hook_type.h"

/* A data type was made, by a thread that may be within such a call */
void hook_commit_add(hook_type_t *type);

#endif
