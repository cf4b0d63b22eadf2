/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_tls.h"

#include "views/view/dcx_view_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hook_tls_is_except(const char *tls)
{
    return *tls == '^';
}

/* Returns 1 if an entry is in @names, which begins and ends with a comma.
 * Ignores a \ before it (no aliases) and a suffix (:aux). */
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

/* Counts the entries of a list, and those that are in @names. */
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

int hook_tls_is_dcx_only(const char *tls)
{
    unsigned num, num_in;

    hook_tls_count(tls, ",dcx," UCT_DCX_VIEW_TL ",self,", &num, &num_in);
    return !hook_tls_is_except(tls) && (num_in == num);
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
