/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Prints the results as tables and as CSV; see perf_report.h.
 */
#include "perf_report.h"
#include "perf_say.h"

#include <stdlib.h>

/* --- figures -------------------------------------------------------------- */
static double perf_latency(const struct perf_row *row, enum perf_method method)
{
    return row->results[method].us;
}

/* Returns MB/s, with MB of 10^6 bytes. */
static double perf_bandwidth(const struct perf_row *row,
                             enum perf_method method)
{
    return row->size / row->results[method].us;
}

static double perf_cpu(const struct perf_row *row, enum perf_method method)
{
    return row->results[method].cpu_us * 1e6 / row->size;
}

static double perf_device(const struct perf_row *row, enum perf_method method)
{
    return row->results[method].device_us * 1e6 / row->size;
}

double perf_row_bound(const struct perf_row *row)
{
    if (!row->results[PERF_UMR].is_there ||
        !row->results[PERF_CONTIG].is_there) {
        return 0;
    }
    return row->pack_us + row->results[PERF_CONTIG].us + row->unpack_us;
}

/* --- tables --------------------------------------------------------------- */
typedef double (*perf_figure_t)(const struct perf_row *row,
                                enum perf_method method);

static bool perf_is_wanted(const struct perf_report *report,
                           enum perf_method method)
{
    return (report->plan->methods & (1u << method)) != 0;
}

static void perf_print_head(const struct perf_report *report,
                            const struct perf_row *row, const char *what)
{
    printf("\n# %s, %s", perf_op_names[row->op], perf_form_names[row->form]);
    if (row->form != PERF_CONTIGUOUS) {
        printf(" (%s)", perf_side_name(report->plan->sides));
    }
    printf(": %s\n# %-10s%8s", what, "Size", "Block");
    for (int i = 0; i < PERF_METHODS; i++) {
        if (perf_is_wanted(report, i)) {
            printf("%12s", perf_method_names[i]);
        }
    }
    putchar('\n');
}

static void perf_print_figure(const struct perf_row *row,
                              enum perf_method method, int width,
                              perf_figure_t figure)
{
    if (row->results[method].is_there) {
        printf("%*.2f", width, figure(row, method));
    } else {
        printf("%*s", width, "-");
    }
}

static void perf_print_row(const struct perf_report *report,
                           const struct perf_row *row, perf_figure_t figure)
{
    printf("%-12zu%8zu", row->size, row->block);
    for (int i = 0; i < PERF_METHODS; i++) {
        if (!perf_is_wanted(report, i)) {
            continue;
        }
        perf_print_figure(row, i, 12, figure);
    }
    putchar('\n');
    fflush(stdout);
}

/* Prints all rows of the current table again, with another figure. */
static void perf_print_table(const struct perf_report *report, const char *what,
                             perf_figure_t figure)
{
    perf_print_head(report, &report->rows[report->table], what);
    for (size_t i = report->table; i < report->num; i++) {
        perf_print_row(report, &report->rows[i], figure);
    }
}

/* --- below a table -------------------------------------------------------- */
static bool perf_has_bound(const struct perf_row *row)
{
    return (row->form != PERF_CONTIGUOUS) && (perf_row_bound(row) > 0);
}

static bool perf_keeps_bound(const struct perf_row *row)
{
    return row->results[PERF_UMR].us <= perf_row_bound(row);
}

static void perf_print_broken(const struct perf_row *row)
{
    printf("# %zu in blocks of %zu: umr %.2f us > pack %.2f + contig %.2f + "
           "unpack %.2f us\n",
           row->size, row->block, row->results[PERF_UMR].us, row->pack_us,
           row->results[PERF_CONTIG].us, row->unpack_us);
}

/* Counts the rows of the current table that keep the rule of self-consistency,
 * and prints the others. */
