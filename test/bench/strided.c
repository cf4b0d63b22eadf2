/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Cost of strided data for a program that puts it to a peer's buffer, for
 * callgrind to count, or in time of the thread:
 *
 *     strided dcx DEVICE [blocks] [forms] [setup]
 *
 *   blocks  by a key that has the layout, or by a handle, compared with packing
 *           and with unpacking by the peer: messages and blocks of several
 *           lengths
 *   forms   of few and of many pieces: in the WQE, copied by dcx, or by a key
 *           that has the layout, or needs a new one
 *   setup   a layout in a key that has none, or another; uct_dcx_layout_set()
 *
 * An operation is its posting and progress until it has completed, one at a
 * time. Under callgrind each kind has a dump (collect.h). Otherwise prints
 * lines of WHAT/HOW and nanoseconds, without the software device's time in the
 * thread, but including the trap of a doorbell.
 */
#define _GNU_SOURCE
#include "collect.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uct/dcx/dcx.h>
#include <valgrind/valgrind.h>
#include <x86intrin.h>

enum {
    HALF       = BENCH_MEM_SIZE / 2, /* offset of the peer's memory */
    MAX_LENGTH = 1 << 20,
    MAX_IOV    = 1024,

    MAX_OPERATIONS = 1024
};

struct run {
    struct bench_pair pair;
    uct_mem_h memh; /* of the sender's half */
    size_t block;   /* of 'iov' */
    size_t pieces;
    uct_iov_t iov[MAX_IOV];
    unsigned iovcnt;
    uct_completion_t comp;
    int done;
    uct_pending_req_t pending;
    ucs_status_t posted;
    int is_cold;         /* the memory is in no cache */
    unsigned operations; /* collected operations */
    double ticks[MAX_OPERATIONS];
    double ticks_per_ns;
    unsigned doorbells; /* doorbells of the layout queue so far */
    uint64_t (*device_ticks)(void);
};


/* --- memory --------------------------------------------------------------- */

/* Describes interleaved blocks of the sender from 'offset' on, each at a
 * distance of two lengths from the previous one. */
static void run_interleaved(struct run *run, size_t pieces, size_t block,
                            size_t offset)
{
    run->pieces = pieces;
    run->block  = block;
    run->iovcnt = 1;
    run->iov[0] = (uct_iov_t){.buffer = run->pair.mem + offset,
                              .length = block,
                              .memh   = run->memh,
                              .stride = 2 * block,
                              .count  = pieces};
}

/* Describes the same blocks with an entry each. Every other block is displaced
 * a little, so that they form no row. */
static void run_list(struct run *run, size_t pieces, size_t block,
                     size_t offset)
{
    unsigned i;

    run->pieces = pieces;
    run->block  = block;
    run->iovcnt = pieces;
    for (i = 0; i < pieces; i++) {
        run->iov[i] = (uct_iov_t){
            .buffer = run->pair.mem + offset + (2 * block * i) + (i % 2),
            .length = block,
            .memh   = run->memh,
            .count  = 1,
        };
    }
}

static void run_contiguous(struct run *run, size_t length)
{
    run->iovcnt = 1;
    run->iov[0] = (uct_iov_t){.buffer = run->pair.mem,
                              .length = length,
                              .memh   = run->memh,
                              .count  = 1};
}

/* Copies blocks as a program does that knows the length of a number. */
static void copy_blocks(uint8_t *to, size_t to_stride, const uint8_t *from,
                        size_t from_stride, size_t pieces, size_t block)
{
    size_t i;

    if (block == sizeof(uint64_t)) {
        for (i = 0; i < pieces; i++) {
            memcpy(to + (i * to_stride), from + (i * from_stride),
                   sizeof(uint64_t));
        }
    } else {
        for (i = 0; i < pieces; i++) {
            memcpy(to + (i * to_stride), from + (i * from_stride), block);
        }
    }
}

static void pack(const struct run *run)
{
    copy_blocks(run->pair.mem + HALF - MAX_LENGTH, run->block, run->pair.mem,
                2 * run->block, run->pieces, run->block);
}

static void unpack(const struct run *run)
{
    copy_blocks(run->pair.mem + HALF, 2 * run->block,
                run->pair.mem + HALF - MAX_LENGTH, run->block, run->pieces,
                run->block);
}


/* --- collection ----------------------------------------------------------- */

/* Returns ticks of this thread without the device's. */
static double own_ticks(const struct run *run)
{
    return (double)(__rdtsc() - run->device_ticks());
}

