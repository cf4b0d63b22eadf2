/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The near side of a run: case by case, each method is checked, timed, and
 * checked again.
 */
#ifndef DCX_PERF_RUN_H
#define DCX_PERF_RUN_H

#include "perf_report.h"
#include "perf_uct.h"

/* All cases of the plan; ends the process at the first byte that is wrong. */
void perf_run(struct perf_uct *uct, const struct perf_plan *plan,
              struct perf_report *report);

#endif
