/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Parses the options of dcx_info; see info_args.h.
 */
#include "info_args.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void info_args_usage(FILE *out)
{
    fputs(
        "Usage: dcx_info [--json] [DEVICE]\n"
        "       dcx_info --why [--json] [NAME=VALUE...]\n"
        "       dcx_info --versions [--json]\n"
        "       dcx_info --features [DEVICE]\n"
        "       dcx_info --live PID\n"
        "       dcx_info --help | --version\n"
        "\n"
        "Shows, for each RDMA device and port, what the dcx transport needs "
        "of it and what\n"
        "it found, with the variable that governs it. Lines with a '!' say "
        "why dcx cannot\n"
        "use a device or port, or which version is not what dcx needs.\n"
        "\n"
        "  --why     say why UCX does not use dcx, and how to fix that; the "
        "arguments\n"
        "            are variables to set for it\n"
        "  --versions\n"
        "            show the versions of what dcx works with, and no device\n"
        "  --features\n"
        "            show which features of mlx5 devices dcx uses, and why not "
        "others\n"
        "  --live PID\n"
        "            show the figures of a process that runs with "
        "UCX_DCX_REPORT=y\n"
        "  --json    the same as JSON\n"
        "  -h, --help\n"
        "            print this text and exit\n"
        "  --version print the version and exit\n",
        out);
}

static bool info_args_take(int option, struct info_args *args)
{
    switch (option) {
    case 'j':
        return args->json = true;
    case 'w':
        return args->why = true;
    case 's':
        return args->versions = true;
    case 'f':
        return args->features = true;
    case 'l':
        args->live = optarg;
        return true;
    case 'h':
        info_args_usage(stdout);
        exit(INFO_GOOD);
    case 'v':
        puts("dcx_info (dcx) " DCX_VERSION ", for UCX " DCX_UCX_VERSION);
        exit(INFO_GOOD);
    default:
        return false;
    }
}

void info_args_parse(int argc, char **argv, struct info_args *args)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"why", no_argument, NULL, 'w'},
        {"versions", no_argument, NULL, 's'},
        {"features", no_argument, NULL, 'f'},
        {"live", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (!info_args_take(option, args)) {
            info_args_usage(stderr);
            exit(INFO_USAGE);
        }
    }
}

int info_args_end(int status)
{
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        perror("dcx_info: cannot write");
        return INFO_USAGE;
    }
    return status;
}
