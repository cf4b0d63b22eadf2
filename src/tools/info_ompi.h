/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Checks if Open MPI's parameters let it use UCX, and let UCX use dcx. Reads
 * them from the environment and from Open MPI's parameter files.
 */
#ifndef DCX_INFO_OMPI_H
#define DCX_INFO_OMPI_H

#include "info_why.h"

/* Returns true if the comma-separated @list contains @entry. A NULL list
 * contains nothing. */
bool info_list_has(const char *list, const char *entry);

/* Sets the reason and the fix of @verdict if Open MPI's parameters exclude UCX,
 * or UCX's transport dcx. Does nothing unless Open MPI started this process, or
 * the environment has a variable OMPI_MCA_*: otherwise Open MPI may not be in
 * use. Ignores @report. */
void info_ompi(const struct info_report *report, struct info_verdict *verdict);

#endif
