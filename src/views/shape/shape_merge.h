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

/* Moves the last block of the row @nest to the block @next, which is adjacent.
 * Returns 0 if it is not. */
int shape_merge_last(shape_nest_t *nest, shape_nest_t *next);

/* Returns 1 if blocks and the @num_dims inner dimensions are the same. */
int shape_merge_same(const shape_nest_t *nest, const shape_nest_t *next,
                     unsigned num_dims);

#endif
