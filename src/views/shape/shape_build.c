/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A builder keeps a list of nests. An appended nest is merged into the last one
 * if possible, and that into the one before. Each merge makes the list shorter,
 * so the work is linear, and regular blocks make a short list.
 */
#include "shape_build.h"
#include "shape_box.h"
#include "shape_list.h"
#include "shape_merge.h"
#include "shape_range.h"

#include <stdlib.h>
#include <string.h>


enum {
    /* nests that the list may have beyond the limit: at its end, each dimension
     * may have nests that are merged only when the dimension is complete */
    SHAPE_BUILD_SPARE = 2 * SHAPE_MAX_DIMS
};


struct shape_builder {
    int is_failed;
    size_t max_nests;
    size_t capacity; /* of the list */
    size_t size;     /* bytes of the nests, in one round */
    shape_list_t list;
};


shape_builder_t *shape_build_begin(size_t max_nests)
{
    shape_builder_t *builder = calloc(1, sizeof(*builder));

    if (builder != NULL) {
        builder->max_nests   = max_nests;
        builder->list.repeat = 1;
    }

    return builder;
}

static int shape_build_reserve(shape_builder_t *builder)
{
    size_t capacity = (builder->capacity == 0) ? 8 : (2 * builder->capacity);
    shape_nest_t *nests;

    if (builder->list.num < builder->capacity) {
        return 1;
    }

    nests = realloc(builder->list.nests, capacity * sizeof(*nests));
    if (nests == NULL) {
        return 0;
    }

    builder->capacity   = capacity;
    builder->list.nests = nests;
    return 1;
}

/* Returns 1 if the limit and memory allow one more nest. */
static int shape_build_has_room(shape_builder_t *builder)
{
    return (builder->list.num < (builder->max_nests + SHAPE_BUILD_SPARE)) &&
           shape_build_reserve(builder);
}

static void shape_build_merge(shape_list_t *list)
{
    shape_nest_t *last;

    for (; list->num > 1; --list->num) {
        last = &list->nests[list->num - 1];
        if (!shape_merge(last - 1, last)) {
            shape_merge_last(last - 1, last);
            return;
        }
    }
}

static void shape_build_append(shape_builder_t *builder,
                               const shape_nest_t *nest)
{
    shape_list_t *list = &builder->list;

    if (builder->is_failed || !shape_build_has_room(builder) ||
        __builtin_add_overflow(builder->size, nest->length, &builder->size) ||
        (builder->size > PTRDIFF_MAX)) {
        builder->is_failed = 1;
        return;
    }

    list->nests[list->num++] = *nest;
    shape_build_merge(list);
}

/* Appends all nests of a list, @offset bytes further on. */
static void shape_build_append_list(shape_builder_t *builder,
                                    const shape_nest_t *nests, size_t num,
                                    ptrdiff_t offset)
{
    shape_nest_t nest;
    size_t i;

    for (i = 0; (i < num) && !builder->is_failed; ++i) {
        nest = nests[i];
        nest.offset += offset;
        shape_build_append(builder, &nest);
    }
}

/* Turns the rounds into a list, before something else is appended. */
static void shape_build_unroll(shape_builder_t *builder)
{
    shape_list_t rounds = builder->list;
    size_t i;

    if (rounds.repeat == 1) {
        return;
    }

    builder->capacity = 0;
    builder->size     = 0;
    builder->list     = (shape_list_t){.repeat = 1};
    for (i = 0; (i < rounds.repeat) && !builder->is_failed; ++i) {
        shape_build_append_list(builder, rounds.nests, rounds.num,
                                (ptrdiff_t)i * rounds.stride);
    }

    free(rounds.nests);
}

/* Appends a nest: the @num_dims inner dimensions of a box of blocks. */
static void shape_build_append_box(shape_builder_t *builder,
                                   const shape_box_t *box, unsigned num_dims,
                                   ptrdiff_t offset)
{
    shape_nest_t nest = {
        .offset   = offset,
        .bytes    = box->bytes,
        .length   = box->bytes,
        .num_dims = num_dims,
    };
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        nest.dims[i] = box->dims[i];
        nest.length *= box->dims[i].count;
    }

    shape_build_append(builder, &nest);
}

