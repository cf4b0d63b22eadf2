/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Replaces perf_boot_pmix.c if dcx is built without PMIx.
 */
#include "perf_boot.h"
#include "perf_say.h"

void perf_boot_pmix_open(struct perf_boot *boot)
{
    (void)boot;
    perf_wrong_call("this dcx_perf was built without PMIx: start it twice, "
                    "with --port PORT, and with --port PORT HOST");
}
