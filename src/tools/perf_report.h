/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What was measured, and how it is printed: one table of times, or all figures in
 * tables by operation and layout; CSV, and whether the layouts keep the rule of
 * self-consistency. Pure but for files.
 */
#ifndef DCX_PERF_REPORT_H
#define DCX_PERF_REPORT_H

#include "perf_args.h"

#include <stdio.h>

/* Of one method */
struct perf_result {
    bool     is_there;
    double   us;        /* of a transfer, median */
    double   cpu_us;    /* of the processor in both processes' own threads */
    double   device_us; /* ... in other threads of the near one */
    uint64_t hits;      /* keys found with their layout, in all repetitions */
    uint64_t misses;    /* ... that had to be given it */
    uint64_t evictions;
    uint64_t sets;
    uint64_t doorbells;
};

/* One case */
struct perf_row {
    enum perf_op       op;
    enum perf_form     form;
    size_t             size;
    size_t             block;
    size_t             pieces;
    double             pack_us;   /* of the processor alone; 0: nothing to do */
    double             unpack_us;
    double             setup_us;  /* of the near layout; 0: there is none */
    struct perf_result results[PERF_METHODS];
};

struct perf_report {
    const struct perf_plan *plan;
    FILE                   *csv; /* NULL: none */
    const char             *csv_name;
    bool                    has_device; /* device_us is to be shown */
    struct perf_row        *rows;
    size_t                  num;
    size_t                  table;  /* row with which the last table began */
    size_t                  bounds; /* rows with a bound in the tables before */
    size_t                  kept;   /* ... that keep it */
};

/* csv: the name of a file, or NULL. has_device: other threads of the process
 * are the device's, so that their time is of interest. */
void perf_report_open(struct perf_report *report, const struct perf_plan *plan,
                      const char *csv, bool has_device);

/* Appends a row, and prints it. */
void perf_report_add(struct perf_report *report, const struct perf_row *row);

/* The rest, when all is measured. Ends the process if it cannot be written. */
void perf_report_close(struct perf_report *report);

/* t(pack) + t(contiguous) + t(unpack): what umr must not exceed. @return 0 if
 * either was not measured. */
double perf_row_bound(const struct perf_row *row);

#endif
