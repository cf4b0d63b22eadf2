/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The side that measures: for each case, checks each method, times it, and
 * checks it again.
 */
#ifndef DCX_PERF_RUN_H
#define DCX_PERF_RUN_H

#include "perf_report.h"
#include "perf_uct.h"

/* Runs all cases of the plan, and ends perf_serve() of the peer. Ends the
 * process at the first wrong byte. */
void perf_run(struct perf_uct *uct, const struct perf_plan *plan,
              struct perf_report *report);

#endif
