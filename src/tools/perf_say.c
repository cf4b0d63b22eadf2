/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Messages on standard error; see perf_say.h.
 */
#include "perf_say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool perf_progress_shown;

static void perf_say(const char *format, va_list args)
{
    perf_progress_clear();
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void perf_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    perf_say(format, args);
    va_end(args);
    exit(PERF_BAD);
}

/* In a PMIx job only rank 0 prints the line, as all have the same arguments.
 * The launcher kills all of them when the first one ends: so the others wait
 * until rank 0 has printed. */
void perf_wrong_call(const char *format, ...)
{
    const char *rank = getenv("PMIX_RANK");
    va_list args;

    if ((rank == NULL) || (atoi(rank) == 0)) {
        va_start(args, format);
        perf_say(format, args);
        va_end(args);
    } else {
        sleep(1);
    }
    exit(PERF_USAGE);
}

void perf_progress(const char *format, ...)
{
    va_list args;

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    fputs("\r\033[K", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fflush(stderr);
    perf_progress_shown = true;
}

void perf_progress_clear(void)
{
    if (perf_progress_shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        perf_progress_shown = false;
    }
}
