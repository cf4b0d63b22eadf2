/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The rows of the site's options; see info_site.h.
 */
#include "info_site.h"

#include <string.h>

static void info_site_row(struct info_part *part,
                          const ucs_config_field_t *table, const char *option)
{
    uct_dcx_site_source_t source;
    struct info_row *row;

    uct_dcx_site_find(table, option, &source);
    if (!source.is_set || source.is_bad ||
        uct_dcx_site_is_own(source.variable)) {
        return;
    }
    row = info_part_add(part, option, NULL);
    info_row_found(row, "%s", source.value);
    info_row_needs(row, "unless UCX_DCX_%s is set", option);
    snprintf(row->source, sizeof(row->source), "%s", source.variable);
    row->variable = row->source;
}

/* Appends the rows of @fields, which are those of @table, or of a table in it.
 * @has_prefix: a site's variables set them */
static void info_site_walk(struct info_part *part,
                           const ucs_config_field_t *table,
                           const ucs_config_field_t *fields, bool has_prefix)
{
    const ucs_config_field_t *field;

    for (field = fields; field->name != NULL; field++) {
        if (field->parser.read == ucs_config_sscanf_table) {
            info_site_walk(part, table, field->parser.arg,
                           has_prefix || (field->name[0] != '\0'));
        } else if (has_prefix) {
            info_site_row(part, table, field->name);
        }
    }
}

void info_site_report(struct info_part *part, const ucs_config_field_t *table)
{
    snprintf(part->name, sizeof(part->name), "options of the site");
    info_site_walk(part, table, table, false);
}
