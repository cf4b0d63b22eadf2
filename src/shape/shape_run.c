/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One loop for rows and one for lists, each made once for each usual size and both
 * directions: the compiler then knows how many bytes it copies.
 */
#include "shape_run.h"

#include <string.h>


/* 'bytes' and the direction are constants in what these are inlined into */
#define SHAPE_INLINE static inline __attribute__((always_inline))


/* The first and the last 'half' bytes, which overlap */
SHAPE_INLINE void
shape_copy_halves(char *dest, const char *src, size_t bytes, size_t half)
{
    char first[32], last[32];

    memcpy(first, src, half);
    memcpy(last, src + bytes - half, half);
    memcpy(dest, first, half);
    memcpy(dest + bytes - half, last, half);
}

/* A call costs more than to copy a few bytes; for more it has wider registers */
SHAPE_INLINE void shape_copy_few(char *dest, const char *src, size_t bytes)
{
    if ((bytes > 64) || (bytes < 4)) {
        memcpy(dest, src, bytes);
    } else if (bytes > 32) {
        shape_copy_halves(dest, src, bytes, 32);
    } else if (bytes > 16) {
        shape_copy_halves(dest, src, bytes, 16);
    } else if (bytes > 8) {
        shape_copy_halves(dest, src, bytes, 8);
    } else {
        shape_copy_halves(dest, src, bytes, 4);
    }
}

SHAPE_INLINE void
shape_copy_bytes(char *dest, const char *src, size_t bytes)
{
    if (__builtin_constant_p(bytes)) {
        memcpy(dest, src, bytes);
    } else {
        shape_copy_few(dest, src, bytes);
    }
}

SHAPE_INLINE void
shape_move(char *packed, char *at, size_t bytes, int is_scatter)
{
    if (is_scatter) {
        shape_copy_bytes(at, packed, bytes);
    } else {
        shape_copy_bytes(packed, at, bytes);
    }
}

SHAPE_INLINE char *shape_run_row(const shape_run_t *run, char *packed, char *at,
                                 size_t bytes, int is_scatter)
{
    ptrdiff_t stride = run->row.stride;
    size_t i;

    for (i = run->row.count; i > 0; --i) {
        shape_move(packed, at, bytes, is_scatter);
        packed += bytes;
        at     += stride;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_list(const shape_run_t *run, char *packed,
                                  char *at, size_t bytes, int is_scatter)
{
    const shape_place_t *place = run->list;
    const shape_place_t *end   = run->list + run->row.count;
    size_t length              = bytes;

    for (; place < end; ++place) {
        if (bytes == 0) {
            length = place[1].begin - place[0].begin;
        }
        shape_move(packed, at + place->offset, length, is_scatter);
        packed += length;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_rows(const shape_run_t *run, char *packed,
                                  size_t bytes, int is_scatter)
{
    char *at = run->at;
    size_t i;

    for (i = 0; i < run->rows.count; ++i) {
        packed = (run->list == NULL) ?
                 shape_run_row(run, packed, at, bytes, is_scatter) :
                 shape_run_list(run, packed, at, bytes, is_scatter);
        at    += run->rows.stride;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_by_size(const shape_run_t *run, char *packed,
                                     int is_scatter)
{
    switch (run->bytes) {
    case 4:
        return shape_run_rows(run, packed, 4, is_scatter);
    case 8:
        return shape_run_rows(run, packed, 8, is_scatter);
    case 12:
        return shape_run_rows(run, packed, 12, is_scatter);
    case 16:
        return shape_run_rows(run, packed, 16, is_scatter);
    case 24:
        return shape_run_rows(run, packed, 24, is_scatter);
    case 32:
        return shape_run_rows(run, packed, 32, is_scatter);
    case 48:
        return shape_run_rows(run, packed, 48, is_scatter);
    case 64:
        return shape_run_rows(run, packed, 64, is_scatter);
    default:
        return shape_run_rows(run, packed, run->bytes, is_scatter);
    }
}

char *shape_run_gather(const shape_run_t *run, char *packed)
{
    return shape_run_by_size(run, packed, 0);
}

char *shape_run_scatter(const shape_run_t *run, char *packed)
{
    return shape_run_by_size(run, packed, 1);
}
