/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Prints a verdict as text or as JSON, and finds the advice for limits; see
 * info_verdict.h.
 */
#include "info_verdict.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void info_blame(struct info_verdict *verdict, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(verdict->reason, sizeof(verdict->reason), format, ap);
    va_end(ap);
}

void info_fix(struct info_verdict *verdict, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(verdict->fix, sizeof(verdict->fix), format, ap);
    va_end(ap);
}

static void info_verdict_json(const struct info_verdict *verdict,
                              const char *lane, const char *sockaddr, FILE *out)
{
    fprintf(out, "{\"uses_dcx\": %s, ",
            (verdict->reason[0] == '\0') ? "true" : "false");
    info_json_member(out, "lane", lane, false);
    info_json_member(out, "sockaddr", sockaddr, false);
    info_json_member(out, "unknown", verdict->unknown, false);
    info_json_member(out, "reason", verdict->reason, false);
    info_json_member(out, "fix", verdict->fix, true);
    fputs("}\n", out);
}

void info_verdict_print(const struct info_verdict *verdict, const char *lane,
                        const char *sockaddr, bool json, FILE *out)
{
    if (json) {
        info_verdict_json(verdict, lane, sockaddr, out);
    } else if (verdict->reason[0] != '\0') {
        fprintf(out, "UCX does not use dcx: %s\nto fix it: %s\n",
                verdict->reason, verdict->fix);
    } else {
        fprintf(out, "UCX uses %s\n", lane);
        if (verdict->unknown[0] != '\0') {
            fprintf(out, "%s\n", verdict->unknown);
        }
        if (sockaddr != NULL) {
            fprintf(out,
                    "programs that connect by socket address, as "
                    "ucp_client_server, want %s: there is no rdma_cm\n",
                    sockaddr);
        }
    }
}

/* --- limits --------------------------------------------------------------- */
struct info_rlimit {
    char letter;      /* of ulimit(1) */
    int resource;     /* of setrlimit(2) */
    const char *conf; /* of limits.conf(5) */
    const char *unit; /* of systemd.exec(5) */
};

static const struct info_rlimit *info_rlimit_find(char letter)
{
    static const struct info_rlimit limits[] = {
        {'l', RLIMIT_MEMLOCK, "memlock", "MEMLOCK"},
        {'n', RLIMIT_NOFILE, "nofile", "NOFILE"},
        {'u', RLIMIT_NPROC, "nproc", "NPROC"},
        {'v', RLIMIT_AS, "as", "AS"},
    };
    const struct info_rlimit *limit = limits;

    while (limit->letter != letter) {
        limit++;
    }
    return limit;
}

/* Returns true if the process may raise the hard limit. Raises and restores
 * it. */
static bool info_rlimit_is_free(int resource, const struct rlimit *limit)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

    return (setrlimit(resource, &none) == 0) &&
           (setrlimit(resource, limit) == 0);
}

void info_advise_limit(char letter, rlim_t needs, char *text)
{
    const struct info_rlimit *limit = info_rlimit_find(letter);
    struct rlimit now;

    getrlimit(limit->resource, &now);
    if ((now.rlim_max == RLIM_INFINITY) ||
        info_rlimit_is_free(limit->resource, &now)) {
        snprintf(text, INFO_TEXT_MAX, "ulimit -%c unlimited", letter);
    } else if ((now.rlim_max > now.rlim_cur) && (now.rlim_max >= needs)) {
        snprintf(text, INFO_TEXT_MAX, "ulimit -%c $(ulimit -H%c)", letter,
                 letter);
    } else if (getenv("SLURM_JOB_ID") != NULL) {
        snprintf(text, INFO_TEXT_MAX,
                 "ask the administrator for "
                 "Limit%s=infinity in slurmd.service and "
                 "PropagateResourceLimitsExcept=%s in slurm.conf",
                 limit->unit, limit->unit);
    } else {
        snprintf(text, INFO_TEXT_MAX,
                 "ask the administrator for '* - %s "
                 "unlimited' in /etc/security/limits.conf (for a service: "
                 "Limit%s=infinity in its unit), then log in again",
                 limit->conf, limit->unit);
    }
}

void info_fix_variable(struct info_verdict *verdict, const char *text)
{
    const char *name = strstr(text, "UCX_");

    if (name == NULL) {
        info_fix(verdict, "UCX_LOG_LEVEL=debug ucx_info -d");
    } else {
        info_fix(verdict, "unset %.*s",
                 (int)strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
                 name);
    }
}