static void collect_begin(struct run *run)
{
    run->ticks[run->operations] = -own_ticks(run);
    bench_collect(1);
}

/* Ends the collection of an operation. */
static void collect_end(struct run *run)
{
    bench_collect(1);
    run->ticks[run->operations++] += own_ticks(run);
}

static int compare(const void *a, const void *b)
{
    double diff = *(const double *)a - *(const double *)b;

    return (diff > 0) - (diff < 0);
}

/* Returns the lower quartile: all operations do the same, longer ones were
 * interrupted. */
static double usual_ns(struct run *run)
{
    qsort(run->ticks, run->operations, sizeof(*run->ticks), compare);
    return run->ticks[run->operations / 4] / run->ticks_per_ns;
}

/* Prints or dumps operations that each stand for 'number' printed ones. */
static void collected_rows(struct run *run, const char *what, const char *form,
                           unsigned number)
{
    char how[64];

    snprintf(how, sizeof(how), "%s%zux%zu", form, run->pieces, run->block);
    if (RUNNING_ON_VALGRIND) {
        bench_dump(what, how, "op", run->operations * number, 0);
    } else {
        printf("%s/%s %.1f\n", what, how, usual_ns(run) / number);
    }
    run->operations = 0;
}

static void collected(struct run *run, const char *what, const char *form)
{
    collected_rows(run, what, form, 1);
}

