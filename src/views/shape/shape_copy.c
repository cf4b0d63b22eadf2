/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Gather and scatter by the processor. The first byte is found by division, and
 * in a list by search. A dimension is copied as the rest of a first step, whole
 * steps, and the begin of a last one. Whole steps are copied in runs.
 */
#include "shape_box.h"
#include "shape_run.h"

#include <string.h>


/* The state of a copy: its contiguous side */
typedef struct shape_copy {
    char *packed;
    size_t left;
    int is_scatter;
} shape_copy_t;


/* The data of a copy as a box */
typedef struct shape_way {
    shape_box_t box;
    size_t lengths[SHAPE_BOX_DIMS]; /* bytes of a step of a dimension */
} shape_way_t;


static void shape_copy_run(shape_copy_t *copy, const shape_run_t *run)
{
    char *end = copy->is_scatter ? shape_run_scatter(run, copy->packed) :
                                   shape_run_gather(run, copy->packed);

    copy->left -= end - copy->packed;
    copy->packed = end;
}


/* Copies a block, or as many of its bytes as are left. */
static void shape_copy_block(shape_copy_t *copy, char *at, size_t bytes)
{
    size_t length = (bytes < copy->left) ? bytes : copy->left;

    if (copy->is_scatter) {
        memcpy(at, copy->packed, length);
    } else {
        memcpy(copy->packed, at, length);
    }

    copy->packed += length;
    copy->left -= length;
}

/* Copies all blocks of up to two dimensions. */
static void shape_copy_rows(shape_copy_t *copy, char *at, size_t bytes,
                            const shape_dim_t *dims, unsigned num_dims)
{
    static const shape_dim_t none = {.count = 1};
    shape_run_t run               = {
                      .at    = at,
                      .bytes = bytes,
                      .row   = (num_dims > 0) ? dims[0] : none,
                      .rows  = (num_dims > 1) ? dims[1] : none,
    };

    shape_copy_run(copy, &run);
}


