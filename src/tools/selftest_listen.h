/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The peer of a test between two processes: dcx_selftest --listen. The first
 * connection is that of the test, and ends with it. Each probe has a connection
 * and a process of its own.
 */
#ifndef DCX_SELFTEST_LISTEN_H
#define DCX_SELFTEST_LISTEN_H

#include "selftest_run.h"

/* Serves one test. @how: device, profile and port. @probes: ends with one that
 * has no name. Returns the exit status. */
int selftest_listen(const struct selftest_probe *probes,
                    const struct selftest_how *how);

#endif
