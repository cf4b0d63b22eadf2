/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Traces of rare events: changes of states. UCX is mostly built without its own
 * level "trace" (UCS_MAX_LOG_LEVEL), so these lines are logged as "debug", but
 * only with UCX_LOG_LEVEL=trace.
 */
#ifndef UCT_DCX_TRACE_H
#define UCT_DCX_TRACE_H

#include <ucs/config/global_opts.h>
#include <ucs/debug/log.h>


/* Returns non-zero if traces are enabled. */
static inline int uct_dcx_trace_is_on(void)
{
    return ucs_unlikely(ucs_global_opts.log_component.log_level >=
                        UCS_LOG_LEVEL_TRACE);
}

/* A macro like UCX's own log macros: the line shows the place that calls it. */
#define uct_dcx_trace(_fmt, ...) \
    do { \
        if (uct_dcx_trace_is_on()) { \
            ucs_debug(_fmt, ##__VA_ARGS__); \
        } \
    } while (0)

#endif
