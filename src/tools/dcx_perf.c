/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx_perf: measures the cost of strided data over dcx, for each method of
 * transfer. One process (near) measures; the other (far) executes its calls.
 * See dcx_perf(1).
 */
#include "perf_args.h"
#include "perf_boot.h"
#include "perf_call.h"
#include "perf_run.h"
#include "perf_say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message that both processes exchange first */
struct perf_hello {
    char version[16];
    struct perf_address address;
};

static void perf_meet(struct perf_boot *boot, const struct perf_args *args)
{
    if ((args->host == NULL) && (args->port == NULL) &&
        (getenv("PMIX_NAMESPACE") != NULL)) {
        perf_boot_pmix_open(boot);
    } else {
        perf_boot_tcp_open(boot, args->host,
                           (args->port == NULL) ? PERF_PORT : args->port);
    }
}

static void perf_connect(struct perf_uct *uct, const struct perf_boot *boot)
{
    struct perf_hello mine = {.version = DCX_VERSION}, theirs;

    perf_uct_address(uct, &mine.address);
    boot->swap(&mine, &theirs, sizeof(mine));
    if (memcmp(mine.version, theirs.version, sizeof(mine.version))) {
        perf_fail(
            "the other process is dcx_perf %.16s, this one is " DCX_VERSION,
            theirs.version);
    }
    perf_uct_connect(uct, &theirs.address);
}

/* The thread whose processor time contains the work of the device. softhca uses
 * the thread that posts, or one of its own (docs/softhca.md); a NIC uses
 * none. */
enum perf_where { PERF_NIC, PERF_SOFT_SAME_THREAD, PERF_SOFT_OWN_THREAD };

static enum perf_where perf_where(void)
{
    const char *preload = getenv("LD_PRELOAD");
    const char *delay   = getenv("SOFTHCA_DELAY");

    if ((preload == NULL) || (strstr(preload, "libsofthca") == NULL)) {
        return PERF_NIC;
    }
    return ((delay == NULL) || (atoi(delay) == 0)) ? PERF_SOFT_SAME_THREAD :
                                                     PERF_SOFT_OWN_THREAD;
}

static void perf_print_head(const struct perf_uct *uct,
                            const struct perf_args *args, enum perf_where where)
{
    printf("# dcx_perf " DCX_VERSION ", %s%s\n", uct->device,
           (where == PERF_NIC) ? "" : " of softhca, the software device");
    if (where != PERF_NIC) {
        puts("# It copies strided data with this processor, block by block: "
             "times of umr, iov and block\n# are its own, not a NIC's; short "
             "blocks may take longer than packing does.");
    }
    if (args->plan.is_all && (where == PERF_SOFT_SAME_THREAD)) {
        puts("# It works in the thread that posts, so processor times include "
             "its work;\n# with SOFTHCA_DELAY=1 it has a thread of its own.");
    }
    printf("# Times are medians of up to %u repetitions; transfers in flight: "
           "%u\n",
           args->plan.iters, args->plan.window);
}

static void perf_measure_all(struct perf_uct *uct, const struct perf_args *args)
{
    enum perf_where where = perf_where();
    struct perf_report report;

    perf_report_open(&report, &args->plan, args->csv,
                     where == PERF_SOFT_OWN_THREAD);
    perf_print_head(uct, args, where);
    perf_run(uct, &args->plan, &report);
    perf_report_close(&report);
}

int main(int argc, char **argv)
{
    struct perf_args args;
    struct perf_boot boot;
    struct perf_uct uct;

    perf_args_parse(&args, argc, argv);
    perf_meet(&boot, &args);
    perf_uct_open(&uct, &boot, args.device);
    perf_connect(&uct, &boot);
    if (boot.measures) {
        perf_measure_all(&uct, &args);
    } else {
        perf_serve(&uct);
    }
    perf_uct_close(&uct);
    boot.close();
    return PERF_GOOD;
}
