/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Queries of a shape. They do not change it, so any thread may call them.
 */
#include "shape_box.h"

#include <string.h>


void shape_span(const shape_data_t *data, char **begin_p, char **end_p)
{
    const shape_t *shape = data->shape;
    ptrdiff_t last       = (ptrdiff_t)(data->count - 1) * shape->extent;

    *begin_p = data->buffer + shape->begin + ((last < 0) ? last : 0);
    *end_p   = data->buffer + shape->end + ((last > 0) ? last : 0);
}

int shape_as_nest(const shape_data_t *data, shape_nest_t *nest)
{
    shape_box_t box;

    if ((data->shape->num != 1) || (data->count == 0)) {
        return 0;
    }

    shape_box_of_shape(&box, data->shape);
    shape_box_put(&box, data->count, data->shape->extent);
    if (box.num_dims > SHAPE_MAX_DIMS) {
        return 0;
    }

    nest->offset   = data->shape->nests[0].offset;
    nest->bytes    = box.bytes;
    nest->length   = shape_length(data);
    nest->num_dims = box.num_dims;
    memcpy(nest->dims, box.dims, sizeof(nest->dims));
    return 1;
}


/* The block that @add has not been called for yet: the next may be adjacent. */
typedef struct shape_each {
    shape_add_t add;
    void *arg;
    char *address;
    size_t bytes;
} shape_each_t;


static inline int shape_each_flush(shape_each_t *each)
{
    return (each->bytes == 0) ?
               0 :
               each->add(each->arg, each->address, each->bytes);
}

static inline int shape_each_block(shape_each_t *each, char *address,
                                   size_t bytes)
{
    int ret;

    if (address == (each->address + each->bytes)) {
        each->bytes += bytes;
        return 0;
    }

    ret           = shape_each_flush(each);
    each->address = address;
    each->bytes   = bytes;
    return ret;
}

static int shape_each_row(shape_each_t *each, char *address, size_t bytes,
                          const shape_dim_t *dim)
{
    int ret = 0;
    size_t i;

    for (i = 0; (i < dim->count) && (ret == 0); ++i) {
        ret = shape_each_block(each, address, bytes);
        address += dim->stride;
    }

    return ret;
}

/* @num_dims is at least 1. */
static int shape_each_dims(shape_each_t *each, char *address, size_t bytes,
                           const shape_dim_t *dims, unsigned num_dims)
{
    const shape_dim_t *dim = &dims[num_dims - 1];
    int ret                = 0;
    size_t i;

    if (num_dims == 1) {
        return shape_each_row(each, address, bytes, dim);
    }

    for (i = 0; (i < dim->count) && (ret == 0); ++i) {
        ret = shape_each_dims(each, address, bytes, dims, num_dims - 1);
        address += dim->stride;
    }

    return ret;
}

static inline int shape_each_nest(shape_each_t *each, char *address,
                                  const shape_nest_t *nest)
{
    if (nest->num_dims == 0) {
        return shape_each_block(each, address, nest->bytes);
    }

    return shape_each_dims(each, address, nest->bytes, nest->dims,
                           nest->num_dims);
}

static int shape_each_round(shape_each_t *each, const shape_t *shape,
                            char *address)
{
    const shape_nest_t *end = shape->nests + shape->num;
    const shape_nest_t *nest;
    int ret = 0;

    for (nest = shape->nests; (nest < end) && (ret == 0); ++nest) {
        ret = shape_each_nest(each, address + nest->offset, nest);
    }

    return ret;
}

static int shape_each_element(shape_each_t *each, const shape_t *shape,
                              char *address)
{
    int ret = 0;
    size_t i;

    for (i = 0; (i < shape->repeat) && (ret == 0); ++i) {
        ret = shape_each_round(each, shape,
                               address + ((ptrdiff_t)i * shape->stride));
    }

    return ret;
}

int shape_for_each(const shape_data_t *data, shape_add_t add, void *arg)
{
    shape_each_t each = {.add = add, .arg = arg};
    int ret           = 0;
    size_t i;

    for (i = 0; (i < data->count) && (ret == 0); ++i) {
        ret = shape_each_element(&each, data->shape,
                                 data->buffer +
                                     ((ptrdiff_t)i * data->shape->extent));
    }

    return (ret == 0) ? shape_each_flush(&each) : ret;
}
