/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages of dcx_perf and dcx_selftest on standard error: the line with which
 * they end, and the progress of dcx_perf. A function that ends the process does
 * so at once: a peer notices that by itself.
 */
#ifndef DCX_PERF_SAY_H
#define DCX_PERF_SAY_H

/* Exit status: 0 all is well, 1 it did not work, 2 a wrong call */
enum { PERF_GOOD = 0, PERF_BAD = 1, PERF_USAGE = 2 };

/* Formats of printf, without the program's name and the end of the line */
void perf_fail(const char *format, ...)
        __attribute__((noreturn, format(printf, 1, 2)));
void perf_wrong_call(const char *format, ...)
        __attribute__((noreturn, format(printf, 1, 2)));

/* On a terminal alone, in one line that the next one replaces. */
void perf_progress(const char *format, ...)
        __attribute__((format(printf, 1, 2)));
void perf_progress_clear(void);

#endif
