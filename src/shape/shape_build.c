/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A builder keeps a list of nests. What is appended is merged into the last one
 * where it can, and that into the one before: each merge makes the list shorter,
 * so the work is linear and the list as short as the blocks are regular.
 */
#include "shape_build.h"
#include "shape_box.h"
#include "shape_merge.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>


/* Offsets are within these, so the difference of two of them has 63 bits */
#define SHAPE_MAX_OFFSET ((ptrdiff_t)1 << 62)


enum {
    /* nests that the end of the list may have beyond the limit: a part of what
     * will be merged when it is complete, in each dimension */
    SHAPE_BUILD_SPARE = 2 * SHAPE_MAX_DIMS,

    /* blocks of which a nest is not worth its dimensions, in a list: blocks that
     * are equal and equidistant by accident */
    SHAPE_BUILD_FEW   = 8
};


struct shape_builder {
    int          is_failed;
    size_t       max_nests;
    size_t       capacity;
    size_t       num;
    shape_nest_t *nests;
    size_t       size;   /* of the nests, once */
    size_t       repeat; /* of all nests */
    ptrdiff_t    stride;
};


/* Bytes that a shape covers */
typedef struct shape_range {
    ptrdiff_t begin;
    ptrdiff_t end;
    size_t    length;
} shape_range_t;


static int shape_range_is_valid(const shape_range_t *range)
{
    return (range->begin > -SHAPE_MAX_OFFSET) &&
           (range->end < SHAPE_MAX_OFFSET);
}

static int shape_range_init(shape_range_t *range, ptrdiff_t offset,
                            size_t bytes)
{
    range->begin  = offset;
    range->length = bytes;
    return !__builtin_add_overflow(offset, bytes, &range->end) &&
           shape_range_is_valid(range);
}

/* What is covered by 'count' of it, 'stride' apart. Returns 0 on overflow. */
static int shape_range_repeat(shape_range_t *range, size_t count,
                              ptrdiff_t stride)
{
    ptrdiff_t *edge = (stride < 0) ? &range->begin : &range->end;
    ptrdiff_t length, last;

    if (__builtin_mul_overflow(range->length, count, &length) ||
        __builtin_mul_overflow(stride, count - 1, &last) ||
        __builtin_add_overflow(*edge, last, edge)) {
        return 0;
    }

    range->length = length;
    return shape_range_is_valid(range);
}

static int shape_range_repeat_dims(shape_range_t *range,
                                   const shape_dim_t *dims, unsigned num_dims)
{
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        if (!shape_range_repeat(range, dims[i].count, dims[i].stride)) {
            return 0;
        }
    }

    return 1;
}

static int shape_range_of_nest(shape_range_t *range, const shape_nest_t *nest)
{
    return shape_range_init(range, nest->offset, nest->bytes) &&
           shape_range_repeat_dims(range, nest->dims, nest->num_dims);
}

/* An element of a shape, 'offset' bytes further on */
static int shape_range_of_shape(shape_range_t *range, const shape_t *shape,
                                ptrdiff_t offset)
{
    range->length = shape->size;
    return !__builtin_add_overflow(shape->begin, offset, &range->begin) &&
           !__builtin_add_overflow(shape->end, offset, &range->end) &&
           shape_range_is_valid(range);
}

static size_t shape_nest_blocks(const shape_nest_t *nest)
{
    return nest->length / nest->bytes;
}


shape_builder_t *shape_build_begin(size_t max_nests)
{
    shape_builder_t *builder = calloc(1, sizeof(*builder));

    if (builder != NULL) {
        builder->max_nests = max_nests;
        builder->repeat    = 1;
    }

    return builder;
}

static int shape_build_reserve(shape_builder_t *builder)
{
    size_t capacity = (builder->capacity == 0) ? 8 : (2 * builder->capacity);
    shape_nest_t *nests;

    if (builder->num < builder->capacity) {
        return 1;
    }

    nests = realloc(builder->nests, capacity * sizeof(*nests));
    if (nests == NULL) {
        return 0;
    }

    builder->nests    = nests;
    builder->capacity = capacity;
    return 1;
}

/* Whether the limit leaves room for one more nest, and memory does */
static int shape_build_has_room(shape_builder_t *builder)
{
    return (builder->num < (builder->max_nests + SHAPE_BUILD_SPARE)) &&
           shape_build_reserve(builder);
}

