/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The range of bytes that blocks cover, with all sums checked: later sums over
 * blocks with a valid range need no checks. Functions return 0 on overflow; the
 * range is then undefined.
 */
#ifndef SHAPE_RANGE_H
#define SHAPE_RANGE_H

#include "shape.h"


/* Offsets are below this, and above its negative: the difference of any two has
 * 63 bits at most. */
#define SHAPE_MAX_OFFSET ((ptrdiff_t)1 << 62)


typedef struct shape_range {
    ptrdiff_t begin;
    ptrdiff_t end;
    size_t length; /* bytes of all blocks, without gaps */
} shape_range_t;


static inline int shape_range_is_valid(const shape_range_t *range)
{
    return (range->begin > -SHAPE_MAX_OFFSET) &&
           (range->end < SHAPE_MAX_OFFSET);
}

static inline int shape_range_init(shape_range_t *range, ptrdiff_t offset,
                                   size_t bytes)
{
    range->begin  = offset;
    range->length = bytes;
    return !__builtin_add_overflow(offset, bytes, &range->end) &&
           shape_range_is_valid(range);
}

/* Extends @range to @count copies, at least 1, @stride bytes apart. */
static inline int shape_range_repeat(shape_range_t *range, size_t count,
                                     ptrdiff_t stride)
{
    ptrdiff_t *edge = (stride < 0) ? &range->begin : &range->end;
    ptrdiff_t length, last;

    if (__builtin_mul_overflow(range->length, count, &length) ||
        __builtin_mul_overflow(stride, count - 1, &last) ||
        __builtin_add_overflow(*edge, last, edge)) {
        return 0;
    }

    range->length = length;
    return shape_range_is_valid(range);
}

static inline int shape_range_repeat_dims(shape_range_t *range,
                                          const shape_dim_t *dims,
                                          unsigned num_dims)
{
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        if (!shape_range_repeat(range, dims[i].count, dims[i].stride)) {
            return 0;
        }
    }

    return 1;
}

static inline int shape_range_of_nest(shape_range_t *range,
                                      const shape_nest_t *nest)
{
    return shape_range_init(range, nest->offset, nest->bytes) &&
           shape_range_repeat_dims(range, nest->dims, nest->num_dims);
}

/* Stores the range of an element, @offset bytes further on. */
static inline int shape_range_of_shape(shape_range_t *range,
                                       const shape_t *shape, ptrdiff_t offset)
{
    range->length = shape->size;
    return !__builtin_add_overflow(shape->begin, offset, &range->begin) &&
           !__builtin_add_overflow(shape->end, offset, &range->end) &&
           shape_range_is_valid(range);
}

#endif
