/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The command line of dcx_info: both of its programs parse the same.
 */
#ifndef DCX_INFO_ARGS_H
#define DCX_INFO_ARGS_H

#include <stdbool.h>

struct info_args {
    bool json;
    bool why;
    bool versions;
};

/* Exit status: 0 dcx can be used, 1 it cannot, 2 wrong arguments */
enum { INFO_GOOD = 0, INFO_BAD = 1, INFO_USAGE = 2 };

/* Parses options, and sets optind behind them. Ends the process after --help,
 * --version and an unknown option. */
void info_args_parse(int argc, char **argv, struct info_args *args);

/* Flushes the output of the program. Returns @status, or INFO_USAGE, with a
 * line on stderr, if it could not be written. */
int info_args_end(int status);

#endif
