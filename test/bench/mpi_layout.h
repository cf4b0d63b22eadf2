/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of MPI for what test/bench measures of them, in groups:
 *
 *   vector   blocks of 8 B to 64 KiB, each as far from the next as it is long
 *   far      ... 64 KiB from the next: too far for an interleaved layout
 *   indexed  blocks of lengths and distances by lot
 *   ddt      what applications exchange (mpi_layout_apps.c)
 *   large    those of the above from 256 KiB in blocks of 256 B on
 */
#ifndef DCX_BENCH_MPI_LAYOUT_H
#define DCX_BENCH_MPI_LAYOUT_H

#include <mpi.h>
#include <stddef.h>

#define LAYOUT_MAX_SPAN  (80 << 20)
#define LAYOUT_MAX_BYTES (16 << 20)

typedef struct layout {
    const char   *name;
    MPI_Datatype type;   /* committed, with no byte below its buffer */
    size_t       bytes;  /* of data */
    size_t       span;   /* of the memory from the buffer on */
    size_t       block;  /* mean */
} layout_t;

/* Makes a group's layout of that number. Returns 0 if it has no so many. */
int layout_create(const char *group, unsigned number, layout_t *layout);

void layout_destroy(layout_t *layout);

/* Of the group ddt. What is left to fill in is 'bytes' and 'span'. */
int layout_create_app(unsigned number, layout_t *layout, size_t *blocks_p);

#endif
