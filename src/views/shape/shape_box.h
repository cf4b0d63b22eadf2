/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A box: equal blocks or rounds in more dimensions than a nest may have. The
 * files of shape/ compute in this form. A dimension that continues the one
 * inside it is merged into that, so equal boxes have equal dimensions. A box
 * has no offset: it is kept beside it.
 */
#ifndef SHAPE_BOX_H
#define SHAPE_BOX_H

#include "shape.h"


enum { SHAPE_BOX_DIMS = 2 * SHAPE_MAX_DIMS + 2 };


typedef struct shape_box {
    const shape_t *rounds; /* shape whose rounds are repeated; NULL: blocks
                            * are */
    size_t bytes;          /* of a round or a block */
    unsigned num_dims;
    shape_dim_t dims[SHAPE_BOX_DIMS];
} shape_box_t;


/* Returns 1 if a step of @stride bytes begins where @dim ends. */
static inline int shape_dim_goes_on(const shape_dim_t *dim, ptrdiff_t stride)
{
    ptrdiff_t end;

    return !__builtin_mul_overflow(dim->stride, dim->count, &end) &&
           (end == stride);
}

/* Adds an outermost dimension, unless @count is 1. Merges it if it continues
 * the one inside it, or if its blocks are adjacent. */
static inline void shape_box_put(shape_box_t *box, size_t count,
                                 ptrdiff_t stride)
{
    shape_dim_t *last = &box->dims[box->num_dims];

    if (count == 1) {
        return;
    }

    if (box->num_dims > 0) {
        if (shape_dim_goes_on(&last[-1], stride)) {
            last[-1].count *= count;
            return;
        }
    } else if ((box->rounds == NULL) && (stride == (ptrdiff_t)box->bytes)) {
        box->bytes *= count;
        return;
    }

    last->count  = count;
    last->stride = stride;
    ++box->num_dims;
}

static inline void shape_box_put_dims(shape_box_t *box, const shape_dim_t *dims,
                                      unsigned num_dims)
{
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        shape_box_put(box, dims[i].count, dims[i].stride);
    }
}

static inline void shape_box_of_nest(shape_box_t *box, const shape_nest_t *nest)
{
    box->rounds   = NULL;
    box->bytes    = nest->bytes;
    box->num_dims = 0;
    shape_box_put_dims(box, nest->dims, nest->num_dims);
}

/* Describes an element: blocks if a round has one nest, else rounds. */
static inline void shape_box_of_shape(shape_box_t *box, const shape_t *shape)
{
    if (shape->num == 1) {
        shape_box_of_nest(box, shape->nests);
    } else {
        box->rounds   = shape;
        box->bytes    = shape->round;
        box->num_dims = 0;
    }

    shape_box_put(box, shape->repeat, shape->stride);
}

#endif
