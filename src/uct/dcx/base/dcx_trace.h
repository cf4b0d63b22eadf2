/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Traces of what happens once in a while: changes of states. UCX is mostly
 * built without its own level "trace" (UCS_MAX_LOG_LEVEL), so that these lines
 * are logged as "debug", but only with UCX_LOG_LEVEL=trace.
 */
#ifndef UCT_DCX_TRACE_H
#define UCT_DCX_TRACE_H

/* Whether the user wants them. */
int uct_dcx_trace_is_on(void);

void uct_dcx_trace(const char *format, ...)
        __attribute__((format(printf, 1, 2)));

#endif