/* Returns the index of the nest that has byte @offset of a round. */
static unsigned shape_find(const shape_t *shape, size_t offset)
{
    unsigned low  = 0;
    unsigned high = shape->num;
    unsigned middle;

    if (shape->block > 0) {
        return offset / shape->block;
    }

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

/* Copies the whole blocks that are left of a round, from block @i on. Returns
 * the index of the next block. */
static unsigned shape_copy_places(shape_copy_t *copy, const shape_t *shape,
                                  unsigned i, char *at)
{
    size_t end    = shape->places[i].begin + copy->left;
    unsigned next = (end < shape->round) ? shape_find(shape, end) : shape->num;
    shape_run_t run = {
        .at         = at,
        .bytes      = shape->block,
        .row.count  = next - i,
        .rows.count = 1,
        .list       = shape->places + i,
    };

    shape_copy_run(copy, &run);
    return next;
}

/* Copies a block of a list, from byte @offset on. */
static void shape_copy_place(shape_copy_t *copy, const shape_place_t *place,
                             char *at, size_t offset)
{
    shape_copy_block(copy, at + place->offset + offset,
                     place[1].begin - place[0].begin - offset);
}

static void shape_copy_list(shape_copy_t *copy, const shape_t *shape, char *at,
                            size_t offset)
{
    unsigned i = shape_find(shape, offset);

    if (offset > shape->places[i].begin) {
        shape_copy_place(copy, &shape->places[i], at,
                         offset - shape->places[i].begin);
        ++i;
    }

    if ((i < shape->num) && (copy->left > 0)) {
        i = shape_copy_places(copy, shape, i, at);
        if ((i < shape->num) && (copy->left > 0)) {
            shape_copy_place(copy, &shape->places[i], at, 0);
        }
    }
}


static void shape_copy_dims(shape_copy_t *copy, const shape_way_t *way,
                            unsigned num_dims, char *at, size_t offset);

static void shape_way_measure(shape_way_t *way)
{
    size_t length = way->box.bytes;
    unsigned i;

    for (i = 0; i < way->box.num_dims; ++i) {
        way->lengths[i] = length;
        length *= way->box.dims[i].count;
    }
}

static void shape_copy_nest(shape_copy_t *copy, const shape_nest_t *nest,
                            char *at, size_t offset)
{
    shape_way_t way;

    if ((nest->num_dims <= 2) && (offset == 0) &&
        (nest->length <= copy->left)) {
        shape_copy_rows(copy, at + nest->offset, nest->bytes, nest->dims,
                        nest->num_dims);
        return;
    }

    shape_box_of_nest(&way.box, nest);
    shape_way_measure(&way);
    shape_copy_dims(copy, &way, way.box.num_dims, at + nest->offset, offset);
}

static void shape_copy_round(shape_copy_t *copy, const shape_t *shape, char *at,
                             size_t offset)
{
    unsigned i;

    if (shape->is_list) {
        shape_copy_list(copy, shape, at, offset);
        return;
    }

    i = shape_find(shape, offset);
    offset -= shape->places[i].begin;
    for (; (i < shape->num) && (copy->left > 0); ++i) {
        shape_copy_nest(copy, &shape->nests[i], at, offset);
        offset = 0;
    }
}

/* Copies one step of the innermost dimension, a block or a round, from byte
 * @offset on. */
static void shape_copy_inner(shape_copy_t *copy, const shape_box_t *box,
                             char *at, size_t offset)
{
    if (box->rounds == NULL) {
        shape_copy_block(copy, at + offset, box->bytes - offset);
    } else {
        shape_copy_round(copy, box->rounds, at, offset);
    }
}

/* Returns 1 if one run takes @num_dims dimensions. */
static int shape_box_is_run(const shape_box_t *box, unsigned num_dims)
{
    return (box->rounds == NULL) ? (num_dims <= 2) :
                                   (box->rounds->is_list && (num_dims == 1));
}

/* Copies @count whole steps of the outermost of @num_dims dimensions, in one
 * run. */
static void shape_copy_steps(shape_copy_t *copy, const shape_box_t *box,
                             unsigned num_dims, char *at, size_t count)
{
    const shape_dim_t *dim = &box->dims[num_dims - 1];
    shape_run_t run        = {
               .at    = at,
               .bytes = box->bytes,
               .row   = box->dims[0],
               .rows  = {.count = count, .stride = dim->stride},
    };

    if (box->rounds != NULL) {
        run.bytes     = box->rounds->block;
        run.row.count = box->rounds->num;
        run.list      = box->rounds->places;
    } else if (num_dims == 1) {
        run.row.count  = count;
        run.rows.count = 1;
    }

    shape_copy_run(copy, &run);
}

/* Copies @count whole steps of the outermost of @num_dims dimensions, in as
 * many runs as it takes. */
static void shape_copy_whole(shape_copy_t *copy, const shape_box_t *box,
                             unsigned num_dims, char *at, size_t count)
{
    const shape_dim_t *dim = &box->dims[num_dims - 1];
    size_t i;

    if (shape_box_is_run(box, num_dims)) {
        shape_copy_steps(copy, box, num_dims, at, count);
        return;
    }

    for (i = 0; i < count; ++i) {
        if (num_dims > 1) {
            shape_copy_whole(copy, box, num_dims - 1, at, dim[-1].count);
        } else {
            shape_copy_inner(copy, box, at, 0);
        }
        at += dim->stride;
    }
}

/* Copies the bytes that are left of @num_dims dimensions, from byte @offset
 * on. */
static void shape_copy_dims(shape_copy_t *copy, const shape_way_t *way,
                            unsigned num_dims, char *at, size_t offset)
{
    const shape_dim_t *dim;
    size_t length, first, rest, whole;

    if (num_dims == 0) {
        shape_copy_inner(copy, &way->box, at, offset);
        return;
    }

    dim    = &way->box.dims[num_dims - 1];
    length = way->lengths[num_dims - 1];
    first  = offset / length;
    rest   = offset % length;
    if (rest > 0) {
        shape_copy_dims(copy, way, num_dims - 1,
                        at + ((ptrdiff_t)first * dim->stride), rest);
        ++first;
    }

    if (copy->left >= length) {
        whole = copy->left / length;
        whole = (whole < (dim->count - first)) ? whole : (dim->count - first);
        shape_copy_whole(copy, &way->box, num_dims,
                         at + ((ptrdiff_t)first * dim->stride), whole);
        first += whole;
    }

    if ((first < dim->count) && (copy->left > 0)) {
        shape_copy_dims(copy, way, num_dims - 1,
                        at + ((ptrdiff_t)first * dim->stride), 0);
    }
}

/* Returns 1 if the data are blocks at one distance, the most common case. */
static int shape_data_is_row(const shape_data_t *data)
{
    const shape_t *shape = data->shape;

    return (data->count == 1) && (shape->num == 1) && (shape->repeat == 1) &&
           (shape->nests[0].num_dims == 1);
}

/* Fast path: copies a row as shape_copy_dims() would, without a box. */
static void shape_copy_row(shape_copy_t *copy, const shape_nest_t *nest,
                           char *at, size_t offset)
{
    shape_run_t run = {
        .bytes      = nest->bytes,
        .row.stride = nest->dims[0].stride,
        .rows.count = 1,
    };
    size_t rest = offset % run.bytes;

    run.at = at + ((ptrdiff_t)(offset / run.bytes) * run.row.stride);
    if (rest > 0) {
        shape_copy_block(copy, run.at + rest, run.bytes - rest);
        run.at += run.row.stride;
    }

    if (copy->left >= run.bytes) {
        run.row.count = copy->left / run.bytes;
        shape_copy_run(copy, &run);
        run.at += (ptrdiff_t)run.row.count * run.row.stride;
    }

    if (copy->left > 0) {
        shape_copy_block(copy, run.at, run.bytes);
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

    if (shape_data_is_row(data)) {
        shape_copy_row(copy, shape->nests, at + shape->nests[0].offset, offset);
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
    shape_copy_t copy = {
        .packed     = (char *)src, /* read only */
        .left       = length,
        .is_scatter = 1,
    };

    shape_copy_data(&copy, data, offset);
}