static uint64_t no_ticks(void)
{
    return 0; /* a NIC uses none of the thread's time */
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static void set_clock(struct run *run)
{
    double start       = now_ns();
    double start_ticks = __rdtsc();

    run->device_ticks = dlsym(RTLD_DEFAULT, "softhca_ticks");
    if (run->device_ticks == NULL) {
        run->device_ticks = no_ticks;
    }
    while (now_ns() - start < 1e7) {
    }
    run->ticks_per_ns = (__rdtsc() - start_ticks) / (now_ns() - start);
}


/* --- operations ----------------------------------------------------------- */

static void completed(uct_completion_t *comp)
{
    ucs_container_of(comp, struct run, comp)->done = 1;
}

static ucs_status_t try_post(struct run *run)
{
    return uct_ep_put_zcopy(run->pair.ep, run->iov, run->iovcnt,
                            (uintptr_t)run->pair.mem + HALF,
                            run->pair.rkey.rkey, &run->comp);
}

static ucs_status_t post_pending(uct_pending_req_t *pending)
{
    struct run *run = ucs_container_of(pending, struct run, pending);

    run->posted = try_post(run);
    return (run->posted == UCS_ERR_NO_RESOURCE) ? UCS_ERR_NO_RESOURCE : UCS_OK;
}

/* Posts an operation. While its layout is in progress, waits as UCP does. */
static void post(struct run *run)
{
    while ((run->posted = try_post(run)) == UCS_ERR_NO_RESOURCE) {
        if (uct_ep_pending_add(run->pair.ep, &run->pending, 0) == UCS_OK) {
            while (run->posted == UCS_ERR_NO_RESOURCE) {
                uct_iface_progress(run->pair.a.iface);
            }
            break;
        }
    }
    bench_check(run->posted, "uct_ep_put_zcopy");
}

/* Makes the memory cold, like memory that was not used for long. */
static void make_cold(const struct run *run)
{
    const size_t line = 64;
    size_t end        = (2 * run->pieces * run->block) + 65536;
    size_t pos;

    if (run->is_cold) {
        for (pos = 0; pos < end; pos += line) {
            _mm_clflush(run->pair.mem + pos);
            _mm_clflush(run->pair.mem + HALF + pos);
        }
        _mm_mfence();
    }
}

static void put(struct run *run, int on)
{
    make_cold(run);
    run->done = 0;
    run->comp = (uct_completion_t){.func = completed, .count = 1};
    if (on) {
        collect_begin(run);
    }
    post(run);
    while (!run->done) {
        uct_iface_progress(run->pair.a.iface);
    }
    if (on) {
        collect_end(run);
    }
}

static void collected_many(struct run *run, const char *what, const char *name)
{
    char label[32];

    snprintf(label, sizeof(label), "%s%s", what, name);
    collected(run, label, "");
}

static void put_many(struct run *run, const char *what, const char *name,
                     unsigned operations)
{
    unsigned i;

    put(run, 0);
    for (i = 0; i < operations; i++) {
        put(run, 1);
    }
    collected_many(run, what, name);
}

static void copy_many(struct run *run, void (*copy)(const struct run *run),
                      const char *what, const char *name, unsigned operations)
{
    unsigned i;

    copy(run);
    for (i = 0; i < operations; i++) {
        make_cold(run);
        collect_begin(run);
        copy(run);
        collect_end(run);
    }
    collected_many(run, what, name);
}

static void open_run(struct run *run, const char *tl, const char *dev)
{
    memset(run, 0, sizeof(*run));
    set_clock(run);
    bench_pair_open(&run->pair, tl, dev);
    memset(run->pair.mem, 1, BENCH_MEM_SIZE);
    BENCH_CHECK(uct_md_mem_reg(run->pair.md, run->pair.mem, HALF,
                               UCT_MD_MEM_ACCESS_ALL, &run->memh));
    run->pending.func = post_pending;
}

static void close_run(struct run *run)
{
    BENCH_CHECK(uct_md_mem_dereg(run->pair.md, run->memh));
    bench_pair_close(&run->pair);
}

/* Forces the method for strided memory: in the WQE up to 'plain' pieces, copied
 * up to 'copy' bytes, else by a key. */
static void force(const char *plain, const char *copy)
{
    setenv("UCX_DCX_STRIDED_MAX_PLAIN", plain, 1);
    setenv("UCX_DCX_STRIDED_COPY", copy, 1);
    setenv("UCX_DCX_STRIDED_COPY_PIECE", "0", 1);
}


/* --- handles -------------------------------------------------------------- */

/* Describes an operation's memory as a handle. */
static uct_dcx_layout_params_t handle_params(const struct run *run,
                                             uct_dcx_block_t *blocks)
{
    unsigned i;

    for (i = 0; i < run->iovcnt; i++) {
        blocks[i] = (uct_dcx_block_t){
            .address = (uintptr_t)run->iov[i].buffer,
            .length  = run->iov[i].length,
            .skip    = run->iov[i].stride - run->iov[i].length,
            .memh    = run->memh,
        };
    }
    return (uct_dcx_layout_params_t){.repeat = run->iov[0].count,
                                     .num    = run->iovcnt,
                                     .blocks = blocks};
}

static uct_mem_h handle_create(struct run *run,
                               const uct_dcx_layout_params_t *params)
{
    uct_mem_h memh;

    BENCH_CHECK(uct_dcx_layout_create(run->pair.a.iface,
                                      uct_dcx_layout_pieces(params), &memh));
    return memh;
}

/* Sets another layout for 'number' handles, then waits until the device has all
 * of them. The queue takes only a few long layouts at a time. */
static void handle_set(struct run *run, uct_mem_h *memh, unsigned number,
                       const uct_dcx_layout_params_t *params)
{
    ucs_status_t status;
    unsigned i;

    collect_begin(run);
    for (i = 0; i < number; i++) {
        while ((status = uct_dcx_layout_set(memh[i], params)) ==
               UCS_ERR_NO_RESOURCE) {
            uct_dcx_layout_test(memh[0]);
        }
        bench_check(status, "uct_dcx_layout_set");
    }
    for (i = 0; i < number; i++) {
        while ((status = uct_dcx_layout_test(memh[i])) == UCS_INPROGRESS) {
        }
        bench_check(status, "uct_dcx_layout_test");
    }
    collect_end(run);
}

/* Makes operations use the handle. */
static void run_handle(struct run *run, uct_mem_h memh)
{
    run->iovcnt = 1;
    run->iov[0] = (uct_iov_t){.length = uct_dcx_layout_length(memh),
                              .memh   = memh,
                              .count  = 1};
}


/* --- blocks --------------------------------------------------------------- */

/* By a key, by a handle, and packed; 'name' is appended to each kind */
static void blocks_kinds(struct run *run, size_t length, size_t block,
                         const char *name)
{
    /* Counts are equal for all operations; times need a median. */
    unsigned operations = RUNNING_ON_VALGRIND ? 2 : (1 << 25) / length;
    uct_dcx_layout_params_t params;
    uct_dcx_block_t description;
    uct_mem_h memh;

    operations = (operations < MAX_OPERATIONS) ? operations : MAX_OPERATIONS;
    run_interleaved(run, length / block, block, 0);
    params = handle_params(run, &description);
    memh   = handle_create(run, &params);
    handle_set(run, &memh, 1, &params);
    run->operations = 0;

    put_many(run, "key", name, operations);
    run_handle(run, memh);
    put_many(run, "handle", name, operations);
    copy_many(run, pack, "pack", name, operations);
    copy_many(run, unpack, "unpack", name, operations);
    run_contiguous(run, length);
    put_many(run, "contiguous", name, operations);
    BENCH_CHECK(uct_md_mem_dereg(run->pair.md, memh));
}

static void blocks_case(struct run *run, size_t length, size_t block)
{
    blocks_kinds(run, length, block, "");
    if (!RUNNING_ON_VALGRIND) {
        run->is_cold = 1;
        blocks_kinds(run, length, block, "_cold");
        run->is_cold = 0;
    }
}

static void blocks(const char *tl, const char *dev)
{
    static const size_t lengths[] = {4096, 16384, 65536, 262144, MAX_LENGTH};
    static const size_t sizes[]   = {8, 64, 256, 1024, 4096, 16384};
    struct run run;
    unsigned i, j;

    force("1", "0");
    open_run(&run, tl, dev);
    for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        for (j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
            if (lengths[i] > sizes[j]) {
                blocks_case(&run, lengths[i], sizes[j]);
            }
        }
    }
    close_run(&run);
}


