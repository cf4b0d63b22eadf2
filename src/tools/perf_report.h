/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The results, and their output: one table of times, or all figures in tables
 * by operation and layout; CSV; and a check of the layouts against the rule of
 * self-consistency.
 */
#ifndef DCX_PERF_REPORT_H
#define DCX_PERF_REPORT_H

#include "perf_args.h"

#include <stdio.h>

/* The results of one method */
struct perf_result {
    bool is_there;    /* false: not measured */
    double us;        /* of a transfer, median */
    double cpu_us;    /* processor time of both processes' own threads */
    double device_us; /* processor time of other threads of the near process */
    uint64_t hits;    /* keys found with their layout, in all repetitions */
    uint64_t misses;  /* keys that got their layout first */
    uint64_t evictions;
    uint64_t sets;
    uint64_t doorbells;
};

/* One case */
struct perf_row {
    enum perf_op op;
    enum perf_form form;
    size_t size;
    size_t block;
    size_t pieces;
    double pack_us; /* of a copy alone; 0: none is needed */
    double unpack_us;
    double setup_us; /* of the near layout; 0: none, or umr was not measured */
    struct perf_result results[PERF_METHODS];
};

struct perf_report {
    const struct perf_plan *plan;
    FILE *csv; /* NULL: none */
    const char *csv_name;
    bool has_device; /* print device_us */
    struct perf_row *rows;
    size_t num;
    size_t table;  /* first row of the current table */
    size_t bounds; /* rows with a bound, except in an unfinished table */
    size_t kept;   /* of these, rows that keep it */
};

/* Opens a report. @plan and @csv are used until it is closed. @csv: name of a
 * file, or NULL. @has_device: other threads of the process belong to the
 * device; --all prints their time */
void perf_report_open(struct perf_report *report, const struct perf_plan *plan,
                      const char *csv, bool has_device);

/* Appends a row, and prints it. */
void perf_report_add(struct perf_report *report, const struct perf_row *row);

/* Prints the rest, and frees the rows. Ends the process if the output cannot be
 * written. */
void perf_report_close(struct perf_report *report);

/* Returns the bound of umr in us: t(pack) + t(contig) + t(unpack); 0 if umr or
 * contig was not measured. */
double perf_row_bound(const struct perf_row *row);

#endif
