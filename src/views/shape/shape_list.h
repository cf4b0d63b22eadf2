/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A list of nests, which may be repeated as rounds. A shape is made of it when
 * all blocks have been appended.
 */
#ifndef SHAPE_LIST_H
#define SHAPE_LIST_H

#include "shape.h"


typedef struct shape_list {
    size_t num;
    shape_nest_t *nests; /* owned; from malloc() */
    size_t repeat;       /* rounds */
    ptrdiff_t stride;    /* bytes from a round to the next */
} shape_list_t;


/* Makes rounds of a list that repeats itself. First splits nests of few blocks,
 * which may have been merged by accident, unless the list would then have more
 * than @max_nests. May replace @nests. */
void shape_list_find_rounds(shape_list_t *list, size_t max_nests);

/* Returns the shape, a copy that the caller frees by free(). NULL: there is no
 * memory, or a sum overflows. */
shape_t *shape_list_to_shape(const shape_list_t *list, ptrdiff_t extent);

#endif
