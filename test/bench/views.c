/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Cost of opening a view (zero-copy datatype) of data with a shape, and of
 * closing it, for callgrind to count:
 *
 *     views dcx DEVICE
 *
 *   again  the data that the view had before
 *   new    other data: one view, two buffers in turn
 *
 * Opening a view waits for its UMRs, and the count includes polling for them.
 * softhca needs the fewest polls.
 */
#define _GNU_SOURCE
#include "collect.h"
#include "views/shape/shape_build.h"
#include "views/view/dcx_view_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, HALF = BENCH_MEM_SIZE / 2 };

extern const uct_dcx_view_ops_t uct_dcx_view_ops;

/* Creates a list of blocks at irregular distances. */
static shape_t *list_of(size_t pieces)
{
    shape_builder_t *builder = shape_build_begin(pieces);
    shape_nest_t nest        = {.bytes = 256};
    size_t i;

    for (i = 0; i < pieces; i++) {
        shape_build_add(builder, &nest);
        nest.offset += 512 + (8 * ((i * i) % 61));
    }
    return shape_build_end(builder, HALF);
}

/* Creates a face of a box: rows of 256 bytes. */
static shape_t *face_of(size_t pieces)
{
    shape_builder_t *builder = shape_build_begin(1);
    shape_nest_t nest        = {
               .bytes    = 256,
               .num_dims = 2,
               .dims     = {{pieces / 8, 512}, {8, HALF / 8}},
    };

    shape_build_add(builder, &nest);
    return shape_build_end(builder, HALF);
}

static const struct {
    const char *name;
    shape_t *(*make)(size_t pieces);
    size_t pieces;
} shapes[] = {
    {"list12", list_of, 12},
    {"list1000", list_of, 1000},
    {"face1000", face_of, 1000},
};

static void open_view(const struct bench_pair *pair, const shape_t *shape,
                      unsigned half, int on)
{
    const shape_data_t data = {shape, (char *)pair->mem + (half * HALF), 1};
    void *md                = pair->md;
    uct_dcx_view_status_t status;
    uct_dcx_view_t *view;

    bench_collect(on);
    status = uct_dcx_view_ops.open(&md, 1, &data, 0, &view);
    bench_collect(on);
    if (status != UCT_DCX_VIEW_OK) {
        fprintf(stderr, "no view: %d\n", status);
        exit(1);
    }
    bench_collect(on);
    uct_dcx_view_ops.close(view, 0);
    bench_collect(on);
}

static void count(const struct bench_pair *pair, unsigned index)
{
    shape_t *shape = shapes[index].make(shapes[index].pieces);
    unsigned half, i;

    for (half = 0; half < 2; half++) {
        open_view(pair, shape, 0, 0);
        open_view(pair, shape, half, 0);
        for (i = 0; i < ROUNDS; i++) {
            open_view(pair, shape, i & half, 1);
        }
        bench_dump(half ? "new" : "again", shapes[index].name, "op", ROUNDS, 0);
    }
    free(shape);
}

int main(int argc, char **argv)
{
    struct bench_pair pair;
    void *md;
    unsigned i;

    if (argc < 3) {
        fprintf(stderr, "usage: views dcx DEVICE\n");
        return 2;
    }

    setenv("UCX_DCX_TYPES", "y", 1);
    setenv("UCX_DCX_TYPES_MAX", "1", 1);
    setenv("UCX_DCX_RCACHE", "y", 1);
    uct_dcx_view_ops.enable();
    bench_pair_open(&pair, argv[1], argv[2]);
    md = pair.md;
    for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        count(&pair, i);
    }
    uct_dcx_view_ops.leave(&md, 1);
    bench_pair_close(&pair);
    return 0;
}
