/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The command line of dcx_info, which its two programs read alike.
 */
#ifndef DCX_INFO_ARGS_H
#define DCX_INFO_ARGS_H

#include <stdbool.h>

struct info_args {
    bool json;
    bool why;
    bool versions;
};

/* Exit status: 0 all is well, 1 dcx cannot be used, 2 a wrong call */
enum { INFO_GOOD = 0, INFO_BAD = 1, INFO_USAGE = 2 };

/* Options up to `optind`. Ends the process after --help, --version, and what is
 * no option of ours. */
void info_args_parse(int argc, char **argv, struct info_args *args);

/* What a program ends with that has printed. */
int info_args_end(int status);

#endif
