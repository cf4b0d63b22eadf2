/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Runs a probe in a process of its own. A probe that hangs or crashes has
 * failed.
 */
#ifndef DCX_SELFTEST_RUN_H
#define DCX_SELFTEST_RUN_H

#include "selftest.h"

enum {
    SELFTEST_TEXT        = 8192,
    SELFTEST_TIMEOUT_MAX = 3600 /* seconds */
};

struct selftest_how {
    const char *device;  /* "mlx5_0:1", or NULL */
    const char *profile; /* for UCX_DCX_PROFILE; not NULL */
    unsigned timeout;    /* seconds */
    const char *host;    /* of the peer, for probes that need it; NULL: none */
    const char *port;
    int serve; /* connection to serve as a target; 0: none */
};

struct selftest_report {
    enum selftest_result result;
    char values[SELFTEST_TEXT];  /* "key value\n" ... */
    char reasons[SELFTEST_TEXT]; /* lines, may be empty */
    char notes[SELFTEST_TEXT];
};

/* Runs @probe, and fills @report. Kills the process after the timeout. */
void selftest_run(const struct selftest_probe *probe,
                  const struct selftest_how *how,
                  struct selftest_report *report);

#endif
