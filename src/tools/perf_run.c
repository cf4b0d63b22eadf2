/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Measures all cases; see perf_run.h.
 */
#include "perf_run.h"
#include "perf_method.h"
#include "perf_say.h"

#include <uct/dcx/dcx.h>

#include <stdlib.h>
#include <string.h>

enum {
    PERF_PATIENCE  = 100000000, /* ns, of all repetitions of one figure */
    PERF_LEAST     = 5,         /* repetitions, even if they take longer */
    PERF_SHORT_RUN = 20         /* repetitions of minor figures */
};

/* The state of a run */
struct perf_job {
    struct perf_uct *uct;
    const struct perf_plan *plan;
    struct perf_report *report;
    uint64_t seed; /* of the last pattern */
    unsigned num;  /* cases done */
    unsigned of;
};

/* --- repetitions ---------------------------------------------------------- */
static int perf_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double perf_median(double *values, unsigned num)
{
    qsort(values, num, sizeof(*values), perf_compare);
    return values[num / 2];
}

/* A function to be timed: returns us of one repetition, or < 0 if it fails */
typedef double (*perf_time_t)(struct perf_bench *bench, int arg);

/* Returns the median of up to @max repetitions, in us. */
static double perf_repeat(struct perf_bench *bench, unsigned max,
                          perf_time_t time, int arg)
{
    uint64_t end  = perf_now() + PERF_PATIENCE;
    double *times = malloc(max * sizeof(*times));
    unsigned num  = 0;
    double median = -1;

    if (times == NULL) {
        perf_fail("failed to allocate %u results", max);
    }
    while ((num < max) && ((num < PERF_LEAST) || (perf_now() < end))) {
        times[num] = time(bench, arg);
        if (times[num++] < 0) {
            num = 0;
            break;
        }
    }
    if (num > 0) {
        median = perf_median(times, num);
    }
    free(times);
    return median;
}

static double perf_time_method(struct perf_bench *bench, int method)
{
    uint64_t begin = perf_now();

    if (!perf_method_run(bench, method)) {
        return -1;
    }
    return (perf_now() - begin) / 1e3 / bench->window;
}

static double perf_time_setup(struct perf_bench *bench, int arg)
{
    uint64_t begin = perf_now();

    (void)arg;
    perf_mem_set_layout(&bench->mem);
    return (perf_now() - begin) / 1e3;
}

static double perf_time_near(struct perf_bench *bench, int verb)
{
    uint64_t begin = perf_now();

    if (verb == PERF_CALL_PACK) {
        perf_do_pack(&bench->mem, 1);
    } else {
        perf_do_unpack(&bench->mem, 1);
    }
    return (perf_now() - begin) / 1e3;
}

static double perf_time_far(struct perf_bench *bench, int verb)
{
    struct perf_call call = {.verb = verb, .count = 1, .with_cpu = true};
    struct perf_answer answer;

    perf_call(bench->uct, &call, &answer);
    return answer.ns / 1e3;
}

/* --- checks --------------------------------------------------------------- */
static void perf_call_far(struct perf_bench *bench, enum perf_verb verb,
                          uint64_t seed, bool is_staged, unsigned count,
                          struct perf_answer *answer)
{
    struct perf_call call = {
        .verb      = verb,
        .count     = count,
        .is_staged = is_staged,
        .seed      = seed,
        .what      = bench->what,
    };

    perf_call(bench->uct, &call, answer);
}

static void perf_fail_check(const struct perf_bench *bench,
                            enum perf_method method,
                            const struct perf_wrong *wrong)
{
    perf_fail("%s, %s of %lu bytes in blocks of %lu, by %s: byte %ld of the "
              "%s is 0x%02x instead of 0x%02x%s",
              perf_op_names[bench->what.op], perf_form_names[bench->what.form],
              bench->what.size, bench->what.block, perf_method_names[method],
              wrong->offset, wrong->is_packed ? "packed data" : "destination",
              wrong->is, wrong->expected,
              wrong->is_hole ? ", where no data belongs" : "");
}

