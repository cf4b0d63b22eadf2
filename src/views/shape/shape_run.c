/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * One loop for rows and one for lists. The compiler instantiates each for every
 * usual block size, for every step that copies other sizes, and for both
 * directions.
 */
#include "shape_run.h"

#include <string.h>


/* Inlining makes @bytes or @step, and the direction, constants. */
#define SHAPE_INLINE static inline __attribute__((always_inline))


enum {
    SHAPE_NO_STEP   = 0,    /* memcpy(): wider registers, for long blocks */
    SHAPE_MAX_STEPS = 96,   /* bytes up to which steps beat a call */
    SHAPE_FAR       = 4096, /* bytes between blocks of one set of the cache */
    SHAPE_FAR_LOADS = 12    /* lines of a set */
};


/* Copies @bytes in steps. The last step may overlap the one before. */
SHAPE_INLINE void shape_copy_bytes(char *dest, const char *src, size_t bytes,
                                   size_t step)
{
    size_t i;

    if (step == SHAPE_NO_STEP) {
        memcpy(dest, src, bytes);
        return;
    }

    for (i = 0; (i + step) < bytes; i += step) {
        memcpy(dest + i, src + i, step);
    }
    memcpy(dest + bytes - step, src + bytes - step, step);
}

SHAPE_INLINE void shape_move(char *packed, char *at, size_t bytes, size_t step,
                             int is_scatter)
{
    if (is_scatter) {
        shape_copy_bytes(at, packed, bytes, step);
    } else {
        shape_copy_bytes(packed, at, bytes, step);
    }
}

/* Returns the widest step that @bytes have room for. */
SHAPE_INLINE size_t shape_step(size_t bytes)
{
    if (bytes > SHAPE_MAX_STEPS) {
        return SHAPE_NO_STEP;
    }

    return (bytes >= 16) ? 16 : (bytes >= 8) ? 8 : (bytes >= 4) ? 4 : 1;
}

/* Copies a block of a list whose blocks differ in length. */
SHAPE_INLINE void shape_move_any(char *packed, char *at, size_t bytes,
                                 int is_scatter)
{
    switch (shape_step(bytes)) {
    case 1:
        shape_move(packed, at, bytes, 1, is_scatter);
        break;
    case 4:
        shape_move(packed, at, bytes, 4, is_scatter);
        break;
    case 8:
        shape_move(packed, at, bytes, 8, is_scatter);
        break;
    case 16:
        shape_move(packed, at, bytes, 16, is_scatter);
        break;
    default:
        shape_move(packed, at, bytes, SHAPE_NO_STEP, is_scatter);
    }
}

SHAPE_INLINE char *shape_run_any(const shape_run_t *run, char *packed, char *at,
                                 int is_scatter)
{
    const shape_place_t *place = run->list;
    const shape_place_t *end   = run->list + run->row.count;
    size_t bytes;

    for (; place < end; ++place) {
        bytes = place[1].begin - place[0].begin;
        shape_move_any(packed, at + place->offset, bytes, is_scatter);
        packed += bytes;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_list(const shape_run_t *run, char *packed,
                                  char *at, size_t bytes, size_t step,
                                  int is_scatter)
{
    const shape_place_t *place = run->list;
    const shape_place_t *end   = run->list + run->row.count;

    for (; place < end; ++place) {
        shape_move(packed, at + place->offset, bytes, step, is_scatter);
        packed += bytes;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_row(const shape_run_t *run, char *packed, char *at,
                                 size_t bytes, size_t step, int is_scatter)
{
    ptrdiff_t stride = run->row.stride;
    size_t i;

    for (i = run->row.count; i > 0; --i) {
        shape_move(packed, at, bytes, step, is_scatter);
        packed += bytes;
        at += stride;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_rows(const shape_run_t *run, char *packed,
                                  size_t bytes, size_t step, int is_scatter)
{
    char *at = run->at;
    size_t i;

    for (i = 0; i < run->rows.count; ++i) {
        if (bytes == 0) {
            packed = shape_run_any(run, packed, at, is_scatter);
        } else if (run->list != NULL) {
            packed = shape_run_list(run, packed, at, bytes, step, is_scatter);
        } else {
            packed = shape_run_row(run, packed, at, bytes, step, is_scatter);
        }
        at += run->rows.stride;
    }

    return packed;
}

SHAPE_INLINE char *shape_run_by_step(const shape_run_t *run, char *packed,
                                     int is_scatter)
{
    switch (shape_step(run->bytes)) {
    case 1:
        return shape_run_rows(run, packed, run->bytes, 1, is_scatter);
    case 4:
        return shape_run_rows(run, packed, run->bytes, 4, is_scatter);
    case 8:
        return shape_run_rows(run, packed, run->bytes, 8, is_scatter);
    case 16:
        return shape_run_rows(run, packed, run->bytes, 16, is_scatter);
    default:
        return shape_run_rows(run, packed, run->bytes, SHAPE_NO_STEP,
                              is_scatter);
    }
}

SHAPE_INLINE char *shape_run_by_size(const shape_run_t *run, char *packed,
                                     int is_scatter)
{
    switch (run->bytes) {
    case 0:
        return shape_run_rows(run, packed, 0, SHAPE_NO_STEP, is_scatter);
    case 4:
        return shape_run_rows(run, packed, 4, 4, is_scatter);
    case 8:
        return shape_run_rows(run, packed, 8, 8, is_scatter);
    case 12:
        return shape_run_rows(run, packed, 12, 12, is_scatter);
    case 16:
        return shape_run_rows(run, packed, 16, 16, is_scatter);
    case 24:
        return shape_run_rows(run, packed, 24, 24, is_scatter);
    case 32:
        return shape_run_rows(run, packed, 32, 32, is_scatter);
    case 64:
        return shape_run_rows(run, packed, 64, 64, is_scatter);
    default:
        return shape_run_by_step(run, packed, is_scatter);
    }
}

static char *shape_run_near(const shape_run_t *run, char *packed)
{
    return shape_run_by_size(run, packed, 0);
}

/* Gathers short blocks that all map to one set of the L1 cache. More loads at
 * once than the set has lines evict each other, which costs up to a third of
 * the time. So the next loads wait for the last byte of SHAPE_FAR_LOADS
 * blocks. */
static char *shape_run_far(const shape_run_t *run, char *packed)
{
    static const volatile char none = 0; /* hides the value from the compiler */
    shape_run_t part                = *run;
    size_t i, left;

    part.rows.count = 1;
    for (i = 0; i < run->rows.count; ++i) {
        part.at = run->at + ((ptrdiff_t)i * run->rows.stride);
        for (left = run->row.count; left > 0; left -= part.row.count) {
            part.row.count = (left < SHAPE_FAR_LOADS) ? left : SHAPE_FAR_LOADS;
            packed         = shape_run_near(&part, packed);

            part.at += (ptrdiff_t)part.row.count * part.row.stride;
            part.at += packed[-1] & none;
        }
    }

    return packed;
}

static int shape_run_is_far(const shape_run_t *run)
{
    return (run->list == NULL) && (run->bytes <= SHAPE_MAX_STEPS) &&
           (run->row.count > SHAPE_FAR_LOADS) &&
           ((run->row.stride % SHAPE_FAR) == 0);
}

char *shape_run_gather(const shape_run_t *run, char *packed)
{
    return shape_run_is_far(run) ? shape_run_far(run, packed) :
                                   shape_run_near(run, packed);
}

char *shape_run_scatter(const shape_run_t *run, char *packed)
{
    return shape_run_by_size(run, packed, 1);
}
