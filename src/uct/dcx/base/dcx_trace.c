/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Traces; see dcx_trace.h.
 */
#include "dcx_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <ucs/debug/log.h>


void uct_dcx_trace(const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ucs_debug("%s", text);
}
