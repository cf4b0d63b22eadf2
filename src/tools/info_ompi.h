/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks that Open MPI would use UCX with a transport named dcx: reads its
 * parameters from the environment and from its files.
 */
#ifndef DCX_INFO_OMPI_H
#define DCX_INFO_OMPI_H

#include "info_why.h"

/* Returns true if the comma-separated @list has the entry. */
bool info_list_has(const char *list, const char *entry);

/* A cause: parameters of Open MPI exclude UCX, or UCX with dcx. Checked only if
 * Open MPI started this process, or the environment has parameters of it: else
 * Open MPI may not be in use. */
void info_ompi(const struct info_report *report, struct info_verdict *verdict);

#endif
