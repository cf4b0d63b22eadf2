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
    char unknown[INFO_TEXT_MAX];    /* a variable that is no option; or "" */
};

/* Set the reason, and how to fix it; formats are those of printf. */
void info_blame(struct info_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void info_fix(struct info_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Advises to unset the variable that a message of dcx names; if it names none,
 * to log more. */
void info_fix_variable(struct info_verdict *verdict, const char *text);

/* Writes to @text, of INFO_TEXT_MAX bytes, how to raise the limit that
 * ulimit(1) calls @letter to @needs bytes. 0: to more than now */
void info_advise_limit(char letter, rlim_t needs, char *text);

/* Prints the verdict. If nothing is wrong, @lane is the one that UCX uses, and
 * @sockaddr has the variables for programs that connect by socket address, or
 * is NULL. */
void info_verdict_print(const struct info_verdict *verdict, const char *lane,
                        const char *sockaddr, bool json, FILE *out);

#endif
