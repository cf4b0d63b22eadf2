/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The command line of dcx_info, which dcx_info and dcx_info-look both parse.
 */
#ifndef DCX_INFO_ARGS_H
#define DCX_INFO_ARGS_H

#include <stdbool.h>

struct info_args {
    bool json;
    bool why;
    bool versions;
    bool features;
    const char *live; /* number of a process; NULL: none */
};

/* Exit status. 0: dcx can be used; with --why, UCX uses it. 1: no, or an option
 * has a wrong value. 2: wrong arguments, or dcx_info failed */
enum { INFO_GOOD = 0, INFO_BAD = 1, INFO_USAGE = 2 };

/* Sets members of @args, which the caller has zeroed, and optind to the first
 * argument that is no option. Ends the process after --help, --version and an
 * unknown option. */
void info_args_parse(int argc, char **argv, struct info_args *args);

/* Flushes the output of the program. Returns @status, or INFO_USAGE, with a
 * line on stderr, if it could not be written. */
int info_args_end(int status);

#endif
