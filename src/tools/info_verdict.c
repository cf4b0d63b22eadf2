/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A verdict as text and as JSON; see info_verdict.h.
 */
#include "info_verdict.h"

#include <stdarg.h>
#include <string.h>

void info_blame(struct info_verdict *verdict, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(verdict->reason, sizeof(verdict->reason), format, ap);
    va_end(ap);
}

void info_mend(struct info_verdict *verdict, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(verdict->mend, sizeof(verdict->mend), format, ap);
    va_end(ap);
}

static void info_verdict_json(const struct info_verdict *verdict,
                              const char *lane, const char *sockaddr, FILE *out)
{
    fprintf(out, "{\"uses_dcx\": %s, ",
            (verdict->reason[0] == '\0') ? "true" : "false");
    info_json_member(out, "lane", lane, false);
    info_json_member(out, "sockaddr", sockaddr, false);
    info_json_member(out, "reason", verdict->reason, false);
    info_json_member(out, "fix", verdict->mend, true);
    fputs("}\n", out);
}

void info_verdict_print(const struct info_verdict *verdict, const char *lane,
                        const char *sockaddr, bool json, FILE *out)
{
    if (json) {
        info_verdict_json(verdict, lane, sockaddr, out);
    } else if (verdict->reason[0] != '\0') {
        fprintf(out, "UCX does not use dcx: %s\nto fix it: %s\n",
                verdict->reason, verdict->mend);
    } else {
        fprintf(out, "UCX uses %s\n", lane);
        if (sockaddr != NULL) {
            fprintf(out, "programs that connect by socket address, as "
                    "ucp_client_server, want %s: there is no rdma_cm\n",
                    sockaddr);
        }
    }
}

void info_mend_variable(struct info_verdict *verdict, const char *text)
{
    const char *name = strstr(text, "UCX_");

    if (name == NULL) {
        info_mend(verdict, "UCX_LOG_LEVEL=debug ucx_info -d");
    } else {
        info_mend(verdict, "unset %.*s",
                  (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), name);
    }
}
