/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Versions of the software that dcx works with. Libraries are examined as the
 * dynamic linker finds them. Nothing of UCX is linked: a version other than the
 * one that dcx was built for may lack symbols.
 */
#ifndef DCX_INFO_VERSIONS_H
#define DCX_INFO_VERSIONS_H

#include "info_verdict.h"

/* Appends a row for each of dcx, UCX, rdma-core, the driver and the MPIs. */
void info_versions_report(struct info_part *part);

/* Prints the beginning of a JSON object: the versions of dcx and of the UCX
 * that it was built for, and the rows of @part as member "versions". The caller
 * prints more members, and the end. */
void info_versions_print_json(const struct info_part *part, FILE *out);

/* A cause (info_why.h): UCX is not installed, or is not the version that dcx
 * was built for. */
void info_versions_ucx(struct info_verdict *verdict);

/* Returns 1 if dcx is installed in /usr/lib, as by a package of the system; 0
 * means that it was built from a clone. */
int info_is_packaged(void);

#endif
