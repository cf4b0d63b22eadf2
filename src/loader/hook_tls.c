/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_tls.h"
#include "hook_real.h"

#include "uct/dcx/view/dcx_view_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_TLS_NAME "UCX_TLS="

/* The value behind UCX_TLS= at the beginning of a line, or behind the prefix of
 * a configuration's own: PREFIX_UCX_TLS= */
static char *hook_tls_in_text(const char *text)
{
    const char *at = text;

    while ((at = strstr(at, HOOK_TLS_NAME)) != NULL) {
        if ((at == text) || (at[-1] == '\n') || (at[-1] == '_')) {
            at += strlen(HOOK_TLS_NAME);
            return strndup(at, strcspn(at, "\n"));
        }
        ++at;
    }

    return NULL;
}

char *hook_tls_read(const ucp_config_t *config)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);
    char *tls   = NULL;

    if (file == NULL) {
        return NULL;
    }

    hook_real.ucp_config_print(config, file, NULL, UCS_CONFIG_PRINT_CONFIG);
    if (!fclose(file)) {
        tls = hook_tls_in_text(text);
    }
    free(text);
    return tls;
}

static int hook_tls_is_except(const char *tls)
{
    return *tls == '^';
}

/* One entry without what may stand before it (\: no aliases) and behind it
 * (:aux): whether it is in names, which begins and ends with a comma */
static int hook_tls_is_in(const char *entry, size_t length, const char *names)
{
    char name[64];

    if ((length > 0) && (*entry == '\\')) {
        ++entry;
        --length;
    }

    if (memchr(entry, ':', length) != NULL) {
        length = (const char *)memchr(entry, ':', length) - entry;
    }

    if (length >= sizeof(name) - 2) {
        return 0;
    }

    snprintf(name, sizeof(name), ",%.*s,", (int)length, entry);
    return strstr(names, name) != NULL;
}

/* How many entries of a list there are, and are in names */
static void hook_tls_count(const char *tls, const char *names, unsigned *num_p,
                           unsigned *num_in_p)
{
    size_t length;

    *num_p = *num_in_p = 0;
    for (; *tls != '\0'; tls += length + (tls[length] == ',')) {
        length = strcspn(tls, ",");
        *num_p += 1;
        *num_in_p += hook_tls_is_in(tls, length, names);
    }
}

int hook_tls_has_dcx(const char *tls)
{
    unsigned num, num_in;

    if (hook_tls_is_except(tls)) {
        hook_tls_count(tls + 1, ",dcx,", &num, &num_in);
        return num_in == 0;
    }

    hook_tls_count(tls, ",all,dcx,", &num, &num_in);
    return num_in > 0;
}

char *hook_tls_with_views(const char *tls)
{
    unsigned num, num_in;
    char *added;

    hook_tls_count(tls, ",all," UCT_DCX_VIEW_TL ",", &num, &num_in);
    if (hook_tls_is_except(tls) || (num_in > 0)) {
        return NULL;
    }

    return (asprintf(&added, "%s," UCT_DCX_VIEW_TL, tls) < 0) ? NULL : added;
}
