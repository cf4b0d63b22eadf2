/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The walk: makes the shape of a type from the shapes of the types in it, from
 * the inside out, as its constructor says. Takes the extents of each type from
 * the MPI, and checks the result by its size and true extent.
 *
 * The number of steps is limited. Larger types are left to the MPI, which packs
 * them.
 */
#include "mpi_type.h"
#include "views/shape/shape_build.h"

#include <stdlib.h>


enum {
    WALK_MAX_DEPTH = 64,
    WALK_TYPE      = 16,   /* steps for a type */
    WALK_MAX_STEPS = 65536 /* in all; a nest in a list or a struct is one */
};


typedef struct walk {
    const mpi_lib_t *lib;
    size_t max_nests;
    unsigned depth;
    long steps_left;
} walk_t;

/* Makes a shape from the arguments of a constructor. The caller sets its
 * extent. */
typedef shape_t *(*walk_make_t)(walk_t *walk, const mpi_args_t *args);


static shape_t *walk_type(walk_t *walk, mpi_handle_t type);


static int walk_steps(walk_t *walk, long steps)
{
    walk->steps_left -= steps;
    return walk->steps_left >= 0;
}

/* --- named types ---------------------------------------------------------- */

static void walk_add_bytes(shape_builder_t *builder, ptrdiff_t offset,
                           size_t bytes)
{
    shape_nest_t nest = {.offset = offset, .bytes = bytes};

    shape_build_add(builder, &nest);
}

/* Makes the shape of a named type. Only MPI_SHORT_INT, {short, int}, has a
 * hole. */
static shape_t *walk_named(walk_t *walk, const mpi_extents_t *extents)
{
    size_t hole              = extents->true_extent - extents->size;
    shape_builder_t *builder = shape_build_begin(walk->max_nests);

    if (builder == NULL) {
        return NULL;
    }

    if (extents->size == 0) {
        /* MPI_LB and MPI_UB of MPI-1 */
    } else if (hole == 0) {
        walk_add_bytes(builder, extents->true_lb, extents->size);
    } else if ((extents->size == sizeof(short) + sizeof(int)) &&
               (extents->true_extent == 2 * sizeof(int))) {
        walk_add_bytes(builder, extents->true_lb, sizeof(short));
        walk_add_bytes(builder, extents->true_lb + sizeof(int), sizeof(int));
    } else {
        free(shape_build_end(builder, 0));
        return NULL;
    }
    return shape_build_end(builder, extents->extent);
}

/* --- a type, repeated ----------------------------------------------------- */

/* Returns @a * @b. If that overflows, a value with which a shape cannot be
 * built, as its end would overflow. */
static ptrdiff_t walk_product(ptrdiff_t a, ptrdiff_t b)
{
    ptrdiff_t product;

    return __builtin_mul_overflow(a, b, &product) ? PTRDIFF_MAX : product;
}

/* Returns @count copies of a shape, @stride bytes apart, and frees the shape.
 * NULL stays NULL. */
static shape_t *walk_repeat(walk_t *walk, shape_t *shape, ptrdiff_t offset,
                            size_t count, ptrdiff_t stride)
{
    shape_dim_t dim          = {.count = count, .stride = stride};
    shape_builder_t *builder = (shape == NULL) ?
                                   NULL :
                                   shape_build_begin(walk->max_nests);

    if (builder != NULL) {
        shape_build_add_shape(builder, shape, offset, &dim, 1);
    }
    free(shape);
    return (builder == NULL) ? NULL : shape_build_end(builder, 0);
}

static shape_t *walk_same(walk_t *walk, const mpi_args_t *args)
{
    return walk_type(walk, args->types[0]);
}

static shape_t *walk_contiguous(walk_t *walk, const mpi_args_t *args)
{
    shape_t *shape = walk_type(walk, args->types[0]);

    return (shape == NULL) ?
               NULL :
               walk_repeat(walk, shape, 0, args->ints[0], shape->extent);
}

static shape_t *walk_vector(walk_t *walk, const mpi_args_t *args)
{
    shape_t *shape = walk_type(walk, args->types[0]);
    ptrdiff_t stride;

    if (shape == NULL) {
        return NULL;
    }

    stride = (args->combiner == MPI_LIB_VECTOR) ?
                 walk_product(args->ints[2], shape->extent) :
                 args->addresses[0];
    shape  = walk_repeat(walk, shape, 0, args->ints[1], shape->extent);
    return walk_repeat(walk, shape, 0, args->ints[0], stride);
}

/* --- lists ---------------------------------------------------------------- */

/* Returns displacement @i in bytes: an address, or, of the two index types, an
 * integer in units of @extent. */
static ptrdiff_t walk_displacement(const mpi_args_t *args, int i,
                                   ptrdiff_t extent)
{
    switch (args->combiner) {
    case MPI_LIB_INDEXED:
        return walk_product(args->ints[1 + args->ints[0] + i], extent);
    case MPI_LIB_INDEXED_BLOCK:
        return walk_product(args->ints[2 + i], extent);
    default:
        return args->addresses[i];
    }
}