/* Writes the pattern at the source, and bytes that are no data at the
 * destination. */
static void perf_check_begin(struct perf_bench *bench, uint64_t seed,
                             bool is_staged)
{
    struct perf_answer answer;

    if (bench->what.op == PERF_PUT) {
        perf_do_fill(&bench->mem, seed, is_staged);
        perf_call_far(bench, PERF_CALL_CLEAR, seed, is_staged, 0, &answer);
    } else {
        perf_call_far(bench, PERF_CALL_FILL, seed, is_staged, 0, &answer);
        perf_do_clear(&bench->mem, seed);
    }
}

/* Returns how many transfers leave their data in staging at the destination,
 * each in its own place; those of contig share one. */
static unsigned perf_num_staged(const struct perf_bench *bench,
                                enum perf_method method, unsigned window)
{
    const struct perf_shape *to = (bench->what.op == PERF_PUT) ?
                                      &bench->far :
                                      &bench->mem.shape;

    if (method == PERF_CONTIG) {
        return 1;
    }
    return ((method == PERF_PACK) && (to->form != PERF_CONTIGUOUS)) ? window :
                                                                      0;
}

static bool perf_check_end(struct perf_bench *bench, uint64_t seed,
                           bool is_staged, unsigned count,
                           struct perf_wrong *wrong)
{
    struct perf_answer answer;

    if (bench->what.op == PERF_GET) {
        return perf_do_check(&bench->mem, seed, is_staged, count, wrong);
    }
    perf_call_far(bench, PERF_CALL_CHECK, seed, is_staged, count, &answer);
    *wrong = answer.wrong;
    return !answer.is_wrong;
}

/* Runs @window transfers at a time, and compares each byte. @return false if
 * dcx refuses them. */
static bool perf_check(struct perf_bench *bench, enum perf_method method,
                       uint64_t seed, unsigned window)
{
    unsigned count = perf_num_staged(bench, method, window);
    bool is_staged = (method == PERF_CONTIG), is_done;
    struct perf_wrong wrong;

    perf_check_begin(bench, seed, is_staged);
    bench->window = window;
    is_done       = perf_method_run(bench, method);
    bench->window = bench->what.window;
    if (!is_done) {
        return false;
    }
    if (!perf_check_end(bench, seed, is_staged, count, &wrong)) {
        perf_fail_check(bench, method, &wrong);
    }
    return true;
}

/* --- figures -------------------------------------------------------------- */
static uct_dcx_layout_stats_t perf_keys_now(const struct perf_bench *bench)
{
    uct_dcx_layout_stats_t stats;

    perf_uct_check(uct_dcx_layout_query(bench->uct->md, &stats),
                   "statistics of the keys");
    return stats;
}

static void perf_keys_since(const struct perf_bench *bench,
                            const uct_dcx_layout_stats_t *before,
                            struct perf_result *result)
{
    uct_dcx_layout_stats_t now = perf_keys_now(bench);

    result->hits += now.hits - before->hits;
    result->misses += now.misses - before->misses;
    result->evictions += now.evictions - before->evictions;
    result->sets += now.sets - before->sets;
    result->doorbells += now.doorbells - before->doorbells;
}

/* Measures processor times: those of transfers in both processes, and that of
 * the other threads of the near process, which are softhca's. */
static void perf_measure_cpu(struct perf_bench *bench, enum perf_method method,
                             struct perf_result *result)
{
    uint64_t end = perf_now() + PERF_PATIENCE;
    uint64_t all = perf_clock(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t own = perf_clock(CLOCK_THREAD_CPUTIME_ID);
    unsigned num = 0;

    bench->cpu = (struct perf_cpu){.is_on = true, .cost = perf_cpu_cost()};
    bench->far_cpu_ns = 0;
    while ((num < PERF_SHORT_RUN) &&
           ((num < PERF_LEAST) || (perf_now() < end))) {
        perf_method_run(bench, method);
        num++;
    }
    own            = perf_clock(CLOCK_THREAD_CPUTIME_ID) - own;
    all            = perf_clock(CLOCK_PROCESS_CPUTIME_ID) - all;
    result->cpu_us = (bench->cpu.ns + bench->far_cpu_ns) / 1e3 / num /
                     bench->window;
    result->device_us = (all > own) ? (all - own) / 1e3 / num / bench->window :
                                      0;
    bench->cpu.is_on  = false;
}

static void perf_measure(struct perf_job *job, struct perf_bench *bench,
                         enum perf_method method, struct perf_result *result)
{
    uct_dcx_layout_stats_t before = perf_keys_now(bench);

