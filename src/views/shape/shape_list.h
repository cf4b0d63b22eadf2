/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A list of nests, which may be rounds: what a shape is made of when no more is
 * to be appended.
 */
#ifndef SHAPE_LIST_H
#define SHAPE_LIST_H

#include "shape.h"


typedef struct shape_list {
    size_t       num;
    shape_nest_t *nests;
    size_t       repeat; /* of all nests */
    ptrdiff_t    stride;
} shape_list_t;


/* Makes rounds of a list that repeats itself. What was merged by accident is
 * taken back first, as long as the list has no more than 'max_nests'. */
void shape_list_find_rounds(shape_list_t *list, size_t max_nests);

/* NULL: no memory, or sums that overflow */
shape_t *shape_list_to_shape(const shape_list_t *list, ptrdiff_t extent);

#endif
