/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The versions of what dcx works with. Libraries are looked at as the dynamic linker
 * finds them, and nothing of UCX is linked for it: another version than dcx was
 * built for lacks symbols.
 */
#ifndef DCX_INFO_VERSIONS_H
#define DCX_INFO_VERSIONS_H

#include "info_verdict.h"

/* A row for each: dcx, UCX, rdma-core, the driver, the MPIs. */
void info_versions_report(struct info_part *part);

/* The begin of an object: the versions of dcx and of UCX that were built, and these
 * rows as its member "versions". */
void info_versions_print_json(const struct info_part *part, FILE *out);

/* That the UCX is not the one that dcx was built for, if so. */
void info_versions_ucx(struct info_verdict *verdict);

/* Whether dcx is of a package of the system, and not of a clone. */
int info_is_packaged(void);

#endif
