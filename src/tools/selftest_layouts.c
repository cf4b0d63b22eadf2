/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Probes of layouts: keys to which a UMR gives a list of pieces, or repeated
 * blocks. Each probe puts to the layout and gets from it. Without a peer, it
 * also does both with the layout on the local side, and sends a message from
 * it. It checks the bytes between the pieces, too.
 */
#include "perf_clock.h"
#include "perf_say.h"
#include "selftest.h"
#include "selftest_memory.h"
#include "selftest_peer.h"
#include "uct/dcx/dev/dcx_profile.h"

#include <stdlib.h>
#include <string.h>

enum {
    SELFTEST_CHANGES = 1000,
    SELFTEST_DEPTH   = 5,
    SELFTEST_LAYOUTS = 16,        /* most layouts for a peer */
    SELFTEST_AREA    = 512 << 20, /* bytes; larger than caches */
    SELFTEST_COPIED  = 8192,      /* bytes copied into a buffer */
    SELFTEST_BLOCK   = 256
};

static struct selftest_shape selftest_shape;

/* --- one layout ----------------------------------------------------------- */
static ucs_status_t selftest_layout_try(struct selftest_mem *layout,
                                        size_t repeat,
                                        const uct_dcx_block_t *blocks,
                                        size_t num)
{
    uct_dcx_layout_params_t params = {
        .access = UCT_MD_MEM_ACCESS_RMA,
        .repeat = repeat,
        .num    = num,
        .blocks = blocks,
    };
    ucs_status_t status;

    status = uct_dcx_layout_set(layout->memh, &params);
    if (status == UCS_OK) {
        while ((status = uct_dcx_layout_test(layout->memh)) == UCS_INPROGRESS) {
        }
    }
    layout->size = uct_dcx_layout_length(layout->memh);
    return status;
}

static void selftest_layout_set(struct selftest_mem *layout, size_t repeat,
                                const uct_dcx_block_t *blocks, size_t num)
{
    perf_uct_check(selftest_layout_try(layout, repeat, blocks, num),
                   "a layout");
}

/* Asks the peer for a layout of its memory. */
static bool selftest_layout_ask(struct selftest_loop *loop,
                                struct selftest_mem *layout, size_t repeat,
                                const uct_dcx_block_t *blocks, size_t num)
{
    struct selftest_call call = {.op     = SELFTEST_LAYOUT,
                                 .a      = repeat,
                                 .length = num * sizeof(*blocks)};

    selftest_call(loop, &call, blocks, NULL);
    if (call.status != UCS_OK) {
        return false;
    }
    layout->memh = (uct_mem_h)(uintptr_t)call.a;
    layout->size = call.b;
    selftest_mem_unpack(loop, layout, call.key);
    return true;
}

/* Makes a layout. Returns false if dcx refuses it: dcx knows the depth that the
 * device supports. */
static bool selftest_layout_may(struct selftest_loop *loop,
                                struct selftest_mem *layout, size_t repeat,
                                const uct_dcx_block_t *blocks, size_t num)
{
    ucs_status_t status;

    memset(layout, 0, sizeof(*layout));
    if (loop->is_remote) {
        return selftest_layout_ask(loop, layout, repeat, blocks, num);
    }
    selftest_need(
        uct_dcx_layout_create(loop->uct.iface, num + 1, &layout->memh),
        "a key for a layout");
    status = selftest_layout_try(layout, repeat, blocks, num);
    if (status == UCS_ERR_INVALID_PARAM) {
        return false;
    }
    perf_uct_check(status, "a layout");
    selftest_mem_pack(loop, layout, 0);
    return true;
}

static void selftest_layout_open(struct selftest_loop *loop,
                                 struct selftest_mem *layout, size_t repeat,
                                 const uct_dcx_block_t *blocks, size_t num)
{
    if (!selftest_layout_may(loop, layout, repeat, blocks, num)) {
        perf_fail("a layout was rejected");
    }
}

static void selftest_layout_close(struct selftest_loop *loop,
                                  struct selftest_mem *layout)
{
    uct_rkey_release(loop->uct.component, &layout->rkey);
    if (loop->is_remote) {
        return; /* the peer's process frees its layouts at its end */
    }
    perf_uct_check(uct_md_mem_dereg(loop->uct.md, layout->memh), "a layout");
}

