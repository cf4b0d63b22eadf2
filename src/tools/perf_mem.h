/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The memory of a process for a case, all of it registered: a buffer, with the
 * bytes in a shape, and staging, where they are contiguous. If the shape has
 * pieces, an mkey has their layout.
 */
#ifndef DCX_PERF_MEM_H
#define DCX_PERF_MEM_H

#include "perf_args.h"
#include "perf_uct.h"

enum { PERF_RKEY_MAX = 16 };

/* A case to measure; the peer gets this struct unchanged. */
struct perf_case {
    uint32_t op;
    uint32_t form;
    uint32_t sides;
    uint32_t window;
    uint64_t size; /* bytes, as the next two */
    uint64_t block;
    uint64_t stride; /* 0: twice the block */
};

/* Addresses and keys of a side, for the peer */
struct perf_keys {
    uint64_t buffer;
    uint64_t staging;
    uint32_t has_layout;
    uint8_t buffer_rkey[PERF_RKEY_MAX];
    uint8_t staging_rkey[PERF_RKEY_MAX];
    uint8_t layout_rkey[PERF_RKEY_MAX]; /* if has_layout; takes offsets */
};

struct perf_mem {
    struct perf_uct *uct;
    struct perf_shape shape;
    uint8_t *buffer;
    uint8_t *staging; /* one place for each transfer of the window */
    size_t staging_size;
    uct_mem_h buffer_memh;
    uct_mem_h staging_memh;
    uct_mem_h rows;   /* of a box: layout of all rows, below @layout; or NULL */
    uct_mem_h layout; /* NULL: in one piece, or dcx has no key for it */
};

/* Allocates and registers memory, and creates the layout. @in_pieces: in the
 * form of the case; false: in one piece. Ends the process if that fails. */
void perf_mem_create(struct perf_mem *mem, struct perf_uct *uct,
                     const struct perf_case *what, bool in_pieces);
void perf_mem_destroy(struct perf_mem *mem);

/* Packs the remote keys. */
void perf_mem_keys(const struct perf_mem *mem, struct perf_keys *keys);

/* Sets the layout, which is not NULL, again; waits until the device has it. */
void perf_mem_set_layout(const struct perf_mem *mem);

/* Returns place @i of staging. */
static inline uint8_t *perf_mem_stage(const struct perf_mem *mem, unsigned i)
{
    return mem->staging + i * mem->shape.size;
}

#endif
