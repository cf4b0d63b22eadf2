/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Puts and gets of lists, beside an operation for each piece:
 *
 *     lists dcx DEVICE [PIECES LENGTH]
 *
 * Pieces are apart on both sides, or adjacent on the remote side. An operation
 * is the posting of all pieces, and progress until they have completed. Under
 * callgrind each kind has a dump, counted for each piece (collect.h). Otherwise
 * prints for each kind the time of a piece in nanoseconds, by a list and by an
 * operation for each, the ratio of the second to the first, and, if the
 * software device counts them, the doorbells of both.
 */
#include "collect.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uct/dcx/dcx.h>
#include <valgrind/valgrind.h>

enum {
    HALF       = BENCH_MEM_SIZE / 2, /* offset of the peer's memory */
    MAX_PIECES = 1024,
    GAP        = 64, /* bytes between pieces that are apart */
    ROUNDS     = 200
};

struct run {
    struct bench_pair pair;
    size_t pieces;
    size_t length;
    void *buffers[MAX_PIECES];
    size_t lengths[MAX_PIECES];
    uct_mem_h memhs[MAX_PIECES];
    uint64_t remote_addrs[MAX_PIECES];
    uct_rkey_t rkeys[MAX_PIECES];
    uct_completion_t comp;
    int is_get;
    int done;
};

static void completed(uct_completion_t *comp)
{
    ucs_container_of(comp, struct run, comp)->done = 1;
}

static void fill(struct run *run, int is_adjacent)
{
    size_t i;

    for (i = 0; i < run->pieces; i++) {
        run->buffers[i]      = run->pair.mem + (i * (run->length + GAP));
        run->lengths[i]      = run->length;
        run->memhs[i]        = run->pair.memh;
        run->remote_addrs[i] = (uintptr_t)run->pair.mem + HALF +
                               (i * (run->length + (is_adjacent ? 0 : GAP)));
        run->rkeys[i] = run->pair.rkey.rkey;
    }
}

static void progress(struct run *run)
{
    uct_iface_progress(run->pair.a.iface);
}

/* Posts pieces from @first on by one list. Lists that are too long are
 * divided. */
static void post_list(struct run *run)
{
    size_t max = uct_dcx_max_sgl_count(run->pair.ep);
    size_t first, count;
    ucs_status_t status;

    run->comp.count = (run->pieces + max - 1) / max;
    for (first = 0; first < run->pieces; first += count) {
        count = run->pieces - first;
        count = (count < max) ? count : max;
        while ((status = (run->is_get ? uct_dcx_get_sgl_zcopy :
                                        uct_dcx_put_sgl_zcopy)(
                    run->pair.ep, run->buffers + first, run->lengths + first,
                    run->memhs + first, run->remote_addrs + first,
                    run->rkeys + first, NULL, NULL, count, &run->comp)) ==
               UCS_ERR_NO_RESOURCE) {
            progress(run);
        }
        bench_check(status, "list");
    }
}

static void post_each(struct run *run)
{
    uct_iov_t iov = {.length = run->length, .count = 1};
    ucs_status_t status;
    size_t i;

    run->comp.count = run->pieces;
    for (i = 0; i < run->pieces; i++) {
        iov.buffer = run->buffers[i];
        iov.memh   = run->memhs[i];
        while ((status = (run->is_get ? uct_ep_get_zcopy : uct_ep_put_zcopy)(
                    run->pair.ep, &iov, 1, run->remote_addrs[i], run->rkeys[i],
                    &run->comp)) == UCS_ERR_NO_RESOURCE) {
            progress(run);
        }
        bench_check(status, "zcopy");
    }
}

static void operate(struct run *run, void (*post)(struct run *run))
{
    run->done = 0;
    run->comp = (uct_completion_t){.func = completed};
    post(run);
    while (!run->done) {
        progress(run);
    }
    bench_check(run->comp.status, "completion");
}

static uint64_t doorbells(void)
{
    int (*get)(const char *kind, uint64_t *times, uint64_t *bytes,
               uint64_t *lines) = dlsym(RTLD_DEFAULT, "softhca_pcie");
    uint64_t times, bytes, lines;

    return ((get != NULL) && (get("mmio_write", &times, &bytes, &lines) == 0)) ?
               times :
               0;
}

static int compare(const void *a, const void *b)
{
    double diff = *(const double *)a - *(const double *)b;

    return (diff > 0) - (diff < 0);
}

/* Returns nanoseconds for each piece: the median. */
static double run_times(struct run *run, void (*post)(struct run *run),
                        double *num_doorbells)
{
    uint64_t begin = doorbells();
    double ns[ROUNDS];
    struct timespec start, end;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        clock_gettime(CLOCK_MONOTONIC, &start);
        operate(run, post);
        clock_gettime(CLOCK_MONOTONIC, &end);
        ns[i] = ((end.tv_sec - start.tv_sec) * 1e9) +
                (end.tv_nsec - start.tv_nsec);
    }
    *num_doorbells = (double)(doorbells() - begin) / ROUNDS;
    qsort(ns, ROUNDS, sizeof(*ns), compare);
    return ns[ROUNDS / 2] / run->pieces;
}

static void run_count(struct run *run, void (*post)(struct run *run),
                      const char *what, const char *how)
{
    enum { OPERATIONS = 4 };
    int i;

    for (i = 0; i < OPERATIONS; i++) {
        bench_collect(1);
        operate(run, post);
        bench_collect(1);
    }
    bench_dump(what, how, "piece", OPERATIONS * run->pieces, 0);
}

static void run_kind(struct run *run, int is_get, int is_adjacent)
{
    double list, each, list_doorbells, each_doorbells;
    char how[64];

    run->is_get = is_get;
    fill(run, is_adjacent);
    operate(run, post_each);
    operate(run, post_list);
    snprintf(how, sizeof(how), "%s_%s_%zux%zu", is_get ? "get" : "put",
             is_adjacent ? "adjacent" : "apart", run->pieces, run->length);
    if (RUNNING_ON_VALGRIND) {
        run_count(run, post_list, "list", how);
        run_count(run, post_each, "each", how);
        return;
    }

    list = run_times(run, post_list, &list_doorbells);
    each = run_times(run, post_each, &each_doorbells);
    printf("%s %.1f %.1f %.2f %.1f %.1f\n", how, list, each, each / list,
           list_doorbells, each_doorbells);
}

int main(int argc, char **argv)
{
    static struct run run;

    run.pieces = (argc > 4) ? atoi(argv[3]) : 256;
    run.length = (argc > 4) ? atoi(argv[4]) : 1024;
    if ((argc < 3) || (run.pieces == 0) || (run.pieces > MAX_PIECES) ||
        (run.pieces * (run.length + GAP) > HALF)) {
        fprintf(stderr, "usage: lists dcx DEVICE [PIECES LENGTH]\n");
        return 2;
    }
    bench_pair_open(&run.pair, argv[1], argv[2]);
    memset(run.pair.mem, 1, BENCH_MEM_SIZE);
    run_kind(&run, 0, 0);
    run_kind(&run, 0, 1);
    run_kind(&run, 1, 0);
    run_kind(&run, 1, 1);
    bench_pair_close(&run.pair);
    return 0;
}