void selftest_serve_layout(struct selftest_loop *loop,
                           struct selftest_call *call, uint8_t *data)
{
    static struct selftest_mem layouts[SELFTEST_LAYOUTS];
    static size_t count;
    uct_dcx_block_t *blocks = (uct_dcx_block_t *)data;
    size_t num              = call->length / sizeof(*blocks);
    size_t below;

    for (size_t i = 0; i < num; i++) {
        below = (uintptr_t)blocks[i].memh;
        if (below > count) {
            perf_fail("the peer requests a layout over one that does not "
                      "exist");
        }
        blocks[i].memh = (below == 0) ? loop->far.memh :
                                        layouts[below - 1].memh;
    }
    if (count == SELFTEST_LAYOUTS) {
        perf_fail("the peer requests too many layouts");
    }
    call->length = 0;
    call->status = UCS_ERR_INVALID_PARAM;
    if (selftest_layout_may(loop, &layouts[count], call->a, blocks, num)) {
        call->b = layouts[count].size;
        call->a = ++count;
        memcpy(call->key, layouts[count - 1].key, sizeof(call->key));
        call->status = UCS_OK;
    }
}

/* --- data of a layout ----------------------------------------------------- */
/* Compares far with its old bytes, and with the new ones in the pieces. */
static void selftest_expect(struct selftest_loop *loop,
                            const struct selftest_shape *shape,
                            const char *what)
{
    selftest_fill(loop->image, SELFTEST_SIZE, 1);
    selftest_shape_scatter(shape, loop->image, loop->near.bytes);
    selftest_pull(loop, &loop->far, 0, SELFTEST_SIZE);
    selftest_compare(what, loop->far.bytes, loop->image, SELFTEST_SIZE);
}

static void selftest_begin(struct selftest_loop *loop, unsigned seed)
{
    selftest_fill(loop->far.bytes, SELFTEST_SIZE, 1);
    selftest_push(loop, &loop->far, 0, SELFTEST_SIZE);
    selftest_fill(loop->near.bytes, SELFTEST_SIZE, seed);
}

static void selftest_gathered(struct selftest_loop *loop,
                              const struct selftest_shape *shape,
                              const char *what)
{
    selftest_shape_gather(shape, loop->far.bytes, loop->image);
    selftest_compare(what, loop->near.bytes, loop->image, shape->size);
}

static void selftest_send(struct selftest_loop *loop,
                          const struct selftest_mem *layout,
                          const struct selftest_shape *shape)
{
    uct_iov_t iov  = selftest_iov(layout, shape->size);
    unsigned count = loop->count;
    ucs_status_t status;

    if (shape->size > loop->uct.attr.cap.am.max_zcopy) {
        return;
    }
    while ((status = uct_ep_am_zcopy(loop->uct.ep, SELFTEST_AM_ID, NULL, 0,
                                     &iov, 1, 0, NULL)) ==
           UCS_ERR_NO_RESOURCE) {
        perf_uct_progress(&loop->uct);
    }
    perf_uct_check(status, "a message");
    selftest_message_wait(loop, count + 1);
    if (loop->length != shape->size) {
        perf_fail("a message from the layout has %zu bytes, not %zu",
                  loop->length, shape->size);
    }
    selftest_shape_gather(shape, loop->far.bytes, loop->image);
    selftest_compare("a message from the layout", loop->message, loop->image,
                     shape->size);
}

/* Transfers with the layout on the target's side. */
static void selftest_move_far(struct selftest_loop *loop,
                              const struct selftest_mem *layout,
                              const struct selftest_shape *shape)
{
    const uintptr_t near = (uintptr_t)loop->near.bytes;

    selftest_begin(loop, 2);
    selftest_put(loop, &loop->near, near, layout, 0, shape->size);
    selftest_expect(loop, shape, "a put to the layout");
    selftest_begin(loop, 4);
    selftest_get(loop, &loop->near, near, layout, 0, shape->size);
    selftest_gathered(loop, shape, "a get from the layout");
}

/* Transfers with the layout on the origin's side. */
static void selftest_move_near(struct selftest_loop *loop,
                               const struct selftest_mem *layout,
                               const struct selftest_shape *shape)
{
    const uintptr_t near = (uintptr_t)loop->near.bytes;

    selftest_begin(loop, 3);
    selftest_get(loop, layout, 0, &loop->near, near, shape->size);
    selftest_expect(loop, shape, "a get into the layout");
    selftest_begin(loop, 5);
    selftest_put(loop, layout, 0, &loop->near, near, shape->size);
    selftest_gathered(loop, shape, "a put from the layout");
    selftest_send(loop, layout, shape);
}

