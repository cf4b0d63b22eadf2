/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The command line of dcx_perf: the cases to measure, and how the two processes
 * find each other.
 */
#ifndef DCX_PERF_ARGS_H
#define DCX_PERF_ARGS_H

#include "perf_shape.h"

enum { PERF_BLOCKS_MAX = 16, PERF_WINDOW_MAX = 256 };

enum perf_op { PERF_PUT, PERF_GET, PERF_OPS };

/* Bits: the sides that have their bytes in pieces */
enum perf_side { PERF_LOCAL = 1, PERF_REMOTE = 2 };

enum perf_method {
    PERF_CONTIG,
    PERF_UMR,
    PERF_IOV,
    PERF_PACK,
    PERF_BLOCK,
    PERF_METHODS
};

/* The cases to measure; only the near process needs them. */
struct perf_plan {
    uint32_t ops; /* bits, as are the next three */
    uint32_t forms;
    uint32_t methods;
    uint32_t sides;
    uint64_t min_size;
    uint64_t max_size;
    uint32_t num_blocks;
    uint32_t window;
    uint64_t blocks[PERF_BLOCKS_MAX];
    uint64_t stride; /* 0: twice the block */
    uint32_t iters;
    uint32_t warmup;
    bool is_all; /* print all figures, not a summary */
};

struct perf_args {
    struct perf_plan plan;
    const char *device; /* NULL: the first */
    const char *host;   /* NULL: wait for the peer, or use PMIx */
    const char *port;   /* NULL: not given */
    const char *csv;    /* NULL: none */
};

extern const char *perf_op_names[PERF_OPS];
extern const char *perf_method_names[PERF_METHODS];

/* Returns "local", "remote" or "both". */
const char *perf_side_name(unsigned sides);

/* Parses the arguments. Ends the process if they are wrong, and for --help and
 * --version. */
void perf_args_parse(struct perf_args *args, int argc, char **argv);

#endif
