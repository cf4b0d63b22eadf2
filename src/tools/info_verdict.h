/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Why UCX does not use dcx, and the one thing to do.
 */
#ifndef DCX_INFO_VERDICT_H
#define DCX_INFO_VERDICT_H

#include "info_report.h"

#include <sys/resource.h>

/* What came of a look at a cause */
struct info_verdict {
    char reason[2 * INFO_TEXT_MAX]; /* "" if this is not it */
    char mend[2 * INFO_TEXT_MAX];   /* a command, or what else to do */
    char unknown[INFO_TEXT_MAX];    /* a variable that is no option; or "" */
};

/* Fills a verdict; both texts are formats of printf. */
void info_blame(struct info_verdict *verdict, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void info_mend(struct info_verdict *verdict, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Has the verdict undo the variable that a message of dcx names, if it does. */
void info_mend_variable(struct info_verdict *verdict, const char *text);

/* Writes into @text, of INFO_TEXT_MAX bytes, how to raise the limit that
 * ulimit(1) calls @letter, to @needs bytes. 0: to more than it is. */
void info_advise_limit(char letter, rlim_t needs, char *text);

/* Prints it. Where nothing is wrong, `lane` is what UCX uses, and `sockaddr`, which
 * may be NULL, the variables for programs that connect by socket address. */
void info_verdict_print(const struct info_verdict *verdict, const char *lane,
                        const char *sockaddr, bool json, FILE *out);

#endif