static void shape_build_merge(shape_builder_t *builder)
{
    shape_nest_t *last;

    for (; builder->num > 1; --builder->num) {
        last = &builder->nests[builder->num - 1];
        if (!shape_merge(last - 1, last)) {
            shape_merge_last(last - 1, last);
            return;
        }
    }
}

static void shape_build_append(shape_builder_t *builder,
                               const shape_nest_t *nest)
{
    if (builder->is_failed || !shape_build_has_room(builder) ||
        __builtin_add_overflow(builder->size, nest->length, &builder->size) ||
        (builder->size > PTRDIFF_MAX)) {
        builder->is_failed = 1;
        return;
    }

    builder->nests[builder->num++] = *nest;
    shape_build_merge(builder);
}

/* All nests of a list, 'offset' bytes further on */
static void shape_build_append_list(shape_builder_t *builder,
                                    const shape_nest_t *nests, size_t num,
                                    ptrdiff_t offset)
{
    shape_nest_t nest;
    size_t i;

    for (i = 0; (i < num) && !builder->is_failed; ++i) {
        nest         = nests[i];
        nest.offset += offset;
        shape_build_append(builder, &nest);
    }
}

/* Something follows the rounds: from now on they are a part of a list */
static void shape_build_unroll(shape_builder_t *builder)
{
    shape_builder_t rounds = *builder;
    size_t i;

    if (builder->repeat == 1) {
        return;
    }

    builder->nests    = NULL;
    builder->num      = 0;
    builder->capacity = 0;
    builder->size     = 0;
    builder->repeat   = 1;
    for (i = 0; (i < rounds.repeat) && !builder->is_failed; ++i) {
        shape_build_append_list(builder, rounds.nests, rounds.num,
                                (ptrdiff_t)i * rounds.stride);
    }

    free(rounds.nests);
}

/* A nest: the 'num_dims' inner dimensions of a box of blocks */
static void shape_build_append_box(shape_builder_t *builder,
                                   const shape_box_t *box, unsigned num_dims,
                                   ptrdiff_t offset)
{
    shape_nest_t nest = {
        .offset   = offset,
        .bytes    = box->bytes,
        .length   = box->bytes,
        .num_dims = num_dims
    };
    unsigned i;

    for (i = 0; i < num_dims; ++i) {
        nest.dims[i]  = box->dims[i];
        nest.length  *= box->dims[i].count;
    }

    shape_build_append(builder, &nest);
}

/* How many dimensions of a box the nests have that it is appended as */
static unsigned shape_build_inner(const shape_box_t *box)
{
    return (box->rounds != NULL)             ? 0 :
           (box->num_dims < SHAPE_MAX_DIMS) ? box->num_dims :
                                              SHAPE_MAX_DIMS;
}

/* Dimensions that no nest takes become a list */
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

/* What stands alone keeps its outermost dimension as rounds, if no nest can have
 * it. Something that follows ends that. */