static int walk_list_length(const mpi_args_t *args, int i)
{
    return ((args->combiner == MPI_LIB_INDEXED_BLOCK) ||
            (args->combiner == MPI_LIB_HINDEXED_BLOCK)) ?
               args->ints[1] :
               args->ints[1 + i];
}

/* Stores the shape of entry @i. A list has one type, a struct has one for each
 * entry. Walks equal types that follow each other only once. Returns non-zero
 * if that fails. */
static int walk_list_type(walk_t *walk, const mpi_args_t *args, int i,
                          shape_t **shape_p)
{
    if ((i > 0) &&
        ((args->num_types == 1) || (args->types[i] == args->types[i - 1]))) {
        return 0;
    }

    free(*shape_p);
    *shape_p = walk_type(walk, args->types[i]);
    return *shape_p == NULL;
}

static int walk_list_add(walk_t *walk, const mpi_args_t *args,
                         shape_builder_t *builder)
{
    shape_t *shape = NULL;
    shape_dim_t dim;
    int i;

    for (i = 0; i < args->ints[0]; i++) {
        if (walk_list_type(walk, args, i, &shape) ||
            !walk_steps(walk, 1 + shape->num)) {
            break;
        }
        dim.count  = walk_list_length(args, i);
        dim.stride = shape->extent;
        shape_build_add_shape(
            builder, shape, walk_displacement(args, i, shape->extent), &dim, 1);
    }
    free(shape);
    return i < args->ints[0];
}

static shape_t *walk_list(walk_t *walk, const mpi_args_t *args)
{
    shape_builder_t *builder = shape_build_begin(walk->max_nests);
    shape_t *shape;
    int is_failed;

    if (builder == NULL) {
        return NULL;
    }

    is_failed = walk_list_add(walk, args, builder);
    shape     = shape_build_end(builder, 0);
    if (is_failed) {
        free(shape);
        shape = NULL;
    }
    return shape;
}

/* --- parts of arrays ------------------------------------------------------ */

/* Returns the index of the dimension that is number @i from the inside. */
static int walk_array_dim(const walk_t *walk, int num, int order, int i)
{
    return (order == walk->lib->abi.order_c) ? num - 1 - i : i;
}

static shape_t *walk_subarray(walk_t *walk, const mpi_args_t *args)
{
    shape_t *shape      = walk_type(walk, args->types[0]);
    int num             = args->ints[0];
    const int *sizes    = args->ints + 1;
    const int *subsizes = sizes + num;
    const int *starts   = subsizes + num;
    int order           = starts[num];
    ptrdiff_t stride    = (shape == NULL) ? 0 : shape->extent;

    for (int i = 0; i < num; i++) {
        int dim = walk_array_dim(walk, num, order, i);

        shape  = walk_repeat(walk, shape, walk_product(starts[dim], stride),
                             subsizes[dim], stride);
        stride = walk_product(stride, sizes[dim]);
    }
    return shape;
}

/* A dimension of MPI_Type_create_darray(), in elements: blocks are distributed
 * round-robin over processes, of which this is one */
typedef struct walk_darray {
    ptrdiff_t size;  /* of the whole array */
    ptrdiff_t block; /* of a block of one process */
    ptrdiff_t round; /* of one block of every process */
    ptrdiff_t first; /* index of the first element of this process */
} walk_darray_t;

static void walk_darray_init(const walk_t *walk, const mpi_args_t *args,
                             int dim, walk_darray_t *array)
{
    int num              = args->ints[2];
    const int *gsizes    = args->ints + 3;
    const int *distribs  = gsizes + num;
    const int *dargs     = distribs + num;
    const int *psizes    = dargs + num;
    const mpi_abi_t *abi = &walk->lib->abi;
    int rank             = args->ints[1];

    /* Processes are in C order for either order of the array. */
    for (int i = num - 1; i > dim; i--) {
        rank /= psizes[i];
    }
    rank %= psizes[dim];

    array->size = gsizes[dim];
    if ((distribs[dim] != abi->block) && (distribs[dim] != abi->cyclic)) {
        array->block = array->size; /* MPI_DISTRIBUTE_NONE */
    } else if (dargs[dim] != abi->dflt_arg) {
        array->block = dargs[dim];
    } else if (distribs[dim] == abi->cyclic) {
        array->block = 1;
    } else {
        array->block = (array->size + psizes[dim] - 1) / psizes[dim];
    }
    array->round = array->block * psizes[dim];
    array->first = array->block * rank;
}