static void perf_print_rule(struct perf_report *report)
{
    size_t num = 0, kept = 0;

    for (size_t i = report->table; i < report->num; i++) {
        if (!perf_has_bound(&report->rows[i])) {
            continue;
        }
        num++;
        if (perf_keeps_bound(&report->rows[i])) {
            kept++;
        } else {
            perf_print_broken(&report->rows[i]);
        }
    }
    if (num > 0) {
        printf("# t(umr) <= t(pack) + t(contig) + t(unpack): %zu of %zu\n",
               kept, num);
    }
    report->bounds += num;
    report->kept += kept;
}

/* Returns the sums of all rows of the current table. */
static struct perf_result perf_table_sum(const struct perf_report *report,
                                         enum perf_method method)
{
    struct perf_result sum = {};

    for (size_t i = report->table; i < report->num; i++) {
        const struct perf_result *result = &report->rows[i].results[method];
        sum.hits += result->hits;
        sum.misses += result->misses;
        sum.evictions += result->evictions;
        sum.sets += result->sets;
        sum.doorbells += result->doorbells;
    }
    return sum;
}

static void perf_print_keys(const struct perf_report *report)
{
    struct perf_result sum;

    for (int i = 0; i < PERF_METHODS; i++) {
        sum = perf_table_sum(report, i);
        if (sum.hits + sum.misses + sum.sets + sum.doorbells > 0) {
            printf("# keys, %s: %lu found, %lu given a layout (%.1f%% hits), "
                   "%lu evicted; %lu layouts set, %lu doorbells\n",
                   perf_method_names[i], sum.hits, sum.misses,
                   (sum.hits + sum.misses > 0) ?
                       100.0 * sum.hits / (sum.hits + sum.misses) :
                       0,
                   sum.evictions, sum.sets, sum.doorbells);
        }
    }
}

/* Prints the rest of the current table. */
static void perf_end_table(struct perf_report *report)
{
    perf_progress_clear();
    if (report->table == report->num) {
        return;
    }
    perf_print_table(report, "bandwidth (MB/s)", perf_bandwidth);
    perf_print_table(report, "time of the processor (us per MB)", perf_cpu);
    if (report->has_device) {
        perf_print_table(report, "time of the device's own thread (us per MB)",
                         perf_device);
    }
    perf_print_keys(report);
    perf_print_rule(report);
    report->table = report->num;
}

/* --- the summary ---------------------------------------------------------- */
static void perf_summary_head(const struct perf_report *report)
{
    printf("\n# latency (us), in pieces: %s\n# %-3s%-12s%9s%7s",
           perf_side_name(report->plan->sides), "Op", "Layout", "Size",
           "Block");
    for (int i = 0; i < PERF_METHODS; i++) {
        if (perf_is_wanted(report, i)) {
            printf("%11s", perf_method_names[i]);
        }
    }
    puts("  umr/pack");
}

/* Prints one line, with the ratio that decides between a layout and packing. */
static void perf_summary_row(const struct perf_report *report,
                             const struct perf_row *row)
{
    const struct perf_result *umr  = &row->results[PERF_UMR];
    const struct perf_result *pack = &row->results[PERF_PACK];

    printf("%-5s%-12s%9zu%7zu", perf_op_names[row->op],
           perf_form_names[row->form], row->size, row->block);
    for (int i = 0; i < PERF_METHODS; i++) {
        if (perf_is_wanted(report, i)) {
            perf_print_figure(row, i, 11, perf_latency);
        }
    }
    if (umr->is_there && pack->is_there) {
        printf("%10.2f\n", umr->us / pack->us);
    } else {
        printf("%10s\n", "-");
    }
}

static void perf_summary_add(struct perf_report *report,
                             const struct perf_row *row)
{
    if (report->num == 1) {
        perf_summary_head(report);
    }
    perf_summary_row(report, row);
    fflush(stdout);
    if (perf_has_bound(row)) {
        report->bounds++;
        report->kept += perf_keeps_bound(row);
    }
}