static void selftest_move(struct selftest_loop *loop,
                          const struct selftest_mem *layout,
                          const struct selftest_shape *shape)
{
    if (layout->size != shape->size) {
        perf_fail("a layout has %zu bytes, not %zu", layout->size, shape->size);
    }
    selftest_move_far(loop, layout, shape);
    if (!loop->is_remote) { /* the layout is of the target's memory */
        selftest_move_near(loop, layout, shape);
    }
}

/* --- lists ---------------------------------------------------------------- */
/* Makes pieces of @length bytes and less, in descending order of addresses. */
static void selftest_blocks(struct selftest_loop *loop, uct_dcx_block_t *blocks,
                            size_t num, size_t length)
{
    memset(&selftest_shape, 0, sizeof(selftest_shape));
    memset(blocks, 0, num * sizeof(*blocks));
    for (size_t i = 0; i < num; i++) {
        size_t offset = (num - i) * (length + 24);

        blocks[i].address = loop->far.address + offset;
        blocks[i].length  = length - (i % 3);
        blocks[i].memh    = loop->far.memh;
        selftest_shape_add(&selftest_shape, offset, blocks[i].length);
    }
}

static void selftest_list(struct selftest_loop *loop, size_t num, size_t length)
{
    uct_dcx_block_t blocks[SELFTEST_PIECES];
    struct selftest_mem layout;

    selftest_blocks(loop, blocks, num, length);
    selftest_layout_open(loop, &layout, 1, blocks, num);
    selftest_move(loop, &layout, &selftest_shape);
    selftest_layout_close(loop, &layout);
}

void selftest_list4(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list(loop, 4, 1000);
}

void selftest_list20(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list(loop, 20, 300);
}

void selftest_list53(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list(loop, 53, 100);
}

/* Tests 1,024 pieces, or as many as dcx supports; and the most pieces that the
 * test has room for, which need keys of the largest size. */
static void selftest_list_most(struct selftest_loop *loop)
{
    size_t num = 1024;

    if (loop->uct.max_pieces < num) {
        num = loop->uct.max_pieces;
        selftest_note("of %zu: the limit is UCX_DCX_UMR_MAX_ENTRIES", num);
    }
    selftest_list(loop, num, 7);
    num = (loop->uct.max_pieces < SELFTEST_PIECES) ? loop->uct.max_pieces :
                                                     SELFTEST_PIECES;
    if (num > 1024) {
        selftest_list(loop, num, 7);
    }
}

void selftest_list1024(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list_most(loop);
}

/* Tests all lists, with a peer. */
void selftest_lists(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list(loop, 4, 1000);
    selftest_list(loop, 20, 300);
    selftest_list(loop, 52, 100);
    selftest_list(loop, 53, 100);
    selftest_list_most(loop);
}

void selftest_inline52(struct selftest_loop *loop)
{
    selftest_loop_open(loop);
    selftest_list(loop, 21, 300);
    selftest_list(loop, 51, 100);
    selftest_list(loop, 52, 100);
}

/* --- repeated blocks ------------------------------------------------------ */
/* Rows of 24 bytes, 64 bytes apart */
enum { SELFTEST_ROWS = 120, SELFTEST_ROW = 24, SELFTEST_STEP = 64 };

static uct_dcx_block_t selftest_rows(struct selftest_loop *loop)
{
    return (uct_dcx_block_t){
        .address = loop->far.address + 8,
        .length  = SELFTEST_ROW,
        .skip    = SELFTEST_STEP - SELFTEST_ROW,
        .memh    = loop->far.memh,
    };
}

/* Adds @length bytes of these rows, from byte @offset on. */
static void selftest_shape_rows(size_t offset, size_t length)
{
    for (size_t i = offset; i < offset + length; i++) {
        selftest_shape_add(
            &selftest_shape,
            8 + (i / SELFTEST_ROW) * SELFTEST_STEP + i % SELFTEST_ROW, 1);
    }
}

static void selftest_rows_open(struct selftest_loop *loop,
                               struct selftest_mem *layout)
{
    uct_dcx_block_t block = selftest_rows(loop);

    memset(&selftest_shape, 0, sizeof(selftest_shape));
    selftest_layout_open(loop, layout, SELFTEST_ROWS, &block, 1);
}

