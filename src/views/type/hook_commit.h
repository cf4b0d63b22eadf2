/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Interposes MPI_Type_commit() and MPI_Type_dup(), in which MPICH makes UCP's
 * data type. If it must not be asked for the layout within a call, it is asked
 * when they have returned.
 */
#ifndef HOOK_COMMIT_H
#define HOOK_COMMIT_H

#include "hook_type.h"

/* Records a new data type, if this thread is within such a call. */
void hook_commit_add(hook_type_t *type);

#endif
