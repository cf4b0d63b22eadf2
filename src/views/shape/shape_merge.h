/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Merges two nests that follow each other. Both have the form that boxes give:
 * counts of at least 2, no dimension that continues another, no adjacent
 * blocks.
 */
#ifndef SHAPE_MERGE_H
#define SHAPE_MERGE_H

#include "shape.h"


/* Merges @next into @nest. Returns 0 if that is not possible. */
int shape_merge(shape_nest_t *nest, const shape_nest_t *next);

/* Moves the last block of @nest into @next, an adjacent block. Returns 0 unless
 * @nest has one dimension, and @next has none and is adjacent. */
int shape_merge_last(shape_nest_t *nest, shape_nest_t *next);

/* Returns 1 if the bytes of a block and the @num_dims inner dimensions are the
 * same. Both nests must have these. */
int shape_merge_same(const shape_nest_t *nest, const shape_nest_t *next,
                     unsigned num_dims);

#endif
