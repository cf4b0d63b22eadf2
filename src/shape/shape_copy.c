/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Gather and scatter by the processor. Any byte of the data is found by division,
 * and by search in a list; from there on the blocks are gone through. Both ways
 * are one: a copy of rows from one stride to another.
 */
#include "shape_box.h"

#include <string.h>


/* A copy under way: the side that is contiguous */
typedef struct shape_copy {
    char   *packed;
    size_t left;
    int    is_scatter;
} shape_copy_t;


/* What a copy goes through */
typedef struct shape_way {
    shape_box_t box;
    size_t      lengths[SHAPE_BOX_DIMS]; /* of what a dimension counts */
} shape_way_t;


/* 'count' rows of 'bytes'; 'bytes' is a constant where this is inlined */
static inline __attribute__((always_inline)) void
shape_copy_rows_of(char *dest, ptrdiff_t dest_stride, const char *src,
                   ptrdiff_t src_stride, size_t bytes, size_t count)
{
    for (; count > 0; --count) {
        memcpy(dest, src, bytes);
        dest += dest_stride;
        src  += src_stride;
    }
}

static void shape_copy_rows(char *dest, ptrdiff_t dest_stride, const char *src,
                            ptrdiff_t src_stride, size_t bytes, size_t count)
{
    switch (bytes) {
    case 4:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 4, count);
        break;
    case 8:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 8, count);
        break;
    case 12:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 12, count);
        break;
    case 16:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 16, count);
        break;
    case 24:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 24, count);
        break;
    case 32:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, 32, count);
        break;
    default:
        shape_copy_rows_of(dest, dest_stride, src, src_stride, bytes, count);
    }
}

/* 'count' whole rows at 'at'. They are left. */
static inline void shape_copy_whole(shape_copy_t *copy, char *at,
                                    ptrdiff_t stride, size_t bytes,
                                    size_t count)
{
    if (copy->is_scatter) {
        shape_copy_rows(at, stride, copy->packed, bytes, bytes, count);
    } else {
        shape_copy_rows(copy->packed, bytes, at, stride, bytes, count);
    }

    copy->packed += count * bytes;
    copy->left   -= count * bytes;
}

/* A block, or as much of it as is left */
static inline void shape_copy_block(shape_copy_t *copy, char *at, size_t bytes)
{
    shape_copy_whole(copy, at, 0, (bytes < copy->left) ? bytes : copy->left, 1);
}

/* A row of blocks, from byte 'offset' on */
static void shape_copy_row(shape_copy_t *copy, char *at, size_t bytes,
                           const shape_dim_t *dim, size_t offset)
{
    size_t first = offset / bytes;
    size_t rest  = offset % bytes;
    size_t whole;

    at += (ptrdiff_t)first * dim->stride;
    if (rest > 0) {
        shape_copy_block(copy, at + rest, bytes - rest);
        at += dim->stride;
        ++first;
    }

    whole = copy->left / bytes;
    if (whole >= (dim->count - first)) {
        shape_copy_whole(copy, at, dim->stride, bytes, dim->count - first);
        return;
    }

    shape_copy_whole(copy, at, dim->stride, bytes, whole);
    shape_copy_block(copy, at + ((ptrdiff_t)whole * dim->stride), bytes);
}


static void shape_copy_round(shape_copy_t *copy, const shape_t *shape, char *at,
                             size_t offset);

/* Through the 'num_dims' inner dimensions, from byte 'offset' on */
static void shape_copy_dims(shape_copy_t *copy, const shape_way_t *way,
                            unsigned num_dims, char *at, size_t offset)
{
    const shape_dim_t *dim = way->box.dims + num_dims - 1;
    size_t i;

    if ((num_dims == 0) && (way->box.rounds != NULL)) {
        shape_copy_round(copy, way->box.rounds, at, offset);
        return;
    } else if (num_dims == 0) {
        shape_copy_block(copy, at + offset, way->box.bytes - offset);
        return;
    } else if ((num_dims == 1) && (way->box.rounds == NULL)) {
        shape_copy_row(copy, at, way->box.bytes, dim, offset);
        return;
    }

    i       = offset / way->lengths[num_dims - 1];
    offset %= way->lengths[num_dims - 1];
    for (; (i < dim->count) && (copy->left > 0); ++i) {
        shape_copy_dims(copy, way, num_dims - 1,
                        at + ((ptrdiff_t)i * dim->stride), offset);
        offset = 0;
    }
}

static void shape_way_measure(shape_way_t *way)
{
    size_t length = way->box.bytes;
    unsigned i;

    for (i = 0; i < way->box.num_dims; ++i) {
        way->lengths[i]  = length;
        length          *= way->box.dims[i].count;
    }
}

static void shape_copy_nest(shape_copy_t *copy, const shape_nest_t *nest,
                            char *at, size_t offset)
{
    shape_way_t way;

    shape_box_of_nest(&way.box, nest);
    shape_way_measure(&way);
    shape_copy_dims(copy, &way, way.box.num_dims, at + nest->offset, offset);
}

/* The nest that byte 'offset' of a round is in */
static unsigned shape_find(const shape_t *shape, size_t offset)
{
    unsigned low  = 0;
    unsigned high = shape->num;
    unsigned middle;

    while ((high - low) > 1) {
        middle = low + ((high - low) / 2);
        if (shape->places[middle].begin <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }

    return low;
}

static void shape_copy_list(shape_copy_t *copy, const shape_t *shape,
                            unsigned i, char *at, size_t offset)
{
    const shape_place_t *place = shape->places + i;
    const shape_place_t *end   = shape->places + shape->num;

    for (; (place < end) && (copy->left > 0); ++place) {
        shape_copy_block(copy, at + place->offset + offset,
                         place[1].begin - place[0].begin - offset);
        offset = 0;
    }
}

static void shape_copy_round(shape_copy_t *copy, const shape_t *shape, char *at,
                             size_t offset)
{
    unsigned i = shape_find(shape, offset);

    offset -= shape->places[i].begin;
    if (shape->is_list) {
        shape_copy_list(copy, shape, i, at, offset);
        return;
    }

    for (; (i < shape->num) && (copy->left > 0); ++i) {
        shape_copy_nest(copy, &shape->nests[i], at, offset);
        offset = 0;
    }
}

static void shape_copy_data(shape_copy_t *copy, const shape_data_t *data,
                            size_t offset)
{
    const shape_t *shape = data->shape;
    char *at             = data->buffer;
    shape_way_t way;

    if (copy->left == 0) {
        return;
    }

    shape_box_of_shape(&way.box, shape);
    shape_box_put(&way.box, data->count, shape->extent);
    shape_way_measure(&way);
    if (way.box.rounds == NULL) {
        at += shape->nests[0].offset;
    }

    shape_copy_dims(copy, &way, way.box.num_dims, at, offset);
}

void shape_gather(const shape_data_t *data, size_t offset, void *dest,
                  size_t length)
{
    shape_copy_t copy = {.packed = dest, .left = length};

    shape_copy_data(&copy, data, offset);
}

void shape_scatter(const shape_data_t *data, size_t offset, const void *src,
                   size_t length)
{
    /* it is read only */
    shape_copy_t copy = {
        .packed     = (char*)(uintptr_t)src,
        .left       = length,
        .is_scatter = 1
    };

    shape_copy_data(&copy, data, offset);
}