/* --- forms ---------------------------------------------------------------- */

enum {
    FEW   = 16, /* counted operations: all cost the same */
    SLOTS = 4,
    PLAIN = 11 /* maximum pieces in the WQE of a put */
};

typedef void (*shape_t)(struct run *run, size_t pieces, size_t block,
                        size_t offset);

static const struct {
    const char *name;
    shape_t set;
} shapes[] = {{"row", run_interleaved}, {"list", run_list}};

/* Uses several layouts in turn; if there are more than keys, each is new. */
static void forms_turns(struct run *run, const char *what, unsigned shape,
                        size_t pieces, size_t block, unsigned layouts)
{
    unsigned i;

    for (i = 0; i < layouts + FEW; i++) {
        shapes[shape].set(run, pieces, block, (i % layouts) * 4096);
        put(run, i >= layouts);
    }
    collected(run, what, shapes[shape].name);
}

static void forms_of(const char *tl, const char *dev, const char *what,
                     unsigned max_pieces, unsigned layouts, int is_cold)
{
    static const size_t pieces[] = {2, 4, 11, 16, 64, 128, 512};
    static const size_t blocks[] = {8, 16, 32, 64, 128, 256, 512, 1024};
    const size_t most            = 8192; /* below SEG_SIZE */
    struct run run;
    unsigned i, j, shape;

    open_run(&run, tl, dev);
    run.is_cold = is_cold;
    for (i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
        for (j = 0; j < sizeof(blocks) / sizeof(*blocks); j++) {
            if ((pieces[i] > max_pieces) || (pieces[i] * blocks[j] > most)) {
                continue;
            }
            for (shape = 0; shape < 2; shape++) {
                if ((shape == 1) && (pieces[i] <= PLAIN)) {
                    continue; /* always in the WQE */
                }
                forms_turns(&run, what, shape, pieces[i], blocks[j], layouts);
            }
        }
    }
    close_run(&run);
}

static void forms(const char *tl, const char *dev)
{
    char slots[16];

    force("64", "0");
    forms_of(tl, dev, "plain", PLAIN, 1, 0);
    force("1", "8192");
    forms_of(tl, dev, "copy", 512, 1, 0);
    forms_of(tl, dev, "copy_cold", 512, 1, 1);
    force("1", "0");
    forms_of(tl, dev, "key", 512, 1, 0);
    snprintf(slots, sizeof(slots), "%d", SLOTS);
    setenv("UCX_DCX_UMR_SLOTS", slots, 1);
    forms_of(tl, dev, "miss", 512, 4 * SLOTS, 0);
    unsetenv("UCX_DCX_UMR_SLOTS");
}


/* --- setup ---------------------------------------------------------------- */

static const struct {
    unsigned shape;
    size_t pieces;
} setups[] = {{0, 1024}, {1, 12}, {1, 52}, {1, 1024}};

enum { SETUP_BLOCK = 64 };

/* Registers the sender's memory again, so that the keys have no layouts. */
static void setup_forget(struct run *run)
{
    BENCH_CHECK(uct_md_mem_dereg(run->pair.md, run->memh));
    BENCH_CHECK(uct_md_mem_reg(run->pair.md, run->pair.mem, HALF,
                               UCT_MD_MEM_ACCESS_ALL, &run->memh));
}

