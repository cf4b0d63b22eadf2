/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Traces; see dcx_trace.h.
 */
#include "dcx_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log.h>


int uct_dcx_trace_is_on(void)
{
    return ucs_global_opts.log_component.log_level >= UCS_LOG_LEVEL_TRACE;
}


void uct_dcx_trace(const char *format, ...)
{
    char text[256];
    va_list args;

    if (!uct_dcx_trace_is_on()) {
        return;
    }

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ucs_debug("%s", text);
}
