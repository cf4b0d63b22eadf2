/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What dcx_info found, as parts (a device, or a port of one) of rows, and how
 * it is printed. One thread.
 */
#ifndef DCX_INFO_REPORT_H
#define DCX_INFO_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#define INFO_TEXT_MAX 256
#define INFO_ROWS_MAX 40

/* One thing that dcx needs or could use. Texts may be empty. */
struct info_row {
    const char *what;
    const char *variable; /* that governs it, or NULL */
    bool        is_bad;   /* dcx cannot work with what was found */
    char        source[64]; /* where the variable's name may be kept */
    char        found[INFO_TEXT_MAX];
    char        needs[INFO_TEXT_MAX];
};

struct info_part {
    char              name[64];
    bool              is_port;
    char              why[INFO_TEXT_MAX]; /* dcx cannot use it; or "" */
    char              mend[INFO_TEXT_MAX]; /* the command that does, or "" */
    unsigned          num_rows;
    struct info_row   rows[INFO_ROWS_MAX];
    struct info_part *next;
};

struct info_report {
    char               error[INFO_TEXT_MAX]; /* a wrong option; or "" */
    char               unknown[INFO_TEXT_MAX]; /* variable, no option; or "" */
    char               soft_error[INFO_TEXT_MAX]; /* softhca's; or "" */
    struct info_part   versions; /* of what dcx works with; may be empty */
    struct info_part   site; /* options from UCX's own variables; may be empty */
    struct info_part  *first;
    struct info_part **end;
};

void info_report_init(struct info_report *report);
void info_report_cleanup(struct info_report *report);

/* Appends a part; a port belongs to the last part before it that is not one. */
struct info_part *info_report_add(struct info_report *report, bool is_port,
                                  const char *name);

/* Appends a row and says what was found. */
struct info_row *
info_part_add(struct info_part *part, const char *what, const char *variable);

void info_row_found(struct info_row *row, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void info_row_needs(struct info_row *row, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Marks the row as what keeps dcx from the part. The first reason stands.
 * @return whether this is it. */
bool info_row_bad(struct info_part *part, struct info_row *row,
                  const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Names the command that mends the reason. */
void info_part_mend(struct info_part *part, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static inline bool info_part_usable(const struct info_part *part)
{
    return part->why[0] == '\0';
}

/* Whether dcx can use any port. */
bool info_report_usable(const struct info_report *report);

/* The names of the columns; a part without its ports. */
void info_report_print_head(FILE *out);
void info_part_print(const struct info_part *part, FILE *out);

/* The rows of a part, as an array. */
void info_rows_print_json(const struct info_part *part, FILE *out);

void info_report_print(const struct info_report *report, FILE *out);
void info_report_print_json(const struct info_report *report, FILE *out);

/* A member of an object; NULL and "" are null. */
void info_json_member(FILE *out, const char *name, const char *text,
                      bool is_last);

#endif
