/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Builds a shape from its blocks, in the order in which they travel. Blocks at
 * equal distances become a dimension, in one call or in several: a list of the
 * rows of a matrix results in the same shape as a vector of them.
 */
#ifndef SHAPE_BUILD_H
#define SHAPE_BUILD_H

#include "shape.h"


typedef struct shape_builder shape_builder_t;

/* Returns a builder of a shape of up to @max_nests nests, or NULL if there is
 * no memory. shape_build_end() frees it. */
shape_builder_t *shape_build_begin(size_t max_nests);

/* Appends the blocks of @nest, whose @length is ignored. A dimension may have a
 * count of 1. With 0 bytes or a count of 0, nothing is appended. After an
 * error, shape_build_end() returns NULL. */
void shape_build_add(shape_builder_t *builder, const shape_nest_t *nest);

/* Appends all blocks of @shape, @offset bytes further on, repeated in @num_dims
 * outer dimensions, at most SHAPE_MAX_DIMS; dims[0] is the innermost. @shape
 * may be freed afterwards. Rounds of several nests are unrolled if anything
 * else is appended, before or after. */
void shape_build_add_shape(shape_builder_t *builder, const shape_t *shape,
                           ptrdiff_t offset, const shape_dim_t *dims,
                           unsigned num_dims);

/* Frees the builder. Returns the shape, which the caller frees by free().
 * @extent: bytes from an element to the next. NULL: too many nests, offsets
 * beyond 62 bits, a length beyond 63 bits, or no memory. */
shape_t *shape_build_end(shape_builder_t *builder, ptrdiff_t extent);

#endif