/* --- CSV ------------------------------------------------------------------ */
static void perf_csv_head(const struct perf_report *report)
{
    fputs("op,layout,side,size,block,pieces,window,method,latency_us,"
          "bandwidth_mb_s,cpu_us_mb,device_us_mb,pack_us,unpack_us,bound_us,"
          "setup_us,hits,misses,evictions,sets,doorbells\n",
          report->csv);
}

static void perf_csv_result(const struct perf_report *report,
                            const struct perf_row *row, enum perf_method method)
{
    const struct perf_result *result = &row->results[method];

    fprintf(report->csv, "%s,%s,%s,%zu,%zu,%zu,%u,%s,%.3f,%.2f,%.3f,%.3f,",
            perf_op_names[row->op], perf_form_names[row->form],
            perf_side_name(report->plan->sides), row->size, row->block,
            row->pieces, report->plan->window, perf_method_names[method],
            result->us, perf_bandwidth(row, method), perf_cpu(row, method),
            perf_device(row, method));
    fprintf(report->csv, "%.3f,%.3f,%.3f,%.3f,%lu,%lu,%lu,%lu,%lu\n",
            row->pack_us, row->unpack_us, perf_row_bound(row), row->setup_us,
            result->hits, result->misses, result->evictions, result->sets,
            result->doorbells);
}

static void perf_csv_row(const struct perf_report *report,
                         const struct perf_row *row)
{
    for (int i = 0; i < PERF_METHODS; i++) {
        if (row->results[i].is_there) {
            perf_csv_result(report, row, i);
        }
    }
    fflush(report->csv);
}

/* --- a run ---------------------------------------------------------------- */
void perf_report_open(struct perf_report *report, const struct perf_plan *plan,
                      const char *csv, bool has_device)
{
    *report = (struct perf_report){.plan       = plan,
                                   .csv_name   = csv,
                                   .has_device = has_device};
    if (csv == NULL) {
        return;
    }
    report->csv = fopen(csv, "w");
    if (report->csv == NULL) {
        perf_fail("cannot write %s: %m", csv);
    }
    perf_csv_head(report);
}

static bool perf_is_other_table(const struct perf_row *row,
                                const struct perf_row *other)
{
    return (row->op != other->op) || (row->form != other->form);
}

static void perf_table_add(struct perf_report *report,
                           const struct perf_row *row)
{
    if (report->num - 1 == report->table) {
        perf_print_head(report, row, "latency (us)");
    }
    perf_print_row(report, row, perf_latency);
}

void perf_report_add(struct perf_report *report, const struct perf_row *row)
{
    if (report->plan->is_all && (report->num > report->table) &&
        perf_is_other_table(row, &report->rows[report->table])) {
        perf_end_table(report);
    }
    report->rows = realloc(report->rows,
                           (report->num + 1) * sizeof(*report->rows));
    if (report->rows == NULL) {
        perf_fail("failed to allocate %zu rows", report->num + 1);
    }
    report->rows[report->num++] = *row;
    perf_progress_clear();
    if (report->plan->is_all) {
        perf_table_add(report, row);
    } else {
        perf_summary_add(report, row);
    }
    if (report->csv != NULL) {
        perf_csv_row(report, row);
    }
}

static void perf_print_end(const struct perf_report *report)
{
    putchar('\n');
    if (report->bounds > 0) {
        printf("# self-consistency: t(umr) <= t(pack) + t(contig) + t(unpack) "
               "in %zu of %zu\n",
               report->kept, report->bounds);
    }
    printf("# %zu cases, every byte checked, holes included\n", report->num);
}

void perf_report_close(struct perf_report *report)
{
    if (report->plan->is_all) {
        perf_end_table(report);
    }
    perf_print_end(report);
    free(report->rows);
    if ((report->csv != NULL) &&
        (ferror(report->csv) || (fclose(report->csv) != 0))) {
        perf_fail("cannot write %s: %m", report->csv_name);
    }
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        perf_fail("cannot write: %m");
    }
}