void selftest_strided(struct selftest_loop *loop)
{
    struct selftest_mem layout;

    selftest_loop_open(loop);
    selftest_rows_open(loop, &layout);
    selftest_shape_rows(0, SELFTEST_ROWS * SELFTEST_ROW);
    selftest_move(loop, &layout, &selftest_shape);
}

/* Tests a list of pieces that begin and end within a row. */
void selftest_list_over(struct selftest_loop *loop)
{
    uct_dcx_block_t blocks[3] = {};
    struct selftest_mem rows, layout;

    selftest_loop_open(loop);
    selftest_rows_open(loop, &rows);
    for (unsigned i = 0; i < 3; i++) {
        blocks[i].address = (2 - i) * 900 + 5;
        blocks[i].length  = 100 + i;
        blocks[i].memh    = rows.memh;
        selftest_shape_rows(blocks[i].address, blocks[i].length);
    }
    selftest_layout_open(loop, &layout, 1, blocks, 3);
    selftest_move(loop, &layout, &selftest_shape);
}

/* Tests blocks of 30 bytes of the rows, 50 bytes apart, then blocks of
 * these. */
void selftest_nests(struct selftest_loop *loop)
{
    struct selftest_mem rows, layout, upper;
    uct_dcx_block_t block = {.address = 5, .length = 30, .skip = 20};

    selftest_loop_open(loop);
    selftest_rows_open(loop, &rows);
    block.memh = rows.memh;
    for (unsigned i = 0; i < 50; i++) {
        selftest_shape_rows(5 + i * 50, 30);
    }
    selftest_layout_open(loop, &layout, 50, &block, 1);
    selftest_move(loop, &layout, &selftest_shape);

    memset(&selftest_shape, 0, sizeof(selftest_shape));
    block = (uct_dcx_block_t){.address = 0,
                              .length  = 30,
                              .skip    = 30,
                              .memh    = layout.memh};
    for (unsigned i = 0; i < 25; i++) {
        selftest_shape_rows(5 + i * 100, 30);
    }
    if (selftest_layout_may(loop, &upper, 25, &block, 1)) {
        selftest_move(loop, &upper, &selftest_shape);
    }
}

/* --- depth, changes ------------------------------------------------------- */
/* Removes a byte at either end and one in the middle of the shape. */
static void selftest_shape_cut(struct selftest_shape *shape)
{
    size_t size = shape->num, half = size / 2;

    memmove(&shape->pieces[0], &shape->pieces[1],
            (half - 1) * sizeof(shape->pieces[0]));
    memmove(&shape->pieces[half - 1], &shape->pieces[half + 1],
            (size - half - 2) * sizeof(shape->pieces[0]));
    shape->num  = size - 3;
    shape->size = size - 3;
}

/* Makes a list that removes these bytes from the layout below. */
static bool selftest_cut_open(struct selftest_loop *loop,
                              struct selftest_mem *layout,
                              const struct selftest_mem *below)
{
    size_t size = selftest_shape.num, half = size / 2;
    uint64_t address          = (uintptr_t)below->bytes;
    uct_dcx_block_t blocks[2] = {
        {.address = address + 1, .length = half - 1, .memh = below->memh},
        {.address = address + half + 1,
         .length  = size - half - 2,
         .memh    = below->memh},
    };

    return selftest_layout_may(loop, layout, 1, blocks, 2);
}

void selftest_depth(struct selftest_loop *loop)
{
    struct selftest_mem layouts[SELFTEST_DEPTH] = {};
    const struct selftest_mem *below            = &loop->far;
    unsigned depth                              = 0;

    selftest_loop_open(loop);
    memset(&selftest_shape, 0, sizeof(selftest_shape));
    for (unsigned i = 0; i < 2000; i++) {
        selftest_shape_add(&selftest_shape, i, 1);
    }
    selftest_value(UCT_DCX_PROFILE_LEVELS, "0");
    while ((depth < SELFTEST_DEPTH) &&
           selftest_cut_open(loop, &layouts[depth], below)) {
        selftest_shape_cut(&selftest_shape);
        selftest_move(loop, &layouts[depth], &selftest_shape);
        below = &layouts[depth++];
        selftest_value(UCT_DCX_PROFILE_LEVELS, "%u", depth);
        fflush(stdout); /* the next level may crash or hang */
    }
    if (depth == 0) {
        selftest_refused("no layout of one level");
    }
}