/* Returns the doorbells of the domain's layout queue since the last call;
 * restarts the count of PCIe traffic. */
static unsigned setup_doorbells(struct run *run)
{
    unsigned before = run->doorbells;
    uct_dcx_layout_stats_t stats;

    BENCH_CHECK(uct_dcx_layout_query(run->pair.md, &stats));
    run->doorbells = stats.doorbells;
    bench_traffic_begin();
    return run->doorbells - before;
}

static void setup_collected(struct run *run, const char *what, unsigned setup,
                            unsigned number)
{
    const char *shape = shapes[setups[setup].shape].name;
    double operations = run->operations * number;
    char how[64];
    unsigned doorbells;

    snprintf(how, sizeof(how), "%s%zux%zu", shape, run->pieces, run->block);
    bench_traffic_print(what, how, operations);
    doorbells = setup_doorbells(run);
    collected_rows(run, what, shape, number);
    if (!RUNNING_ON_VALGRIND) {
        printf("doorbells_%s/%s %.3f\n", what, how, doorbells / operations);
    }
}

/* Runs operations with FEW layouts. All are collected, because callgrind also
 * counts calls of code that is not. */
static void setup_put(struct run *run, unsigned setup, unsigned first,
                      const char *what)
{
    unsigned i;

    for (i = 0; i < FEW; i++) {
        shapes[setups[setup].shape].set(run, setups[setup].pieces, SETUP_BLOCK,
                                        (first + i) * 4096);
        put(run, 1);
    }
    setup_collected(run, what, setup, 1);
}

static void setup_case(struct run *run, unsigned setup)
{
    setup_put(run, setup, 0, "first");
    setup_put(run, setup, 0, "there");
    setup_put(run, setup, FEW, "replaced");
    setup_forget(run);
    setup_doorbells(run);
    setup_put(run, setup, 0, "empty");
}

/* Runs operations on a handle. */
static void handle_put(struct run *run, unsigned setup, uct_mem_h memh)
{
    unsigned i;

    run_handle(run, memh);
    for (i = 0; i < FEW; i++) {
        put(run, 1);
    }
    setup_collected(run, "handle", setup, 1);
}

static void handle_case(struct run *run, unsigned setup, const char *what,
                        unsigned number)
{
    static uct_dcx_block_t blocks[MAX_IOV];
    uct_dcx_layout_params_t params;
    uct_mem_h memh[FEW];
    unsigned i;

    shapes[setups[setup].shape].set(run, setups[setup].pieces, SETUP_BLOCK, 0);
    params = handle_params(run, blocks);
    for (i = 0; i < number; i++) {
        memh[i] = handle_create(run, &params);
    }
    handle_set(run, memh, number, &params);
    setup_collected(run, "first_set", setup, number);
    for (i = 0; i < FEW; i++) { /* another layout each time */
        shapes[setups[setup].shape].set(run, setups[setup].pieces, SETUP_BLOCK,
                                        ((i + 1) % 2) * 4096);
        params = handle_params(run, blocks);
        handle_set(run, memh, number, &params);
    }
    setup_collected(run, what, setup, number);
    if (number == 1) {
        handle_put(run, setup, memh[0]);
    }
    for (i = 0; i < number; i++) {
        BENCH_CHECK(uct_md_mem_dereg(run->pair.md, memh[i]));
    }
}

/* Opens as many keys of each size as there are layouts in turn. */
static void setup(const char *tl, const char *dev)
{
    struct run run;
    unsigned i;
    char slots[16];

    snprintf(slots, sizeof(slots), "%d", FEW);
    setenv("UCX_DCX_UMR_SLOTS", slots, 1);
    setenv("UCX_DCX_RCACHE", "n", 1);
    force("1", "0");
    open_run(&run, tl, dev);
    for (i = 0; i < sizeof(setups) / sizeof(*setups); i++) {
        setup_case(&run, i);
        handle_case(&run, i, "set", 1);
        handle_case(&run, i, "sets", FEW);
    }
    close_run(&run);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: strided dcx DEVICE [blocks] [forms] "
                        "[setup]\n");
        return 2;
    }
    if (bench_wanted("blocks", argv + 3)) {
        blocks(argv[1], argv[2]);
    }
    if (bench_wanted("forms", argv + 3)) {
        forms(argv[1], argv[2]);
    }
    if (bench_wanted("setup", argv + 3)) {
        setup(argv[1], argv[2]);
    }
    return 0;
}
