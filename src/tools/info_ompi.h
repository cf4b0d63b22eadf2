/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Whether Open MPI would use UCX with a transport of this name: its parameters,
 * from the environment and its files.
 */
#ifndef DCX_INFO_OMPI_H
#define DCX_INFO_OMPI_H

#include "info_why.h"

/* Whether a list with commas has the entry. */
bool info_list_has(const char *list, const char *entry);

/* A cause, of a process that Open MPI started or that has parameters of its in
 * the environment; others may have nothing to do with it. */
void info_ompi(const struct info_report *report, struct info_verdict *verdict);

#endif
