/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Versions of the software that dcx works with. Libraries are examined as the
 * dynamic linker finds them. Nothing of UCX is linked, as another version than
 * dcx was built for lacks symbols.
 */
#ifndef DCX_INFO_VERSIONS_H
#define DCX_INFO_VERSIONS_H

#include "info_verdict.h"

/* Appends a row for each of dcx, UCX, rdma-core, the driver and the MPIs. */
void info_versions_report(struct info_part *part);

/* Prints the begin of an object: the versions of dcx and of the UCX that it was
 * built for, and these rows as its member "versions". */
void info_versions_print_json(const struct info_part *part, FILE *out);

/* A cause: UCX is not the version that dcx was built for. */
void info_versions_ucx(struct info_verdict *verdict);

/* Returns 1 if dcx was installed by a package of the system, not built from a
 * clone. */
int info_is_packaged(void);

#endif
