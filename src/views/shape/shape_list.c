/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "shape_list.h"
#include "shape_merge.h"
#include "shape_range.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>


enum {
    /* Nests of up to this many blocks are split in a list: the blocks may be
     * equal and equidistant by accident. */
    SHAPE_LIST_FEW = 8
};


static size_t shape_nest_blocks(const shape_nest_t *nest)
{
    return nest->length / nest->bytes;
}

static int shape_nest_is_few(const shape_nest_t *nest)
{
    return shape_nest_blocks(nest) <= SHAPE_LIST_FEW;
}

/* Returns how many nests the list has once those of few blocks are split. */
static size_t shape_list_count_spread(const shape_list_t *list)
{
    size_t num = 0;
    size_t i;

    for (i = 0; i < list->num; ++i) {
        num += shape_nest_is_few(&list->nests[i]) ?
                   shape_nest_blocks(&list->nests[i]) :
                   1;
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
        .length = nest->bytes,
    };
    return dest + 1;
}

static void shape_list_spread_to(const shape_list_t *list, shape_nest_t *dest)
{
    const shape_nest_t *nest;
    size_t i;

    for (i = 0; i < list->num; ++i) {
        nest = &list->nests[i];
        if (shape_nest_is_few(nest)) {
            dest = shape_nest_spread(dest, nest, nest->num_dims, nest->offset);
        } else {
            *dest++ = *nest;
        }
    }
}

static void shape_list_spread(shape_list_t *list, size_t max_nests)
{
    size_t num = shape_list_count_spread(list);
    shape_nest_t *nests;

    if ((num == list->num) || (num > max_nests)) {
        return;
    }

    nests = malloc(num * sizeof(*nests));
    if (nests == NULL) {
        return;
    }

    shape_list_spread_to(list, nests);
    free(list->nests);
    list->nests = nests;
    list->num   = num;
}

/* Returns 1 if each nest repeats the one @period before it, always at the same
 * distance. */
static int shape_list_is_period(const shape_list_t *list, size_t period)
{
    const shape_nest_t *nests = list->nests;
    ptrdiff_t stride          = nests[period].offset - nests[0].offset;
    size_t i;

    for (i = period; i < list->num; ++i) {
        if ((nests[i].num_dims != nests[i - period].num_dims) ||
            ((nests[i].offset - nests[i - period].offset) != stride) ||
            !shape_merge_same(&nests[i], &nests[i - period],
                              nests[i].num_dims)) {
            return 0;
        }
    }

    return 1;
}

/* Returns the smallest number of nests of which the others are repetitions. */
static size_t shape_list_period(const shape_list_t *list)
{
    size_t period;

    for (period = 1; period <= (list->num / 2); ++period) {
        if (((list->num % period) == 0) && shape_list_is_period(list, period)) {
            return period;
        }
    }

    return list->num;
}

void shape_list_find_rounds(shape_list_t *list, size_t max_nests)
{
    size_t period;

    if (list->num < 2) {
        return;
    }

    shape_list_spread(list, max_nests);
    period = shape_list_period(list);
    if ((list->repeat == 1) && (period < list->num)) {
        list->repeat = list->num / period;
        list->stride = list->nests[period].offset - list->nests[0].offset;
        list->num    = period;
    }
}


/* Allocates a shape, and sets only its nests and rounds. */
static shape_t *shape_alloc(const shape_list_t *list)
{
    size_t nests_size = list->num * sizeof(shape_nest_t);
    shape_t *shape    = malloc(sizeof(*shape) + nests_size +
                               ((list->num + 1) * sizeof(shape_place_t)));

    if (shape != NULL) {
        shape->num    = list->num;
        shape->repeat = list->repeat;
        shape->stride = (list->repeat > 1) ? list->stride : 0;
        shape->places = (shape_place_t *)(shape->nests + list->num);
        if (nests_size > 0) {
            memcpy(shape->nests, list->nests, nests_size);
        }
    }

    return shape;
}

/* Sums up the nests: sets their places and the fields of a round. */
static void shape_measure_round(shape_t *shape, shape_place_t *places,
                                shape_range_t *round)
{
    const shape_nest_t *nest = shape->nests;
    shape_range_t range;
    unsigned i;

    for (i = 0; i < shape->num; ++i, ++nest) {
        shape_range_of_nest(&range, nest);
        places[i].begin  = round->length;
        places[i].offset = nest->offset;
        if ((i == 0) || (range.begin < round->begin)) {
            round->begin = range.begin;
        }
        if ((i == 0) || (range.end > round->end)) {
            round->end = range.end;
        }
        round->length += range.length;
        shape->num_blocks += shape_nest_blocks(nest);
        shape->is_list &= (nest->num_dims == 0);
        shape->block = (nest->bytes == shape->nests[0].bytes) ? shape->block :
                                                                0;
    }

    shape->block    = shape->is_list ? shape->block : 0;
    places[i].begin = round->length;
}

/* Sets the fields of an element. Returns 0 on overflow. */
static int shape_measure(shape_t *shape)
{
    shape_range_t range = {0};

    shape->num_blocks = 0;
    shape->is_list    = 1;
    shape->block      = (shape->num > 0) ? shape->nests[0].bytes : 0;
    shape_measure_round(shape, (shape_place_t *)(shape->nests + shape->num),
                        &range);
    shape->round = range.length;
    if (!shape_range_repeat(&range, shape->repeat, shape->stride)) {
        return 0;
    }

    shape->size  = range.length;
    shape->begin = range.begin;
    shape->end   = range.end;
    shape->num_blocks *= shape->repeat;
    return 1;
}

shape_t *shape_list_to_shape(const shape_list_t *list, ptrdiff_t extent)
{
    static atomic_uint_fast64_t last_id;
    shape_t *shape = shape_alloc(list);

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