/* Adds whole blocks, then the rest of one. */
static shape_t *walk_darray_make(walk_t *walk, shape_t *shape,
                                 const walk_darray_t *array, ptrdiff_t stride)
{
    shape_builder_t *builder = shape_build_begin(walk->max_nests);
    ptrdiff_t num            = 0;
    ptrdiff_t rest;
    shape_dim_t dims[2];

    if (builder == NULL) {
        return NULL;
    }

    if (array->first + array->block <= array->size) {
        num = (array->size - array->first - array->block) / array->round + 1;
    }
    rest    = array->size - array->first - num * array->round;
    dims[0] = (shape_dim_t){.count = array->block, .stride = stride};
    dims[1] = (shape_dim_t){.count  = num,
                            .stride = walk_product(array->round, stride)};
    shape_build_add_shape(builder, shape, walk_product(array->first, stride),
                          dims, 2);

    dims[0].count = (rest > 0) ? rest : 0;
    shape_build_add_shape(
        builder, shape, walk_product(array->first + num * array->round, stride),
        dims, 1);
    return shape_build_end(builder, 0);
}

static shape_t *walk_darray(walk_t *walk, const mpi_args_t *args)
{
    shape_t *shape   = walk_type(walk, args->types[0]);
    int num          = args->ints[2];
    int order        = args->ints[3 + 4 * num];
    ptrdiff_t stride = (shape == NULL) ? 0 : shape->extent;

    for (int i = 0; (i < num) && (shape != NULL); i++) {
        shape_t *inner = shape;
        walk_darray_t array;

        walk_darray_init(walk, args, walk_array_dim(walk, num, order, i),
                         &array);
        shape  = walk_darray_make(walk, inner, &array, stride);
        stride = walk_product(stride, array.size);
        free(inner);
    }
    return shape;
}

/* --- the types ------------------------------------------------------------ */

/* Functions by constructor. NULL: a named type, or one of Fortran 90, which has
 * the form of a named one. */
static const walk_make_t walk_makes[MPI_LIB_NUM_COMBINERS] = {
    [MPI_LIB_DUP] = walk_same,           [MPI_LIB_CONTIGUOUS] = walk_contiguous,
    [MPI_LIB_VECTOR] = walk_vector,      [MPI_LIB_HVECTOR] = walk_vector,
    [MPI_LIB_INDEXED] = walk_list,       [MPI_LIB_HINDEXED] = walk_list,
    [MPI_LIB_INDEXED_BLOCK] = walk_list, [MPI_LIB_STRUCT] = walk_list,
    [MPI_LIB_SUBARRAY] = walk_subarray,  [MPI_LIB_DARRAY] = walk_darray,
    [MPI_LIB_RESIZED] = walk_same,       [MPI_LIB_HINDEXED_BLOCK] = walk_list,
};

static shape_t *walk_make(walk_t *walk, mpi_handle_t type,
                          const mpi_extents_t *extents)
{
    shape_t *shape;
    mpi_args_t args;

    if (mpi_lib_get_args(walk->lib, type, 2 * WALK_MAX_STEPS, &args)) {
        return NULL;
    }

    shape = (walk_makes[args.combiner] == NULL) ?
                walk_named(walk, extents) :
                walk_makes[args.combiner](walk, &args);
    mpi_lib_put_args(walk->lib, &args);
    return shape;
}

/* Returns the shape of a type, or NULL. Refuses a negative extent: MPICH 4.0.2
 * does not place several such elements one after the other if each consists of
 * several. */
static shape_t *walk_type(walk_t *walk, mpi_handle_t type)
{
    shape_t *shape = NULL;
    mpi_extents_t extents;

    if ((walk->depth == WALK_MAX_DEPTH) || !walk_steps(walk, WALK_TYPE)) {
        return NULL;
    }

    walk->depth++;
    if (!mpi_lib_get_extents(type, &extents) && (extents.extent >= 0)) {
        shape = walk_make(walk, type, &extents);
    }
    walk->depth--;
    if (shape != NULL) {
        shape->extent = extents.extent;
    }
    return shape;
}

/* Returns 1 if the MPI reports the same size, and a true extent that contains
 * the shape. They need not be equal: MPICH includes entries of 0 bytes in the
 * true extent. */
static int walk_check(mpi_handle_t type, const shape_t *shape)
{
    mpi_extents_t extents;

    return !mpi_lib_get_extents(type, &extents) &&
           (shape->size == (size_t)extents.size) &&
           ((shape->size == 0) ||
            ((shape->begin >= extents.true_lb) &&
             (shape->end <= extents.true_lb + extents.true_extent)));
}

size_t mpi_type_size(const mpi_lib_t *lib, const void *context)
{
    mpi_extents_t extents;

    if (mpi_lib_get_extents(lib->handle(context), &extents) ||
        (extents.size < 0)) {
        return 0;
    }
    return extents.size;
}

shape_t *mpi_type_shape(const mpi_lib_t *lib, const void *context,
                        size_t max_nests)
{
    walk_t walk       = {.lib        = lib,
                         .max_nests  = max_nests,
                         .steps_left = WALK_MAX_STEPS};
    mpi_handle_t type = lib->handle(context);
    shape_t *shape    = walk_type(&walk, type);

    if ((shape != NULL) && !walk_check(type, shape)) {
        free(shape);
        shape = NULL;
    }
    return shape;
}
