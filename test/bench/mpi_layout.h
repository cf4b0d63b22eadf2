/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of MPI for the measurements of test/bench, in groups:
 *
 *   vector   blocks of 8 B to 64 KiB, with gaps of the same length
 *   far      blocks with gaps of 64 KiB: too far for an interleaved layout
 *   indexed  blocks of random lengths and distances
 *   ddt      types of applications (mpi_layout_apps.c)
 *   large    of the above, those from 256 KiB in blocks of 256 B on
 */
#ifndef DCX_BENCH_MPI_LAYOUT_H
#define DCX_BENCH_MPI_LAYOUT_H

#include <mpi.h>
#include <stddef.h>

#define LAYOUT_MAX_SPAN  (80 << 20)
#define LAYOUT_MAX_BYTES (16 << 20)

typedef struct layout {
    const char *name;
    MPI_Datatype type; /* committed, with lower bound 0 */
    size_t bytes;      /* bytes of data */
    size_t span;       /* bytes of memory from the start of the buffer */
    size_t block;      /* mean length */
} layout_t;

/* Creates the group's layout of that number. Returns 0 if the group has
 * fewer. */
int layout_create(const char *group, unsigned number, layout_t *layout);

void layout_destroy(layout_t *layout);

/* Creates a layout of the group ddt. The caller sets 'bytes' and 'span'. */
int layout_create_app(unsigned number, layout_t *layout, size_t *blocks_p);

#endif