    /* Check a single transfer first, as a later one could hide its errors; at
     * the end, check as many as were measured. */
    if (!perf_check(bench, method, ++job->seed, 1)) {
        return;
    }
    if (job->plan->warmup > 0) {
        perf_repeat(bench, job->plan->warmup, perf_time_method, method);
    }
    result->us = perf_repeat(bench, job->plan->iters, perf_time_method, method);
    perf_measure_cpu(bench, method, result);
    perf_keys_since(bench, &before, result);
    result->is_there = (result->us >= 0) &&
                       perf_check(bench, method, ++job->seed, bench->window);
}

/* Measures the copies of `pack` by both processors, each alone. */
static void perf_measure_parts(struct perf_bench *bench, struct perf_row *row)
{
    bool is_put            = (bench->what.op == PERF_PUT);
    double *near           = is_put ? &row->pack_us : &row->unpack_us;
    double *far            = is_put ? &row->unpack_us : &row->pack_us;
    enum perf_verb do_near = is_put ? PERF_CALL_PACK : PERF_CALL_UNPACK;
    enum perf_verb do_far  = is_put ? PERF_CALL_UNPACK : PERF_CALL_PACK;

    if (bench->mem.shape.form != PERF_CONTIGUOUS) {
        *near = perf_repeat(bench, PERF_SHORT_RUN, perf_time_near, do_near);
    }
    if (bench->far.form != PERF_CONTIGUOUS) {
        *far = perf_repeat(bench, PERF_SHORT_RUN, perf_time_far, do_far);
    }
}

/* Measures the time to set the near layout. */
static void perf_measure_setup(struct perf_bench *bench, struct perf_row *row)
{
    uct_dcx_layout_stats_t before = perf_keys_now(bench);

    if ((bench->mem.layout != NULL) && row->results[PERF_UMR].is_there) {
        row->setup_us = perf_repeat(bench, PERF_SHORT_RUN, perf_time_setup, 0);
        perf_keys_since(bench, &before, &row->results[PERF_UMR]);
    }
}

/* --- a case --------------------------------------------------------------- */
static void perf_unpack_rkey(struct perf_bench *bench, const uint8_t *packed,
                             uct_rkey_bundle_t *rkey)
{
    perf_uct_check(uct_rkey_unpack(bench->uct->component, packed, rkey),
                   "the peer's key");
}

static void perf_release_rkey(struct perf_bench *bench, uct_rkey_bundle_t *rkey)
{
    perf_uct_check(uct_rkey_release(bench->uct->component, rkey),
                   "the peer's key");
}

static void perf_bench_begin(struct perf_bench *bench, struct perf_uct *uct,
                             const struct perf_case *what)
{
    bool is_far_in_pieces = (what->sides & PERF_REMOTE) != 0;
    struct perf_answer answer;

    memset(bench, 0, sizeof(*bench));
    bench->uct  = uct;
    bench->what = *what;
    perf_mem_create(&bench->mem, uct, what, (what->sides & PERF_LOCAL) != 0);
    if (!perf_shape_init(&bench->far,
                         is_far_in_pieces ? what->form : PERF_CONTIGUOUS,
                         what->size, what->block, what->stride)) {
        perf_fail("failed to allocate a shape of %lu bytes", what->size);
    }
    perf_method_strides(bench);
    perf_call_far(bench, PERF_CALL_BEGIN, 0, false, 0, &answer);
    bench->keys = answer.keys;
    perf_unpack_rkey(bench, bench->keys.buffer_rkey, &bench->buffer);
    perf_unpack_rkey(bench, bench->keys.staging_rkey, &bench->staging);
    if (bench->keys.has_layout) {
        perf_unpack_rkey(bench, bench->keys.layout_rkey, &bench->layout);
    }
}

static void perf_bench_end(struct perf_bench *bench)
{
    struct perf_answer answer;

    perf_uct_flush(bench->uct);
    perf_release_rkey(bench, &bench->buffer);
    perf_release_rkey(bench, &bench->staging);
    if (bench->keys.has_layout) {
        perf_release_rkey(bench, &bench->layout);
    }
    perf_call_far(bench, PERF_CALL_END, 0, false, 0, &answer);
    free(bench->iov);
    perf_shape_cleanup(&bench->far);
    perf_mem_destroy(&bench->mem);
}

static void perf_run_case(struct perf_job *job, const struct perf_case *what)
{
    struct perf_row row = {
        .op    = what->op,
        .form  = what->form,
        .size  = what->size,
        .block = what->block,
    };
    struct perf_bench bench;

    job->num++;
    perf_bench_begin(&bench, job->uct, what);
    row.pieces = (bench.far.num > bench.mem.shape.num) ? bench.far.num :
                                                         bench.mem.shape.num;
    for (int i = 0; i < PERF_METHODS; i++) {
        if ((job->plan->methods & (1u << i)) &&
            perf_method_is_there(&bench, i)) {
            perf_progress("%u/%u %s, %s: %zu in blocks of %zu, %s", job->num,
                          job->of, perf_op_names[row.op],
                          perf_form_names[row.form], row.size, row.block,
                          perf_method_names[i]);
            perf_measure(job, &bench, i, &row.results[i]);
        }
    }
    perf_measure_parts(&bench, &row);
    perf_measure_setup(&bench, &row);
    perf_bench_end(&bench);
    perf_report_add(job->report, &row);
}

/* --- all cases ------------------------------------------------------------ */
typedef void (*perf_visit_t)(struct perf_job *job,
                             const struct perf_case *what);

static void perf_count_case(struct perf_job *job, const struct perf_case *what)
{
    (void)what;
    job->of++;
}

/* Visits a size with each block length up to it. Data in one piece has no
 * blocks. */
static void perf_walk_blocks(struct perf_job *job, struct perf_case *what,
                             size_t size, perf_visit_t visit)
{
    const struct perf_plan *plan = job->plan;
    bool has_blocks              = (what->form != PERF_CONTIGUOUS);

    for (unsigned i = 0; i < (has_blocks ? plan->num_blocks : 1); i++) {
        what->block = has_blocks ? plan->blocks[i] : size;
        if (what->block <= size) {
            what->size = perf_shape_size(what->form, size, what->block);
            visit(job, what);
        }
    }
}

static void perf_walk(struct perf_job *job, perf_visit_t visit)
{
    const struct perf_plan *plan = job->plan;
    struct perf_case what        = {
               .sides  = plan->sides,
               .window = plan->window,
    };

    for (what.op = 0; what.op < PERF_OPS; what.op++) {
        for (what.form = 0; what.form < PERF_FORMS; what.form++) {
            if (!(plan->ops & (1u << what.op)) ||
                !(plan->forms & (1u << what.form))) {
                continue;
            }
            what.stride = (what.form == PERF_CONTIGUOUS) ? 0 : plan->stride;
            for (size_t size = plan->min_size; size <= plan->max_size;
                 size *= 2) {
                perf_walk_blocks(job, &what, size, visit);
            }
        }
    }
}

void perf_run(struct perf_uct *uct, const struct perf_plan *plan,
              struct perf_report *report)
{
    struct perf_job job   = {.uct = uct, .plan = plan, .report = report};
    struct perf_call quit = {.verb = PERF_CALL_QUIT};
    struct perf_answer answer;

    perf_walk(&job, perf_count_case);
    if (job.of == 0) {
        perf_wrong_call("no block is as short as --size");
    }
    perf_walk(&job, perf_run_case);
    perf_call(uct, &quit, &answer);
}
