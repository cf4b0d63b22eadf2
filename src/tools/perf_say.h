/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages of dcx_perf and dcx_selftest on standard error: their last line, and
 * the progress of dcx_perf. Functions that end the process call exit(): the
 * peer notices the end by itself.
 */
#ifndef DCX_PERF_SAY_H
#define DCX_PERF_SAY_H

/* Exit status: 0 success, 1 failure, 2 wrong arguments */
enum { PERF_GOOD = 0, PERF_BAD = 1, PERF_USAGE = 2 };

/* Print a line, and end the process with PERF_BAD or PERF_USAGE. @format: as of
 * printf(), without the program's name and the end of the line. In a PMIx job,
 * perf_wrong_call() prints only in rank 0; the other ranks wait a second. */
void perf_fail(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));
void perf_wrong_call(const char *format, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* Prints progress, only on a terminal, in a line that the next message
 * replaces. */
void perf_progress(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void perf_progress_clear(void);

#endif
