/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The report of dcx_info: parts (a device, or one of its ports) with rows.
 * Builds and prints it. One thread.
 */
#ifndef DCX_INFO_REPORT_H
#define DCX_INFO_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#define INFO_TEXT_MAX 256
#define INFO_ROWS_MAX 48

/* A property that dcx needs or could use. Texts may be empty. @what and
 * @variable are not copied. */
struct info_row {
    const char *what;
    const char *variable; /* option or command that sets it; or NULL */
    bool is_bad;          /* dcx cannot work with the value found */
    char source[64];      /* @variable's text if it is no constant */
    char found[INFO_TEXT_MAX];
    char needs[INFO_TEXT_MAX];
};

struct info_part {
    char name[64];
    bool is_port;
    char why[INFO_TEXT_MAX]; /* reason not to use it; "": usable */
    char fix[INFO_TEXT_MAX]; /* command or advice that fixes it; or "" */
    unsigned num_rows;
    struct info_row rows[INFO_ROWS_MAX];
    struct info_part *next;
};

struct info_report {
    char error[INFO_TEXT_MAX];      /* a wrong value of an option; or "" */
    char unknown[INFO_TEXT_MAX];    /* a variable that is no option; or "" */
    char soft_error[INFO_TEXT_MAX]; /* error of softhca; or "" */
    struct info_part versions;      /* of other software; may be empty */
    struct info_part site;          /* set by UCX's variables; may be empty */
    struct info_part *first;        /* each device, then its ports */
    struct info_part **end;
};

void info_report_init(struct info_report *report);
void info_report_cleanup(struct info_report *report);

/* Appends a part. A port belongs to the last device before it. The report owns
 * the part. Ends the process if there is no memory. */
struct info_part *info_report_add(struct info_report *report, bool is_port,
                                  const char *name);

/* Appends a row, without values yet. Aborts if INFO_ROWS_MAX are there. */
struct info_row *info_part_add(struct info_part *part, const char *what,
                               const char *variable);

void info_row_found(struct info_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void info_row_needs(struct info_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Marks the row as a reason why dcx cannot use the part. The first reason is
 * kept. @return true if this is the first one. */
bool info_row_bad(struct info_part *part, struct info_row *row,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sets the command or advice that fixes the reason. */
void info_part_fix(struct info_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool info_part_usable(const struct info_part *part)
{
    return part->why[0] == '\0';
}

/* Returns true if dcx can use any port. */
bool info_report_usable(const struct info_report *report);

/* Print the names of the columns, and a part without its ports. */
void info_report_print_head(FILE *out);
void info_part_print(const struct info_part *part, FILE *out);

/* Prints the rows of a part as a JSON array. */
void info_rows_print_json(const struct info_part *part, FILE *out);

void info_report_print(const struct info_report *report, FILE *out);
void info_report_print_json(const struct info_report *report, FILE *out);

/* Prints a member of a JSON object; @is_last: no comma follows. NULL and ""
 * become null. */
void info_json_member(FILE *out, const char *name, const char *text,
                      bool is_last);

#endif
