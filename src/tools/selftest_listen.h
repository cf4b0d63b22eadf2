/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The side of the targets: dcx_selftest --listen. The first connection is that of
 * the test, and lasts as long; each probe has one of its own, and a process.
 */
#ifndef DCX_SELFTEST_LISTEN_H
#define DCX_SELFTEST_LISTEN_H

#include "selftest_run.h"

/* Serves one test; @how has the device and the port, @probes end with one that
 * has no name. Returns the status of the process. */
int selftest_listen(const struct selftest_probe *probes,
                    const struct selftest_how *how);

#endif