/* Changes a layout, and uses it at once: the old translation must be gone. */
void selftest_changes(struct selftest_loop *loop)
{
    uct_dcx_block_t block = {.length = 16, .skip = 48};
    struct selftest_mem layout;

    selftest_loop_open(loop);
    selftest_fill(loop->far.bytes, SELFTEST_SIZE, 1);
    block.memh    = loop->far.memh;
    block.address = loop->far.address;
    selftest_layout_open(loop, &layout, 32, &block, 1);
    for (unsigned i = 0; i < SELFTEST_CHANGES; i++) {
        size_t begin = (i * 40) % (SELFTEST_SIZE / 2);

        memset(&selftest_shape, 0, sizeof(selftest_shape));
        block.address = loop->far.address + begin;
        for (unsigned j = 0; j < 32; j++) {
            selftest_shape_add(&selftest_shape, begin + j * 64, 16);
        }
        selftest_layout_set(&layout, 32, &block, 1);
        selftest_get(loop, &loop->near, (uintptr_t)loop->near.bytes, &layout, 0,
                     layout.size);
        selftest_gathered(loop, &selftest_shape, "a layout that has changed");
    }
}

void selftest_local_inv(struct selftest_loop *loop)
{
    struct selftest_mem layout;
    uct_rkey_t rkey;

    selftest_loop_open(loop);
    selftest_rows_open(loop, &layout);
    rkey = layout.rkey.rkey;
    selftest_begin(loop, 2);
    selftest_put(loop, &loop->near, (uintptr_t)loop->near.bytes, &layout, 0,
                 SELFTEST_ROW);
    perf_uct_check(uct_md_mem_dereg(loop->uct.md, layout.memh), "a layout");
    selftest_put_fails(loop, rkey, 0, "a put to a freed layout");
}

/* --- costs ---------------------------------------------------------------- */
/* Returns the time to change a layout of @num entries and wait for it, in us:
 * the shortest, as other processes may use the processor. */
static double selftest_cost(struct selftest_loop *loop, size_t num)
{
    uct_dcx_block_t blocks[SELFTEST_PIECES];
    struct selftest_mem layout;
    uint64_t begin, least = UINT64_MAX;

    selftest_blocks(loop, blocks, num, 8);
    selftest_layout_open(loop, &layout, 1, blocks, num);
    for (unsigned i = 0; i < SELFTEST_CHANGES; i++) {
        blocks[0].length = 4 + i % 2;
        begin            = perf_now();
        selftest_layout_set(&layout, 1, blocks, num);
        begin = perf_now() - begin;
        least = (begin < least) ? begin : least;
    }
    selftest_layout_close(loop, &layout);
    return least / 1e3;
}

/* Measures the copy that a layout saves, in MB/s: packs blocks into @buffer,
 * from an area larger than any cache. The shortest time counts. */
static void selftest_copy_cost(uint8_t *buffer)
{
    bool has_room = selftest_memory_free() / 2 > SELFTEST_AREA;
    uint8_t *area = has_room ? malloc(SELFTEST_AREA) : NULL;
    uint64_t begin, least = UINT64_MAX;

    if (area == NULL) {
        selftest_note("no " UCT_DCX_PROFILE_COPY ": not enough memory");
        return;
    }
    memset(area, 1, SELFTEST_AREA); /* else all pages are the zero page */
    for (unsigned i = 0; i < 3; i++) {
        begin = perf_now();
        for (size_t pos = 0; pos < SELFTEST_AREA / 2; pos += SELFTEST_BLOCK) {
            memcpy(buffer + pos % SELFTEST_COPIED, area + 2 * pos,
                   SELFTEST_BLOCK);
        }
        begin = perf_now() - begin;
        least = (begin < least) ? begin : least;
    }
    free(area);
    selftest_value(UCT_DCX_PROFILE_COPY, "%.0f",
                   SELFTEST_AREA / 2 * 1e3 / least);
}

void selftest_umr_cost(struct selftest_loop *loop)
{
    static const unsigned nums[] = {4, 20, 52, 256, 1024};
    char key[32];

    selftest_loop_open(loop);
    for (unsigned i = 0; i < sizeof(nums) / sizeof(*nums); i++) {
        if (nums[i] <= loop->uct.max_pieces) {
            snprintf(key, sizeof(key), UCT_DCX_PROFILE_UMR_US "%u", nums[i]);
            selftest_value(key, "%.2f", selftest_cost(loop, nums[i]));
        }
    }
    selftest_copy_cost(loop->near.bytes);
}
