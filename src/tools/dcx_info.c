/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx_info: what dcx needs of each RDMA device and port and what it found, or
 * why UCX does not use it. See dcx_info(1).
 */
#include "info_device.h"
#include "info_log.h"
#include "info_why.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct info_args {
    bool        json;
    bool        why;
    const char *device;
};

/* Exit status: 0 all is well, 1 dcx cannot be used, 2 a wrong call */
enum { INFO_GOOD = 0, INFO_BAD = 1, INFO_USAGE = 2 };

static void info_usage(FILE *out)
{
    fputs("Usage: dcx_info [--json] [DEVICE]\n"
          "       dcx_info --why [--json] [NAME=VALUE...]\n"
          "       dcx_info --help | --version\n"
          "\n"
          "Shows, for each RDMA device and port, what the dcx transport needs "
          "of it and what\n"
          "it found, with the variable that governs it. Lines with a '!' say "
          "why dcx cannot\n"
          "use a device or port.\n"
          "\n"
          "  --why     say why UCX does not use dcx, and how to mend that; the "
          "arguments\n"
          "            are variables to set for it\n"
          "  --json    the same as JSON\n"
          "  -h, --help\n"
          "            print this text and exit\n"
          "  --version print the version and exit\n", out);
}

static int info_parse(int argc, char **argv, struct info_args *args)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"why", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0}
    };
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j':
            args->json = true;
            break;
        case 'w':
            args->why = true;
            break;
        case 'h':
            info_usage(stdout);
            exit(INFO_GOOD);
        case 'v':
            puts("dcx_info (dcx) " DCX_VERSION ", for UCX " DCX_UCX_VERSION);
            exit(INFO_GOOD);
        default:
            return -EINVAL;
        }
    }
    return 0;
}

/* Sets the variables and starts anew: UCX and the dynamic linker have read them
 * long before main(). */
static int info_restart(char **argv, int first, const struct info_args *args)
{
    char *again[] = {argv[0], "--why", args->json ? "--json" : NULL, NULL};

    for (char **var = argv + first; *var != NULL; var++) {
        if ((strchr(*var, '=') == NULL) || (putenv(*var) != 0)) {
            fprintf(stderr, "dcx_info: '%s' is not NAME=VALUE\n", *var);
            return INFO_USAGE;
        }
    }
    execv("/proc/self/exe", again);
    perror("dcx_info: cannot start again");
    return INFO_USAGE;
}

static int info_show(const struct info_report *report, bool json)
{
    if (report->error[0] != '\0') {
        fprintf(stderr, "dcx_info: %s; shown as with the default\n",
                report->error);
    }
    if (json) {
        fputs("{\"dcx\": \"" DCX_VERSION "\", \"ucx\": \"" DCX_UCX_VERSION
              "\", \"devices\":\n", stdout);
        info_report_print_json(report, stdout);
        fputs("}\n", stdout);
    } else {
        info_report_print(report, stdout);
    }
    return (info_report_usable(report) && (report->error[0] == '\0')) ?
           INFO_GOOD : INFO_BAD;
}

int main(int argc, char **argv)
{
    struct info_args args = {};
    struct info_report report;
    int status = INFO_USAGE;

    if (info_parse(argc, argv, &args) != 0) {
        info_usage(stderr);
        return INFO_USAGE;
    }
    if (args.why && (optind < argc)) {
        return info_restart(argv, optind, &args);
    }
    if (argc > optind + 1) {
        fputs("dcx_info: one DEVICE only\n", stderr);
        return INFO_USAGE;
    }

    info_log_keep();
    info_report_init(&report);
    if (info_device_report(&report, argv[optind]) != 0) {
        fprintf(stderr, "dcx_info: there is no RDMA device '%s'\n",
                argv[optind]);
    } else if (args.why) {
        status = info_why_print(&report, args.json, stdout) ? INFO_GOOD :
                                                              INFO_BAD;
    } else {
        status = info_show(&report, args.json);
    }
    info_report_cleanup(&report);
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        perror("dcx_info: cannot write");
        return INFO_USAGE;
    }
    return status;
}
