/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The reason why UCX does not use dcx, and how to fix it.
 */
#ifndef DCX_INFO_VERDICT_H
#define DCX_INFO_VERDICT_H

#include "info_report.h"

#include <sys/resource.h>

/* The result of a check for a cause */
struct info_verdict {
    char reason[2 * INFO_TEXT_MAX]; /* "": this is not the cause */
    char fix[2 * INFO_TEXT_MAX];    /* a command, or other advice */
    char unknown[INFO_TEXT_MAX];    /* text on a variable UCX_DCX_* that is
                                     * not an option; or "" */
};

/* Set the reason, or the fix; @format is as of printf(). */
void info_blame(struct info_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void info_fix(struct info_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Advises to unset the first variable UCX_* in @text, a message of dcx; if
 * there is none, to log more. */
void info_fix_variable(struct info_verdict *verdict, const char *text);

/* Writes to @text, of INFO_TEXT_MAX bytes, how to raise a limit. @letter: 'l',
 * 'n', 'u' or 'v', as of ulimit(1). @needs: the value, in units of
 * setrlimit(2); 0: more than now */
void info_advise_limit(char letter, rlim_t needs, char *text);

/* Prints the verdict. @lane: device and port that UCX uses, such as
 * "dcx/mlx5_0:1"; NULL only if there is a reason. @sockaddr: variables that
 * programs which connect by socket address have to set, or NULL */
void info_verdict_print(const struct info_verdict *verdict, const char *lane,
                        const char *sockaddr, bool json, FILE *out);

#endif
