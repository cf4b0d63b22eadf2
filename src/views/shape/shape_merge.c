/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "shape_merge.h"


int shape_merge_same(const shape_nest_t *nest, const shape_nest_t *next,
                     unsigned num_dims)
{
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        if ((nest->dims[i].count != next->dims[i].count) ||
            (nest->dims[i].stride != next->dims[i].stride)) {
            return 0;
        }
    }

    return nest->bytes == next->bytes;
}

static int shape_merge_adjacent(shape_nest_t *nest, const shape_nest_t *next)
{
    if ((nest->num_dims > 0) || (next->num_dims > 0) ||
        ((next->offset - (ptrdiff_t)nest->bytes) != nest->offset)) {
        return 0;
    }

    nest->bytes += next->bytes;
    nest->length += next->length;
    return 1;
}

/* Returns the count of dimension @num_dims, the outermost; 1 if the nest does
 * not have it. */
static size_t shape_merge_count(const shape_nest_t *nest, unsigned num_dims)
{
    return (nest->num_dims == num_dims) ? nest->dims[num_dims - 1].count : 1;
}

/* Merges nests along their outermost dimension: each has that dimension or is
 * one step of it, and @next begins where @nest ends. */
static int shape_merge_along(shape_nest_t *nest, const shape_nest_t *next)
{
    unsigned num_dims = (nest->num_dims > next->num_dims) ? nest->num_dims :
                                                            next->num_dims;
    unsigned inner    = num_dims - 1;
    shape_dim_t dim;
    ptrdiff_t end;

    if ((num_dims == 0) || (nest->num_dims < inner) ||
        (next->num_dims < inner) || !shape_merge_same(nest, next, inner)) {
        return 0;
    }

    dim.count  = shape_merge_count(nest, num_dims);
    dim.stride = (nest->num_dims == num_dims) ? nest->dims[inner].stride :
                                                next->dims[inner].stride;
    if (((next->num_dims == num_dims) &&
         (next->dims[inner].stride != dim.stride)) ||
        __builtin_mul_overflow(dim.stride, dim.count, &end) ||
        __builtin_add_overflow(nest->offset, end, &end) ||
        (next->offset != end)) {
        return 0;
    }

    dim.count += shape_merge_count(next, num_dims);
    nest->num_dims    = num_dims;
    nest->dims[inner] = dim;
    nest->length += next->length;
    return 1;
}

/* Merges two equal nests into a new dimension. */
static int shape_merge_pair(shape_nest_t *nest, const shape_nest_t *next)
{
    shape_dim_t *dim = &nest->dims[nest->num_dims];
    ptrdiff_t stride;

    if ((nest->num_dims != next->num_dims) ||
        (nest->num_dims == SHAPE_MAX_DIMS) ||
        !shape_merge_same(nest, next, nest->num_dims) ||
        __builtin_sub_overflow(next->offset, nest->offset, &stride)) {
        return 0;
    }

    dim->count  = 2;
    dim->stride = stride;
    nest->length += next->length;
    ++nest->num_dims;
    return 1;
}

int shape_merge(shape_nest_t *nest, const shape_nest_t *next)
{
    return shape_merge_adjacent(nest, next) || shape_merge_along(nest, next) ||
           shape_merge_pair(nest, next);
}

int shape_merge_last(shape_nest_t *nest, shape_nest_t *next)
{
    shape_dim_t *dim = &nest->dims[0];
    ptrdiff_t last;

    if ((nest->num_dims != 1) || (next->num_dims != 0)) {
        return 0;
    }

    last = nest->offset + ((ptrdiff_t)(dim->count - 1) * dim->stride);
    if ((next->offset - (ptrdiff_t)nest->bytes) != last) {
        return 0;
    }

    next->offset = last;
    next->bytes += nest->bytes;
    next->length += nest->bytes;
    nest->length -= nest->bytes;
    nest->num_dims = (--dim->count > 1);
    return 1;
}
