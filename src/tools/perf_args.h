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
    PERF_CONTIG, /* the same bytes in one piece */
    PERF_UMR,    /* by an mkey with a layout */
    PERF_IOV,    /* by strides in an operation */
    PERF_PACK,   /* packed by the processors */
    PERF_BLOCK,  /* an operation for each block */
    PERF_METHODS
};

/* The cases to measure; only the near process needs them. */
struct perf_plan {
    uint32_t ops;      /* bits 1 << enum perf_op */
    uint32_t forms;    /* bits 1 << enum perf_form */
    uint32_t methods;  /* bits 1 << enum perf_method */
    uint32_t sides;    /* bits of enum perf_side */
    uint64_t min_size; /* bytes; doubled up to max_size */
    uint64_t max_size;
    uint32_t num_blocks;
    uint32_t window;                  /* transfers under way at a time */
    uint64_t blocks[PERF_BLOCKS_MAX]; /* bytes */
    uint64_t stride;                  /* bytes; 0: twice the block */
    uint32_t iters;
    uint32_t warmup;
    bool is_all; /* print all figures, not a summary */
};

struct perf_args {
    struct perf_plan plan;
    const char *device; /* NULL: the first */
    const char *host;   /* NULL: wait for the peer, or use PMIx */
    const char *port;   /* NULL: PERF_PORT, or use PMIx */
    const char *csv;    /* NULL: none */
};

extern const char *perf_op_names[PERF_OPS];
extern const char *perf_method_names[PERF_METHODS];

/* Returns "local", "remote" or "both". @sides: at least one bit */
const char *perf_side_name(unsigned sides);

/* Parses the arguments. Ends the process if they are wrong, and for --help and
 * --version. */
void perf_args_parse(struct perf_args *args, int argc, char **argv);

#endif
