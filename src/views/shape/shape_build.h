/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Builds a shape from its blocks, in the order in which they travel. What comes
 * at equal distances becomes a dimension, whatever calls it comes by: so a list
 * of the rows of a matrix ends as the same shape as a vector of them.
 */
#ifndef SHAPE_BUILD_H
#define SHAPE_BUILD_H

#include "shape.h"


typedef struct shape_builder shape_builder_t;

/* A builder of shapes of up to 'max_nests' nests, or NULL: no memory. Ended by
 * shape_build_end(). */
shape_builder_t *shape_build_begin(size_t max_nests);

/* Appends the blocks of a nest (its 'length' is not looked at). A count of 1 in
 * a dimension is allowed here, as are 0 bytes and a count of 0: nothing is
 * appended. */
void shape_build_add(shape_builder_t *builder, const shape_nest_t *nest);

/* Appends all that a shape has, 'offset' bytes further on, in 'num_dims'
 * dimensions outside of it, at most SHAPE_MAX_DIMS: what a type of types needs.
 * Several nests stay rounds of a shape only if nothing else is appended, before
 * or after. */
void shape_build_add_shape(shape_builder_t *builder, const shape_t *shape,
                           ptrdiff_t offset, const shape_dim_t *dims,
                           unsigned num_dims);

/* Frees the builder. Returns the shape, which the caller frees by free(), or
 * NULL: too many nests, offsets beyond 62 bits, a length beyond 63, no
 * memory. */
shape_t *shape_build_end(shape_builder_t *builder, ptrdiff_t extent);

#endif
