/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds misspelled names: the transport in UCX_TLS, and options. See
 * info_near.h.
 */
#include "info_near.h"
#include "info_views.h"
#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/mem/dcx_md.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <ucs/config/parser.h>
#include <ucs/sys/math.h>

#define INFO_PREFIX   "UCX_DCX_"
#define INFO_NAME_MAX 48

extern char **environ;

/* Returns the distance of two names: the number of letters to change, add or
 * remove, and of neighbours to swap (optimal string alignment). Only the first
 * INFO_NAME_MAX letters count. */
static unsigned info_distance(const char *a, size_t a_length, const char *b,
                              size_t b_length)
{
    unsigned cost[INFO_NAME_MAX + 1][INFO_NAME_MAX + 1];
    const size_t rows    = ucs_min(a_length, INFO_NAME_MAX);
    const size_t columns = ucs_min(b_length, INFO_NAME_MAX);

    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            bool same = (i > 0) && (j > 0) && (a[i - 1] == b[j - 1]);

            if ((i == 0) || (j == 0)) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] = ucs_min(ucs_min(cost[i - 1][j], cost[i][j - 1]) + 1,
                                 cost[i - 1][j - 1] + !same);
            if ((i > 1) && (j > 1) && (a[i - 1] == b[j - 2]) &&
                (a[i - 2] == b[j - 1])) {
                cost[i][j] = ucs_min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[rows][columns];
}

/* Returns true if @entry is "dcx" with one mistake. "dc" is another
 * transport. */
static bool info_is_near_dcx(const char *entry, size_t length)
{
    char name[sizeof("dcx") + 1];

    if ((length < 2) || (length >= sizeof(name)) ||
        ((length == 2) && !strncmp(entry, "dc", 2))) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        name[i] = tolower((unsigned char)entry[i]);
    }
    return info_distance(name, length, "dcx", 3) <= 1;
}

const char *info_near_dcx(const char *list, size_t *length)
{
    for (;;) {
        *length = strcspn(list, ",");
        if (info_is_near_dcx(list, *length)) {
            return list;
        }
        if (list[*length] == '\0') {
            return NULL;
        }
        list += *length + 1;
    }
}

/* --- options -------------------------------------------------------------- */
struct info_nearest {
    const char *name;
    size_t length;
    unsigned distance;
    char option[64];
};

/* Searches @fields and the tables in it. */
static void info_nearest_walk(struct info_nearest *nearest,
                              const ucs_config_field_t *fields)
{
    unsigned distance;

    for (const ucs_config_field_t *field = fields; field->name != NULL;
         field++) {
        if (field->parser.read == ucs_config_sscanf_table) {
            info_nearest_walk(nearest, field->parser.arg);
            continue;
        }
        distance = info_distance(nearest->name, nearest->length, field->name,
                                 strlen(field->name));
        if (distance < nearest->distance) {
            nearest->distance = distance;
            snprintf(nearest->option, sizeof(nearest->option), "%s",
                     field->name);
        }
    }
}

/* Finds the nearest option. @variable: "UCX_DCX_NAME=VALUE", or one of the
 * transport dcx_view */
static void info_nearest_find(struct info_nearest *nearest,
                              const char *variable)
{
    const char *name = variable + strlen(INFO_PREFIX);

    name += strncmp(name, "VIEW_", 5) ? 0 : 5;
    nearest->name     = name;
    nearest->length   = strcspn(name, "=");
    nearest->distance = ucs_max(nearest->length / 3, 1) + 1;
    info_nearest_walk(nearest, uct_dcx_iface_config_table);
    info_nearest_walk(nearest, uct_dcx_component.md_config.table);
    if (info_views_table != NULL) {
        info_nearest_walk(nearest, info_views_table);
    }
}

void info_near_option(char *text, size_t max)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        struct info_nearest nearest = {};
        int length                  = strcspn(*variable, "=");

        if (strncmp(*variable, INFO_PREFIX, strlen(INFO_PREFIX)) != 0) {
            continue;
        }
        info_nearest_find(&nearest, *variable);
        if (nearest.distance == 0) {
            continue;
        }
        if (nearest.option[0] == '\0') {
            snprintf(text, max,
                     "%.*s is not an option: 'dcx-run ucx_info -cf' lists all",
                     length, *variable);
        } else {
            snprintf(text, max,
                     "%.*s is not an option: is " INFO_PREFIX "%s meant?",
                     length, *variable, nearest.option);
        }
        return;
    }
}
