/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_config.h"
#include "hook_real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of UCX_<name>= at the beginning of a line, or behind a
 * prefix of the configuration: PREFIX_UCX_<name>=; or NULL */
static const char *hook_config_find(const char *text, const char *name)
{
    const char *at = text;
    char begin[64];

    snprintf(begin, sizeof(begin), "UCX_%s=", name);
    while ((at = strstr(at, begin)) != NULL) {
        if ((at == text) || (at[-1] == '\n') || (at[-1] == '_')) {
            return at + strlen(begin);
        }
        ++at;
    }

    return NULL;
}

char *hook_config_value(const char *text, const char *name)
{
    const char *value = hook_config_find(text, name);

    return (value == NULL) ? NULL : strndup(value, strcspn(value, "\n"));
}

int hook_config_is_in_environment(const char *text, const char *name)
{
    const char *value = hook_config_find(text, name);
    const char *begin = value;
    char variable[64];

    if (value == NULL) {
        return 0;
    }

    while ((begin > text) && (begin[-1] != '\n')) {
        --begin;
    }
    snprintf(variable, sizeof(variable), "%.*s", (int)(value - begin - 1),
             begin);
    if (getenv(variable) != NULL) {
        return 1;
    }
    snprintf(variable, sizeof(variable), "UCX_%s", name);
    return getenv(variable) != NULL;
}

char *hook_config_read(const ucp_config_t *config)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }

    hook_real.ucp_config_print(config, file, NULL, UCS_CONFIG_PRINT_CONFIG);
    if (fclose(file)) {
        free(text);
        return NULL;
    }

    return text;
}

int hook_config_is(const char *text, const char *name, const char *value)
{
    char *found = hook_config_value(text, name);
    int is_same = (found != NULL) && !strcmp(found, value);

    free(found);
    return is_same;
}
