/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The report of dcx_info, as a table and as JSON; see info_report.h.
 */
#include "info_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void info_report_init(struct info_report *report)
{
    memset(report, 0, sizeof(*report));
    report->end = &report->first;
}

void info_report_cleanup(struct info_report *report)
{
    struct info_part *part, *next;

    for (part = report->first; part != NULL; part = next) {
        next = part->next;
        free(part);
    }
}

static void *info_alloc(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL) {
        fputs("dcx_info: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

struct info_part *info_report_add(struct info_report *report, bool is_port,
                                  const char *name)
{
    struct info_part *part = info_alloc(sizeof(*part));

    snprintf(part->name, sizeof(part->name), "%s", name);
    part->is_port = is_port;
    *report->end  = part;
    report->end   = &part->next;
    return part;
}

struct info_row *info_part_add(struct info_part *part, const char *what,
                               const char *variable)
{
    struct info_row *row;

    if (part->num_rows == INFO_ROWS_MAX) {
        fprintf(stderr, "dcx_info: no room for the row '%s'\n", what);
        abort();
    }
    row           = &part->rows[part->num_rows++];
    row->what     = what;
    row->variable = variable;
    return row;
}

void info_row_found(struct info_row *row, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(row->found, sizeof(row->found), format, ap);
    va_end(ap);
}

void info_row_needs(struct info_row *row, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(row->needs, sizeof(row->needs), format, ap);
    va_end(ap);
}

bool info_row_bad(struct info_part *part, struct info_row *row,
                  const char *format, ...)
{
    va_list ap;

    row->is_bad = true;
    if (!info_part_usable(part)) {
        return false;
    }
    va_start(ap, format);
    vsnprintf(part->why, sizeof(part->why), format, ap);
    va_end(ap);
    return true;
}

void info_part_fix(struct info_part *part, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(part->fix, sizeof(part->fix), format, ap);
    va_end(ap);
}

bool info_report_usable(const struct info_report *report)
{
    const struct info_part *part;

    for (part = report->first; part != NULL; part = part->next) {
        if (part->is_port && info_part_usable(part)) {
            return true;
        }
    }
    return false;
}

/* --- table ---------------------------------------------------------------- */
void info_part_print(const struct info_part *part, FILE *out)
{
    const struct info_row *row;

    fprintf(out, "%s%s%s\n", part->name,
            info_part_usable(part) ? "" : ": dcx cannot use it: ", part->why);
    for (row = part->rows; row < part->rows + part->num_rows; row++) {
        fprintf(out, "%s %-20s %-25s %-30s %s\n", row->is_bad ? "!" : " ",
                row->what, row->found, row->needs,
                (row->variable == NULL) ? "" : row->variable);
    }
}

void info_report_print_head(FILE *out)
{
    fprintf(out, "  %-20s %-25s %-30s %s\n", "", "FOUND", "DCX NEEDS",
            "GOVERNED BY");
}

void info_report_print(const struct info_report *report, FILE *out)
{
    const struct info_part *part;

    info_report_print_head(out);
    info_part_print(&report->versions, out);
    if (report->site.num_rows > 0) {
        info_part_print(&report->site, out);
    }
    if (report->first == NULL) {
        fputs("no RDMA device\n", out);
    }
    for (part = report->first; part != NULL; part = part->next) {
        info_part_print(part, out);
    }
}

/* --- JSON (RFC 8259) ------------------------------------------------------ */
static void info_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if ((*text == '"') || (*text == '\\')) {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(out, "\\u%04x", *text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

void info_json_member(FILE *out, const char *name, const char *text,
                      bool is_last)
{
    fprintf(out, "\"%s\": ", name);
    if ((text == NULL) || (*text == '\0')) {
        fputs("null", out);
    } else {
        info_json_string(out, text);
    }
    fputs(is_last ? "" : ", ", out);
}

static void info_row_print_json(const struct info_row *row, FILE *out)
{
    fputc('{', out);
    info_json_member(out, "what", row->what, false);
    info_json_member(out, "found", row->found, false);
    info_json_member(out, "needs", row->needs, false);
    fprintf(out, "\"ok\": %s, ", row->is_bad ? "false" : "true");
    info_json_member(out, "variable", row->variable, true);
    fputc('}', out);
}

void info_rows_print_json(const struct info_part *part, FILE *out)
{
    fputs("[", out);
    for (unsigned i = 0; i < part->num_rows; i++) {
        fputs((i == 0) ? "\n  " : ",\n  ", out);
        info_row_print_json(&part->rows[i], out);
    }
    fputs("]", out);
}

/* Prints the members that devices and ports share. */
static void info_part_print_json(const struct info_part *part, FILE *out)
{
    fputs("{", out);
    info_json_member(out, "name", part->name, false);
    fprintf(out, "\"usable\": %s, ", info_part_usable(part) ? "true" : "false");
    info_json_member(out, "why", part->why, false);
    fputs("\"rows\": ", out);
    info_rows_print_json(part, out);
}

void info_report_print_json(const struct info_report *report, FILE *out)
{
    const struct info_part *part = report->first, *port;

    fputs("[", out);
    while (part != NULL) {
        info_part_print_json(part, out);
        fputs(",\n \"ports\": [", out);
        for (port = part->next; (port != NULL) && port->is_port;
             port = port->next) {
            fputs((port == part->next) ? "\n " : ",\n ", out);
            info_part_print_json(port, out);
            fputs("}", out);
        }
        part = port;
        fputs((part == NULL) ? "]}" : "]},\n", out);
    }
    fputs("]", out);
}