static void shape_build_append_rounds(shape_builder_t *builder,
                                      const shape_box_t *box, ptrdiff_t offset)
{
    const shape_dim_t *rounds = &box->dims[box->num_dims - 1];

    if ((builder->num > 0) || (box->num_dims == shape_build_inner(box))) {
        shape_build_unroll(builder);
        shape_build_unfold(builder, box, box->num_dims, offset);
        return;
    }

    shape_build_unfold(builder, box, box->num_dims - 1, offset);
    builder->repeat = rounds->count;
    builder->stride = rounds->stride;
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


static int shape_nest_is_few(const shape_nest_t *nest)
{
    return shape_nest_blocks(nest) <= SHAPE_BUILD_FEW;
}

/* Nests of the list if those of few blocks are a nest for each block */
static size_t shape_build_count_spread(const shape_builder_t *builder)
{
    size_t num = 0;
    size_t i;

    for (i = 0; i < builder->num; ++i) {
        num += shape_nest_is_few(&builder->nests[i]) ?
               shape_nest_blocks(&builder->nests[i]) : 1;
    }

    return num;
}

static shape_nest_t *shape_nest_spread(shape_nest_t *dest,
                                       const shape_nest_t *nest,
                                       unsigned num_dims, ptrdiff_t offset)
{
    const shape_dim_t *dim;
    size_t i;

    if (num_dims > 0) {
        dim = &nest->dims[num_dims - 1];
        for (i = 0; i < dim->count; ++i) {
            dest = shape_nest_spread(dest, nest, num_dims - 1,
                                     offset + ((ptrdiff_t)i * dim->stride));
        }
        return dest;
    }

    *dest = (shape_nest_t){
        .offset = offset,
        .bytes  = nest->bytes,
        .length = nest->bytes
    };
    return dest + 1;
}

/* Takes back what was merged by accident, so that rounds are found in a list */
static void shape_build_spread(shape_builder_t *builder)
{
    size_t num = shape_build_count_spread(builder);
    shape_nest_t *nests, *dest;
    size_t i;

    if ((num == builder->num) || (num > builder->max_nests)) {
        return;
    }

    nests = malloc(num * sizeof(*nests));
    if (nests == NULL) {
        return;
    }

    dest = nests;
    for (i = 0; i < builder->num; ++i) {
        if (shape_nest_is_few(&builder->nests[i])) {
            dest = shape_nest_spread(dest, &builder->nests[i],
                                     builder->nests[i].num_dims,
                                     builder->nests[i].offset);
        } else {
            *dest++ = builder->nests[i];
        }
    }

    free(builder->nests);
    builder->nests = nests;
    builder->num   = num;
}

/* Finds rounds in a list */
static void shape_build_find_rounds(shape_builder_t *builder)
{
    size_t period;

    if (builder->num < 2) {
        return;
    }

    shape_build_spread(builder);
    if (builder->repeat > 1) {
        return;
    }

    period = shape_merge_period(builder->nests, builder->num, &builder->stride);
    builder->repeat = builder->num / period;
    builder->num    = period;
}

/* Nothing but nests and rounds is set */
static shape_t *shape_alloc(const shape_builder_t *builder)
{
    size_t nests_size = builder->num * sizeof(shape_nest_t);
    shape_t *shape    = malloc(sizeof(*shape) + nests_size +
                               ((builder->num + 1) * sizeof(shape_place_t)));

    if (shape != NULL) {
        shape->num    = builder->num;
        shape->repeat = builder->repeat;
        shape->stride = (builder->repeat > 1) ? builder->stride : 0;
        shape->places = (shape_place_t*)(shape->nests + builder->num);
        if (nests_size > 0) {
            memcpy(shape->nests, builder->nests, nests_size);
        }
    }

    return shape;
}

/* What a round is: the sum of its nests */
static void shape_measure_round(shape_t *shape, shape_place_t *places,
                                shape_range_t *round)
{
    const shape_nest_t *nest = shape->nests;
    shape_range_t range;
    unsigned i;

    for (i = 0; i < shape->num; ++i, ++nest) {
        shape_range_of_nest(&range, nest);
        places[i].begin    = round->length;
        places[i].offset   = nest->offset;
        round->begin       = ((i == 0) || (range.begin < round->begin)) ?
                             range.begin : round->begin;
        round->end         = ((i == 0) || (range.end > round->end)) ?
                             range.end : round->end;
        round->length     += range.length;
        shape->num_blocks += shape_nest_blocks(nest);
        shape->is_list    &= (nest->num_dims == 0);
        shape->block       = (nest->bytes == shape->nests[0].bytes) ?
                             shape->block : 0;
    }

    shape->block    = shape->is_list ? shape->block : 0;
    places[i].begin = round->length;
}

/* Returns 0 on overflow */
static int shape_measure(shape_t *shape)
{
    shape_range_t range = {0};

    shape->num_blocks = 0;
    shape->is_list    = 1;
    shape->block      = (shape->num > 0) ? shape->nests[0].bytes : 0;
    shape_measure_round(shape, (shape_place_t*)(shape->nests + shape->num),
                        &range);
    shape->round = range.length;
    if (!shape_range_repeat(&range, shape->repeat, shape->stride)) {
        return 0;
    }

    shape->size        = range.length;
    shape->begin       = range.begin;
    shape->end         = range.end;
    shape->num_blocks *= shape->repeat;
    return 1;
}

static shape_t *shape_create(const shape_builder_t *builder, ptrdiff_t extent)
{
    static atomic_uint_fast64_t last_id;
    shape_t *shape = shape_alloc(builder);

    if (shape == NULL) {
        return NULL;
    }

    if (!shape_measure(shape)) {
        free(shape);
        return NULL;
    }

    shape->id     = atomic_fetch_add(&last_id, 1) + 1;
    shape->extent = extent;
    return shape;
}

shape_t *shape_build_end(shape_builder_t *builder, ptrdiff_t extent)
{
    shape_t *shape = NULL;

    if (!builder->is_failed) {
        shape_build_find_rounds(builder);
        if (builder->num <= builder->max_nests) {
            shape = shape_create(builder, extent);
        }
    }

    free(builder->nests);
    free(builder);
    return shape;
}
