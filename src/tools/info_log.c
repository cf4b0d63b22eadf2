/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A handler of UCX's log that keeps an error for the report; see info_log.h.
 */
#include "info_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucs/config/global_opts.h>
#include <ucs/config/types.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#define INFO_LOG_MAX 256

static char info_log_text[INFO_LOG_MAX];
static ucs_log_level_t info_log_level; /* of the kept message */

/* Keeps the first message of the most severe level: the function that finds an
 * error logs it first. */
static ucs_log_func_rc_t
info_log_handle(const char *file, unsigned line, const char *function,
                ucs_log_level_t level, const ucs_log_component_config_t *config,
                const char *format, va_list ap)
{
    (void)file;
    (void)line;
    (void)function;
    (void)config;
    if (level > UCS_LOG_LEVEL_DIAG) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    if ((info_log_text[0] == '\0') || (level < info_log_level)) {
        vsnprintf(info_log_text, sizeof(info_log_text), format, ap);
        info_log_level = level;
    }
    return UCS_LOG_FUNC_RC_STOP;
}

void info_log_keep(void)
{
    ucs_log_component_config_t *config = &ucs_global_opts.log_component;

    ucs_log_push_handler(info_log_handle);
    config->log_level = ucs_max(config->log_level, UCS_LOG_LEVEL_DIAG);
}

const char *info_log_take(void)
{
    static char taken[INFO_LOG_MAX];

    memcpy(taken, info_log_text, sizeof(taken));
    info_log_text[0] = '\0';
    return taken;
}
