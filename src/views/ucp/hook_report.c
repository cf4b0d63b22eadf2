/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_report.h"
#include "common/launch_rank.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const hook_report_text[HOOK_KIND_LAST] = {
    [HOOK_SENT]     = "sent zero-copy",
    [HOOK_RECEIVED] = "received zero-copy",
    [HOOK_SHORT]    = "packed: shorter than UCX_DCX_TYPES_MIN_LENGTH, or "
                      "copied inline by UCP",
    [HOOK_BLOCKS]   = "packed: blocks shorter than UCX_DCX_TYPES_MIN_BLOCK",
    [HOOK_SPARSE] =
        "packed: blocks shorter than UCX_DCX_TYPES_MIN_SPARSE_BLOCK",
    [HOOK_ONE_BLOCK] = "packed: a single block",
    [HOOK_LAYOUT]    = "packed: the layout of the datatype is not known",
    [HOOK_LANE]      = "packed: the endpoint does not use dcx for RDMA",
    [HOOK_PEERS]     = "packed: UCP receives in fragments, because of a GPU or "
                       "UCX_RNDV_FRAG_MEM_TYPE; UCX_TLS=dcx,self avoids this",
    [HOOK_PAUSE]     = "packed: short messages came to recent receives of this "
                       "datatype",
    [HOOK_IMMEDIATE] = "packed: an operation that has to complete at once",
    [HOOK_STATUS + UCT_DCX_VIEW_BUSY] =
        "packed: all layouts (UCX_DCX_TYPES_MAX) or mkeys "
        "(UCX_DCX_UMR_LAYOUTS) were in use",
    [HOOK_STATUS + UCT_DCX_VIEW_TOO_LONG] = "packed: longer than 64 GiB",
    [HOOK_STATUS + UCT_DCX_VIEW_TOO_MANY] =
        "packed: too many blocks for an mkey (UCX_DCX_UMR_MAX_ENTRIES)",
    [HOOK_STATUS + UCT_DCX_VIEW_UNMAPPED] =
        "packed: the memory is too scattered (UCX_DCX_TYPES_MAX_SPAN), or "
        "cannot be registered",
    [HOOK_STATUS + UCT_DCX_VIEW_UNSUPPORTED] =
        "packed: the device has no indirect mkeys (UMR, DEVX), the process "
        "uses more than 16 devices, or the memory is on a GPU",
    [HOOK_STATUS + UCT_DCX_VIEW_FAILED] =
        "packed: the device or UCP failed (see the log), or no memory"};

static struct {
    atomic_ullong num;
    atomic_ullong bytes;
} hook_report_count[HOOK_KIND_LAST];

static const char *_Atomic hook_report_reason;

atomic_int hook_report_enabled;

void hook_report_add(hook_kind_t kind, size_t bytes)
{
    if (!hook_report_is_enabled()) {
        return;
    }

    atomic_fetch_add_explicit(&hook_report_count[kind].num, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&hook_report_count[kind].bytes, bytes,
                              memory_order_relaxed);
}

void hook_report_off(const char *reason)
{
    hook_report_reason = reason;
}

void hook_report_enable(void)
{
    hook_report_enabled = 1;
}

static void __attribute__((destructor)) hook_report_print(void)
{
    const char *rank = launch_rank();
    char begin[64]   = "dcx types:";
    unsigned long long num;
    unsigned i;

    if (!hook_report_is_enabled()) {
        return;
    }

    if (rank != NULL) {
        snprintf(begin, sizeof(begin), "dcx types: rank %s:", rank);
    }
    if (hook_report_reason != NULL) {
        fprintf(stderr, "%s off: %s\n", begin, hook_report_reason);
    }

    for (i = 0; i < HOOK_KIND_LAST; ++i) {
        num = hook_report_count[i].num;
        if ((num > 0) || (i <= HOOK_RECEIVED)) {
            fprintf(stderr, "%s %llu messages, %llu bytes: %s\n", begin, num,
                    (unsigned long long)hook_report_count[i].bytes,
                    hook_report_text[i]);
        }
    }
}
