/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx_info-look: prints the report of the devices, or the reason why UCX does
 * not use dcx, by the transport's own code. dcx_info executes it if UCX is of
 * the version that dcx was built for.
 */
#include "info_args.h"
#include "info_device.h"
#include "info_features.h"
#include "info_live.h"
#include "info_log.h"
#include "info_versions.h"
#include "info_why.h"

#include <unistd.h>

static int info_show(struct info_report *report, bool json)
{
    info_versions_report(&report->versions);
    if (report->error[0] != '\0') {
        fprintf(stderr, "dcx_info: %s; showing the default\n", report->error);
    }
    if (report->unknown[0] != '\0') {
        fprintf(stderr, "dcx_info: %s\n", report->unknown);
    }
    if (json) {
        info_versions_print_json(&report->versions, stdout);
        fputs(",\n\"site\": ", stdout);
        info_rows_print_json(&report->site, stdout);
        fputs(",\n\"devices\":\n", stdout);
        info_report_print_json(report, stdout);
        fputs("}\n", stdout);
    } else {
        info_report_print(report, stdout);
    }
    return (info_report_usable(report) && (report->error[0] == '\0')) ?
               INFO_GOOD :
               INFO_BAD;
}

int main(int argc, char **argv)
{
    struct info_args args = {};
    struct info_report report;
    int status = INFO_USAGE;

    info_args_parse(argc, argv, &args);
    if (argc > optind + 1) {
        fputs("dcx_info: one DEVICE only\n", stderr);
        return INFO_USAGE;
    }

    if ((args.features || (args.live != NULL)) && args.json) {
        fprintf(stderr, "dcx_info: --%s has no JSON\n",
                args.features ? "features" : "live");
        return INFO_USAGE;
    }

    if (args.live != NULL) {
        return info_args_end(info_live_print(args.live));
    }

    info_log_keep();
    info_report_init(&report);
    if (info_device_report(&report, argv[optind]) != 0) {
        fprintf(stderr, "dcx_info: there is no RDMA device '%s'\n",
                argv[optind]);
    } else if (args.why) {
        status = info_why_print(&report, args.json, stdout) ? INFO_GOOD :
                                                              INFO_BAD;
    } else if (args.features) {
        info_features_print(&report, stdout);
        status = INFO_GOOD;
    } else {
        status = info_show(&report, args.json);
    }
    info_report_cleanup(&report);
    return info_args_end(status);
}
