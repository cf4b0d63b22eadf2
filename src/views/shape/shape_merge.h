/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * When two nests that follow each other are one. They are as boxes make them:
 * counts of at least 2, nothing in them that goes on or is adjacent.
 */
#ifndef SHAPE_MERGE_H
#define SHAPE_MERGE_H

#include "shape.h"


/* Returns non-zero if 'nest' now has what 'next' had, too */
int shape_merge(shape_nest_t *nest, const shape_nest_t *next);

/* The block 'next' is adjacent to the last one of 'nest', a row: it takes that
 * over. Returns 0 if it is not so. */
int shape_merge_last(shape_nest_t *nest, shape_nest_t *next);

/* Blocks and the 'num_dims' inner dimensions are the same */
int shape_merge_same(const shape_nest_t *nest, const shape_nest_t *next,
                     unsigned num_dims);

#endif
