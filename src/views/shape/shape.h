/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shape: where the bytes of a data type lie, seen from the address that a
 * call is given, in the order in which they travel. Made once for a type by a
 * builder (shape_build.h), then constant; it knows neither MPI nor UCX nor a
 * device.
 *
 *   shape    'repeat' times round, 'stride' bytes apart: nest 0, nest 1, ...
 *   nest     a block of 'bytes' at 'offset', in up to SHAPE_MAX_DIMS
 *            dimensions, of which dims[0] is the innermost
 *
 * An element of the type is one shape; element i of a message lies i * 'extent'
 * bytes behind the first.
 *
 *   MPI_Type_vector(5, 2, 6, MPI_DOUBLE)      one nest: 16 bytes, dims {5, 48}
 *   a face of a box                           one nest: rows, then planes
 *   MPI_Type_indexed()                        a nest for each block that does
 *                                             not go on what one before began
 *   an array of {double, char}                two nests, repeated
 */
#ifndef SHAPE_H
#define SHAPE_H

#include <stddef.h>
#include <stdint.h>


enum {
    SHAPE_MAX_DIMS = 4
};


typedef struct shape_dim {
    size_t    count;   /* at least 2 */
    ptrdiff_t stride;  /* bytes from one to the next; may be negative */
} shape_dim_t;


typedef struct shape_nest {
    ptrdiff_t   offset;   /* of the first block's first byte */
    size_t      bytes;    /* of a block, at least 1 */
    size_t      length;   /* bytes of all its blocks */
    unsigned    num_dims;
    shape_dim_t dims[SHAPE_MAX_DIMS];
} shape_nest_t;


/* Where a nest's bytes are in those of a round, and the nest's offset */
typedef struct shape_place {
    size_t    begin;
    ptrdiff_t offset;
} shape_place_t;


typedef struct shape {
    uint64_t     id;         /* of no other shape of this process, ever; 0: its
                              * owner uses it once */
    size_t       size;       /* bytes of an element; 0: it has none */
    ptrdiff_t    extent;     /* from an element to the next; may be negative */
    ptrdiff_t    begin;      /* offset of the lowest byte of an element */
    ptrdiff_t    end;        /* ... and behind the highest */
    size_t       num_blocks; /* of an element */
    size_t       repeat;     /* at least 1 */
    ptrdiff_t    stride;     /* from a round to the next */
    unsigned     num;        /* nests */
    int          is_list;    /* no nest has dimensions */
    size_t       block;      /* bytes of each block of a list, 0: they differ */
    size_t       round;      /* bytes of a round */
    const shape_place_t *places; /* of the nests, and of the end of a round */
    shape_nest_t nests[];
} shape_t;


/* What a call is given: 'count' elements at 'buffer', which the caller keeps */
typedef struct shape_data {
    const shape_t *shape;
    char          *buffer;
    size_t        count;
} shape_data_t;


static inline size_t shape_length(const shape_data_t *data)
{
    return data->count * data->shape->size;
}


/* The lowest byte, and the one behind the highest. There are bytes. */
void shape_span(const shape_data_t *data, char **begin_p, char **end_p);

/* Whether all elements are one nest: rounds and elements have become dimensions
 * of it, adjacent blocks one. Returns 0 if they are not, or it would have more
 * than SHAPE_MAX_DIMS dimensions. */
int shape_as_nest(const shape_data_t *data, shape_nest_t *nest);

/* Calls 'add' for each block in order, adjacent ones as one, until it returns
 * non-zero, which is returned. */
typedef int (*shape_add_t)(void *arg, char *address, size_t bytes);
int shape_for_each(const shape_data_t *data, shape_add_t add, void *arg);

/* By the processor: 'length' bytes from byte 'offset' of the data on, into
 * 'dest' or out of 'src'. They are there. Blocks may overlap in a gather. */
void shape_gather(const shape_data_t *data, size_t offset, void *dest,
                  size_t length);
void shape_scatter(const shape_data_t *data, size_t offset, const void *src,
                   size_t length);

#endif