/* Returns how many dimensions of the box a nest takes. */
static unsigned shape_build_inner(const shape_box_t *box)
{
    if (box->rounds != NULL) {
        return 0;
    }

    return (box->num_dims < SHAPE_MAX_DIMS) ? box->num_dims : SHAPE_MAX_DIMS;
}

/* Appends a box as nests: dimensions that no nest takes become a list. */
static void shape_build_unfold(shape_builder_t *builder, const shape_box_t *box,
                               unsigned num_dims, ptrdiff_t offset)
{
    const shape_dim_t *dim;
    size_t i;

    if (num_dims > shape_build_inner(box)) {
        dim = &box->dims[num_dims - 1];
        for (i = 0; (i < dim->count) && !builder->is_failed; ++i) {
            shape_build_unfold(builder, box, num_dims - 1,
                               offset + ((ptrdiff_t)i * dim->stride));
        }
    } else if (box->rounds == NULL) {
        shape_build_append_box(builder, box, num_dims, offset);
    } else {
        shape_build_append_list(builder, box->rounds->nests, box->rounds->num,
                                offset);
    }
}

static int shape_dims_are_empty(const shape_dim_t *dims, unsigned num_dims)
{
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        if (dims[i].count == 0) {
            return 1;
        }
    }

    return 0;
}

void shape_build_add(shape_builder_t *builder, const shape_nest_t *nest)
{
    shape_range_t range;
    shape_box_t box;

    if ((nest->bytes == 0) ||
        shape_dims_are_empty(nest->dims, nest->num_dims)) {
        return;
    }

    if (!shape_range_of_nest(&range, nest)) {
        builder->is_failed = 1;
        return;
    }

    shape_box_of_nest(&box, nest);
    shape_build_unroll(builder);
    shape_build_unfold(builder, &box, box.num_dims, nest->offset);
}

/* Appends a box. If it is the first, and no nest takes its outermost dimension,
 * that becomes rounds, until something else is appended. */
static void shape_build_append_rounds(shape_builder_t *builder,
                                      const shape_box_t *box, ptrdiff_t offset)
{
    unsigned outer = box->num_dims - 1;

    if ((builder->list.num > 0) || (box->num_dims == shape_build_inner(box))) {
        shape_build_unroll(builder);
        shape_build_unfold(builder, box, box->num_dims, offset);
        return;
    }

    shape_build_unfold(builder, box, outer, offset);
    builder->list.repeat = box->dims[outer].count;
    builder->list.stride = box->dims[outer].stride;
}

void shape_build_add_shape(shape_builder_t *builder, const shape_t *shape,
                           ptrdiff_t offset, const shape_dim_t *dims,
                           unsigned num_dims)
{
    shape_range_t range;
    shape_box_t box;

    if ((shape->size == 0) || shape_dims_are_empty(dims, num_dims)) {
        return;
    }

    if (!shape_range_of_shape(&range, shape, offset) ||
        !shape_range_repeat_dims(&range, dims, num_dims)) {
        builder->is_failed = 1;
        return;
    }

    shape_box_of_shape(&box, shape);
    shape_box_put_dims(&box, dims, num_dims);
    if (box.rounds == NULL) {
        offset += shape->nests[0].offset;
    }

    shape_build_append_rounds(builder, &box, offset);
}


shape_t *shape_build_end(shape_builder_t *builder, ptrdiff_t extent)
{
    shape_t *shape = NULL;

    if (!builder->is_failed) {
        shape_list_find_rounds(&builder->list, builder->max_nests);
        if (builder->list.num <= builder->max_nests) {
            shape = shape_list_to_shape(&builder->list, extent);
        }
    }

    free(builder->list.nests);
    free(builder);
    return shape;
}
