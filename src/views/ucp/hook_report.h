/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Counts messages that are not contiguous, with a view or by the reason why
 * they have none. With UCX_DCX_TYPES_REPORT=y, prints the numbers to stderr at
 * the end of the process. Any thread may call it.
 */
#ifndef HOOK_REPORT_H
#define HOOK_REPORT_H

#include "views/view/dcx_view_ops.h"

#include <stdatomic.h>


typedef enum hook_kind {
    HOOK_SENT,
    HOOK_RECEIVED,
    HOOK_SHORT, /* from here on: reasons why there is no view */
    HOOK_BLOCKS,
    HOOK_SPARSE,
    HOOK_ONE_BLOCK,
    HOOK_LAYOUT,
    HOOK_LANE,
    HOOK_PEERS,
    HOOK_PAUSE,
    HOOK_IMMEDIATE,
    HOOK_STATUS, /* plus the status that uct_dcx_view_ops_t.open() returned */
    HOOK_KIND_LAST = HOOK_STATUS + UCT_DCX_VIEW_LAST
} hook_kind_t;


/* Counts a message, if the report is enabled. */
void hook_report_add(hook_kind_t kind, size_t bytes);

/* Sets the reason why a context or a worker has no views: a string constant.
 * Only the last one is printed. */
void hook_report_off(const char *reason);

extern atomic_int hook_report_enabled __attribute__((visibility("hidden")));

/* Enables the report. Nothing is counted before. */
void hook_report_enable(void);

static inline int hook_report_is_enabled(void)
{
    return atomic_load_explicit(&hook_report_enabled, memory_order_relaxed);
}

#endif
