/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx_info: prints what dcx needs of each RDMA device and port, and their
 * properties; or the reason why UCX does not use dcx. See dcx_info(1). This
 * program is not linked with UCX: it prints versions, and reports a UCX that
 * dcx was not built for. For all else it executes dcx_info-look, which contains
 * the transport's own code.
 */
#include "info_args.h"
#include "info_versions.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INFO_LOOK "dcx_info-look"

/* Sets the variables and starts the program again: UCX and the dynamic linker
 * read them before main(). */
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
    perror("dcx_info: failed to execute itself");
    return INFO_USAGE;
}

static int info_versions_show(bool json)
{
    struct info_part part = {};

    info_versions_report(&part);
    if (json) {
        info_versions_print_json(&part, stdout);
        fputs("}\n", stdout);
    } else {
        info_report_print_head(stdout);
        info_part_print(&part, stdout);
    }
    return INFO_GOOD;
}

/* Reports that UCX has another version, or is missing. Returns the exit
 * status. */
static int info_other_ucx(const struct info_args *args,
                          const struct info_verdict *verdict)
{
    if (args->why) {
        info_verdict_print(verdict, NULL, NULL, args->json, stdout);
    } else {
        fprintf(stderr, "dcx_info: %s\nto fix it: %s\n", verdict->reason,
                verdict->fix);
    }
    return INFO_BAD;
}

/* Executes dcx_info-look. In the build tree it is beside this program. When
 * installed, it is in the folder of libraries: below the same prefix, which may
 * have been moved, or the configured one. */
static int info_look(char **argv)
{
    static const char *const places[] = {
        "/" INFO_LOOK, "/../" DCX_LIBSUB "/dcx/" INFO_LOOK, NULL};
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    char *slash;

    path[(length < 0) ? 0 : length] = '\0';
    slash                           = strrchr(path, '/');
    for (unsigned i = 0; (slash != NULL) && (places[i] != NULL); i++) {
        strcpy(slash, places[i]);
        execv(path, argv);
    }
    execv(DCX_LIBDIR "/dcx/" INFO_LOOK, argv);
    perror("dcx_info: " DCX_LIBDIR "/dcx/" INFO_LOOK ": install dcx again");
    return INFO_USAGE;
}

int main(int argc, char **argv)
{
    struct info_args args       = {};
    struct info_verdict verdict = {};

    info_args_parse(argc, argv, &args);
    if (args.why && (argv[optind] != NULL)) {
        return info_restart(argv, optind, &args);
    }
    if (args.versions && (argv[optind] != NULL)) {
        fputs("dcx_info: --versions takes no DEVICE\n", stderr);
        return INFO_USAGE;
    }
    if (args.versions) {
        return info_args_end(info_versions_show(args.json));
    }
    info_versions_ucx(&verdict);
    if (verdict.reason[0] != '\0') {
        return info_args_end(info_other_ucx(&args, &verdict));
    }
    return info_look(argv);
}
