/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * A shape: where the bytes of a data type lie, relative to the address that a
 * call is given, in the order in which they travel. A builder (shape_build.h)
 * makes it once for a type; then it is constant, and any thread may read it.
 * shape/ knows neither MPI nor UCX nor a device.
 *
 *   shape    @repeat rounds, @stride bytes apart, each of nest 0, nest 1, ...
 *   nest     a block of @bytes at @offset, repeated in up to SHAPE_MAX_DIMS
 *            dimensions, of which dims[0] is the innermost
 *
 * An element of the type is one shape. Element i of a message lies i * @extent
 * bytes behind the first.
 *
 *   MPI_Type_vector(5, 2, 6, MPI_DOUBLE)      one nest: 16 bytes, dims {5, 48}
 *   a face of a box                           one nest: rows, then planes
 *   MPI_Type_indexed()                        a nest for each block that does
 *                                             not continue the nest before it
 *   an array of {double, char}                two nests, repeated
 */
#ifndef SHAPE_H
#define SHAPE_H

#include <stddef.h>
#include <stdint.h>


enum { SHAPE_MAX_DIMS = 4 };


typedef struct shape_dim {
    size_t count;     /* at least 2 */
    ptrdiff_t stride; /* bytes from one to the next; may be negative */
} shape_dim_t;


typedef struct shape_nest {
    ptrdiff_t offset; /* of the first block's first byte */
    size_t bytes;     /* of a block, at least 1 */
    size_t length;    /* bytes of all its blocks */
    unsigned num_dims;
    shape_dim_t dims[SHAPE_MAX_DIMS];
} shape_nest_t;


/* The position of a nest, packed and in memory */
typedef struct shape_place {
    size_t begin;     /* of its bytes within the packed bytes of a round */
    ptrdiff_t offset; /* shape_nest_t::offset */
} shape_place_t;


typedef struct shape {
    uint64_t id;       /* unique in this process, never reused; 0: its
                        * owner uses the shape once */
    size_t size;       /* bytes of an element; 0: it has none */
    ptrdiff_t extent;  /* bytes from an element to the next; may be
                        * negative */
    ptrdiff_t begin;   /* offset of the lowest byte of an element */
    ptrdiff_t end;     /* offset behind its highest byte */
    size_t num_blocks; /* of an element */
    size_t repeat;     /* rounds of an element, at least 1 */
    ptrdiff_t stride;  /* bytes from a round to the next */
    unsigned num;      /* nests of a round */
    int is_list;       /* no nest has dimensions */
    size_t block;      /* bytes of each block of a list; 0: they differ, or
                        * this is no list */
    size_t round;      /* bytes of a round, packed */
    const shape_place_t *places; /* of the nests, then of the round's end */
    shape_nest_t nests[];
} shape_t;


/* The data of a call: @count elements at @buffer. It does not own the shape. */
typedef struct shape_data {
    const shape_t *shape;
    char *buffer;
    size_t count;
} shape_data_t;


static inline size_t shape_length(const shape_data_t *data)
{
    return data->count * data->shape->size;
}


/* Stores the lowest address and the one behind the highest. The data must have
 * at least one byte. */
void shape_span(const shape_data_t *data, char **begin_p, char **end_p);

/* Describes all elements as one nest, with an offset relative to the buffer:
 * rounds and elements become dimensions, adjacent blocks become one. Returns 0
 * if a round does not have exactly one nest, there are no elements, or they
 * take more than SHAPE_MAX_DIMS dimensions. */
int shape_as_nest(const shape_data_t *data, shape_nest_t *nest);

/* Calls @add for each block in order until it returns non-zero; adjacent blocks
 * are passed as one. Returns the last value of @add, 0 if there are no
 * blocks. */
typedef int (*shape_add_t)(void *arg, char *address, size_t bytes);
int shape_for_each(const shape_data_t *data, shape_add_t add, void *arg);

/* Copy @length bytes by the processor, from byte @offset of the packed data on:
 * out of the data to @dest, or from @src into the data. The data must have
 * these bytes. In a gather, blocks may overlap. */
void shape_gather(const shape_data_t *data, size_t offset, void *dest,
                  size_t length);
void shape_scatter(const shape_data_t *data, size_t offset, const void *src,
                   size_t length);

#endif
