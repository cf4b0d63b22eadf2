/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#define _GNU_SOURCE
#include "hook_config.h"
#include "hook_real.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Finds UCX_<name>= at the beginning of a line, or behind a prefix of the
 * configuration: PREFIX_UCX_<name>= */
char *hook_config_value(const char *text, const char *name)
{
    const char *at = text;
    char begin[64];

    snprintf(begin, sizeof(begin), "UCX_%s=", name);
    while ((at = strstr(at, begin)) != NULL) {
        if ((at == text) || (at[-1] == '\n') || (at[-1] == '_')) {
            at += strlen(begin);
            return strndup(at, strcspn(at, "\n"));
        }
        ++at;
    }

    return NULL;
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
