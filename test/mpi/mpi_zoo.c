/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_zoo [SEED [TYPES]]: types of all kinds, each alone, nested in each other,
 * and at random: what mpi_type_shape() makes of one has to gather the bytes that
 * MPI_Pack() packs, for one to three of it. The numbers of mpi.h that the loader
 * has for this MPI are those of its mpi.h.
 */
#define _GNU_SOURCE
#include "loader/mpi_type.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_NESTS = 4096,
    MAX_SPAN  = 1 << 22,
    MAX_COUNT = 3,
    POOL      = 64 /* types that others are made of */
};

static const mpi_lib_t *lib;
static uint64_t random_state;
static int num_types, num_shapes, errors;

static int below(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % limit);
}

static int between(int low, int high)
{
    return low + below(high - low + 1);
}

static void *need(size_t bytes)
{
    void *memory = malloc(bytes + 1);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* --- one type ---------------------------------------------------------------- */

/* What ucp_dt_create_generic() is given as the context of a type */
static const void *context_of(const MPI_Datatype *type)
{
#ifdef OPEN_MPI
    return *type;
#else
    return type;
#endif
}

static shape_t *shape_of(MPI_Datatype type, size_t max_nests)
{
    return mpi_type_shape(lib, context_of(&type), max_nests);
}

typedef struct span {
    MPI_Aint begin;
    MPI_Aint end;
    int size;
} span_t;

/* Where 'count' elements lie. Returns 0 if that is too much to be tried. */
static int get_span(MPI_Datatype type, int count, span_t *span)
{
    MPI_Aint lb, extent, true_lb, true_extent, last;
    MPI_Count size;

    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    MPI_Type_size_x(type, &size);
    if (size == 0) {
        *span = (span_t){0}; /* MPICH may have any true extent then */
        return 1;
    }

    last        = (count - 1) * extent;
    span->begin = true_lb + ((last < 0) ? last : 0);
    span->end   = true_lb + true_extent + ((last > 0) ? last : 0);
    span->size  = (int)size * count;
    return (size < MAX_SPAN) && (span->end - span->begin < MAX_SPAN);
}

static int is_same(const shape_data_t *data, MPI_Datatype type, int size)
{
    char *packed = need(size), *gathered = need(size);
    int position = 0, is_same;

    MPI_Pack(data->buffer, (int)data->count, type, packed, size, &position,
             MPI_COMM_WORLD);
    shape_gather(data, 0, gathered, size);
    is_same = !memcmp(gathered, packed, size);
    free(gathered);
    free(packed);
    return is_same;
}

static void compare(const char *name, MPI_Datatype type, const shape_t *shape,
                    int count)
{
    shape_data_t data;
    char *memory;
    span_t span;

    if (!get_span(type, count, &span)) {
        return;
    }

    memory = need(span.end - span.begin);
    data   = (shape_data_t){shape, memory - span.begin, count};
    for (MPI_Aint i = 0; i < span.end - span.begin; i++) {
        memory[i] = (char)below(256);
    }
    if ((shape_length(&data) != (size_t)span.size) ||
        (mpi_type_size(lib, context_of(&type)) != shape->size)) {
        printf("%s: %d of it are %zu bytes instead of %d\n", name, count,
               shape_length(&data), span.size);
        errors++;
    } else if (!is_same(&data, type, span.size)) {
        printf("%s: %d of it are other bytes\n", name, count);
        errors++;
    }
    free(memory);
}

/* A type that is not too large must have a shape. Twice, so that a type that was
 * freed too often or too seldom is seen. */
static void check_type(const char *name, MPI_Datatype type, int is_refused)
{
    shape_t *shape;
    span_t span;

    num_types++;
    for (int i = 0; i < 2; i++) {
        shape = shape_of(type, MAX_NESTS);
        num_shapes += (shape != NULL) && (i == 0);
        if ((shape == NULL) && !is_refused && get_span(type, 1, &span) &&
            (span.size > 0) && (span.size <= MAX_NESTS)) {
            printf("%s: it has no shape\n", name);
            errors++;
        }
        for (int count = 1; (count <= MAX_COUNT) && (shape != NULL); count++) {
            compare(name, type, shape, count);
        }
        free(shape);
    }
}

/* --- how types are made ------------------------------------------------------- */

static MPI_Datatype make_dup(MPI_Datatype old)
{
    MPI_Datatype type;

    MPI_Type_dup(old, &type);
    return type;
}

static MPI_Datatype make_contiguous(MPI_Datatype old)
{
    MPI_Datatype type;

    MPI_Type_contiguous(between(0, 5), old, &type);
    return type;
}

/* Open MPI 4.1.4 takes a stride of -1 byte for none: not that */
static MPI_Datatype make_vector(MPI_Datatype old)
{
    int stride = between(-6, 9);
    MPI_Datatype type;

    MPI_Type_vector(between(0, 5), between(0, 4), (stride == -1) ? 0 : stride,
                    old, &type);
    return type;
}

static MPI_Datatype make_hvector(MPI_Datatype old)
{
    int stride = between(-99, 199);
    MPI_Datatype type;

    MPI_Type_create_hvector(between(0, 5), between(0, 4),
                            (stride == -1) ? 0 : stride, old, &type);
    return type;
}

enum { MAX_LIST = 6 };

/* A list of up to MAX_LIST entries. Returns how many. */
static int make_list(int *lengths, int *places, MPI_Aint *addresses)
{
    int num = between(0, MAX_LIST);

    for (int i = 0; i < num; i++) {
        lengths[i]   = between(0, 3);
        places[i]    = between(-4, 5) + 4 * i;
        addresses[i] = between(-50, 50) + 64 * i;
    }
    return num;
}

static MPI_Datatype make_indexed(MPI_Datatype old)
{
    int lengths[MAX_LIST], places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
    int num = make_list(lengths, places, addresses);
    MPI_Datatype type;

    MPI_Type_indexed(num, lengths, places, old, &type);
    return type;
}

static MPI_Datatype make_hindexed(MPI_Datatype old)
{
    int lengths[MAX_LIST], places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
    int num = make_list(lengths, places, addresses);
    MPI_Datatype type;

    MPI_Type_create_hindexed(num, lengths, addresses, old, &type);
    return type;
}

static MPI_Datatype make_indexed_block(MPI_Datatype old)
{
    int lengths[MAX_LIST], places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
    int num = make_list(lengths, places, addresses);
    MPI_Datatype type;

    MPI_Type_create_indexed_block(num, between(0, 3), places, old, &type);
    return type;
}

static MPI_Datatype make_hindexed_block(MPI_Datatype old)
{
    int lengths[MAX_LIST], places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
    int num = make_list(lengths, places, addresses);
    MPI_Datatype type;

    MPI_Type_create_hindexed_block(num, between(0, 3), addresses, old, &type);
    return type;
}

static MPI_Datatype make_struct(MPI_Datatype old)
{
    static const MPI_Datatype others[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT_INT};
    int lengths[MAX_LIST], places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
    int num = make_list(lengths, places, addresses);
    MPI_Datatype types[MAX_LIST], type;

    for (int i = 0; i < num; i++) {
        types[i] = (below(2) == 0) ? old : others[below(3)];
    }
    MPI_Type_create_struct(num, lengths, addresses, types, &type);
    return type;
}

static MPI_Datatype make_subarray(MPI_Datatype old)
{
    int num = between(1, 5), sizes[5], subsizes[5], starts[5];
    MPI_Datatype type;

    for (int i = 0; i < num; i++) {
        sizes[i]    = between(1, 4);
        subsizes[i] = between(1, sizes[i]);
        starts[i]   = below(sizes[i] - subsizes[i] + 1);
    }
    MPI_Type_create_subarray(num, sizes, subsizes, starts,
                             below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old,
                             &type);
    return type;
}

/* A dimension: how it is distributed, over how many, in blocks of how many */
static void make_darray_dim(int *size, int *distrib, int *arg, int *procs)
{
    *size  = between(3, 11);
    *arg   = MPI_DISTRIBUTE_DFLT_DARG;
    *procs = between(1, 3);
    switch (below(5)) {
    case 0:
        *distrib = MPI_DISTRIBUTE_NONE;
        *procs   = 1;
        break;
    case 1:
        *distrib = MPI_DISTRIBUTE_BLOCK;
        break;
    case 2:
        *distrib = MPI_DISTRIBUTE_BLOCK;
        *arg     = (*size + *procs - 1) / *procs + below(2);
        break;
    case 3:
        *distrib = MPI_DISTRIBUTE_CYCLIC;
        break;
    default:
        *distrib = MPI_DISTRIBUTE_CYCLIC;
        *arg     = between(1, 3);
        break;
    }
}

static MPI_Datatype make_darray(MPI_Datatype old)
{
    int num   = between(1, 3), sizes[3], distribs[3], args[3], procs[3];
    int ranks = 1;
    MPI_Datatype type;

    for (int i = 0; i < num; i++) {
        make_darray_dim(&sizes[i], &distribs[i], &args[i], &procs[i]);
        ranks *= procs[i];
    }
    /* Open MPI makes none that is empty */
    return MPI_Type_create_darray(
                   ranks, below(ranks), num, sizes, distribs, args, procs,
                   below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &type) ?
                   MPI_DATATYPE_NULL :
                   type;
}

static MPI_Datatype make_resized(MPI_Datatype old)
{
    MPI_Datatype type;

    MPI_Type_create_resized(old, between(-40, 40), between(-90, 200), &type);
    return type;
}

static const struct {
    const char *name;
    MPI_Datatype (*make)(MPI_Datatype old);
} makers[] = {
        {"dup", make_dup},
        {"contiguous", make_contiguous},
        {"vector", make_vector},
        {"hvector", make_hvector},
        {"indexed", make_indexed},
        {"hindexed", make_hindexed},
        {"indexed_block", make_indexed_block},
        {"hindexed_block", make_hindexed_block},
        {"struct", make_struct},
        {"subarray", make_subarray},
        {"darray", make_darray},
        {"resized", make_resized},
};

enum { NUM_MAKERS = sizeof(makers) / sizeof(makers[0]) };

/* --- the zoo ------------------------------------------------------------------ */

static void check_named(void)
{
    const MPI_Datatype types[] = {MPI_CHAR,        MPI_SHORT,
                                  MPI_INT,         MPI_LONG_LONG,
                                  MPI_DOUBLE,      MPI_BYTE,
                                  MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
                                  MPI_FLOAT_INT,   MPI_DOUBLE_INT,
                                  MPI_LONG_INT,    MPI_2INT,
                                  MPI_SHORT_INT,   MPI_LONG_DOUBLE_INT};
    char name[MPI_MAX_OBJECT_NAME];
    int length;

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        MPI_Type_get_name(types[i], name, &length);
        check_type(name, types[i], 0);
    }
}

static void check_f90(void)
{
    MPI_Datatype type, vector;

    MPI_Type_create_f90_real(12, 30, &type);
    check_type("f90 real", type, 0);
    MPI_Type_vector(3, 2, 4, type, &vector);
    MPI_Type_commit(&vector);
    check_type("vector of f90 real", vector, 0);
    MPI_Type_free(&vector);
    MPI_Type_create_f90_complex(6, 30, &type);
    check_type("f90 complex", type, 0);
    MPI_Type_create_f90_integer(9, &type);
    check_type("f90 integer", type, 0);
}

typedef struct animal {
    char name[200];
    int depth;
    int is_negative; /* the extent, or that of one in it */
    MPI_Datatype type;
} animal_t;

static animal_t pool[POOL];

static int is_negative(MPI_Datatype type)
{
    MPI_Aint lb, extent;

    MPI_Type_get_extent(type, &lb, &extent);
    return extent < 0;
}

static void pool_init(void)
{
    static const MPI_Datatype named[] = {MPI_CHAR, MPI_SHORT, MPI_INT,
                                         MPI_DOUBLE, MPI_SHORT_INT};
    static const char *names[]        = {"char", "short", "int", "double",
                                         "short_int"};

    for (int i = 0; i < POOL; i++) {
        MPI_Type_dup(named[i % 5], &pool[i].type);
        strcpy(pool[i].name, names[i % 5]);
    }
}

/* A type of a type, which takes the place of another in the pool */
static void check_random(int maker)
{
    const animal_t *old = &pool[below(POOL)];
    animal_t *place     = &pool[below(POOL)];
    animal_t animal;
    span_t span;

    if (old->depth == 4) {
        old = &pool[below(5)];
    }
    animal.depth = old->depth + 1;
    animal.type  = makers[maker].make(old->type);
    if (animal.type == MPI_DATATYPE_NULL) {
        return;
    }
    snprintf(animal.name, sizeof(animal.name), "%s of %.160s",
             makers[maker].name, old->name);
    MPI_Type_commit(&animal.type);
    animal.is_negative = old->is_negative || is_negative(animal.type);
    check_type(animal.name, animal.type, animal.is_negative);

    /* MPICH 4.0.2 divides by zero where MPI_Pack() meets empty types in others */
    if ((place < &pool[5]) || !get_span(animal.type, 1, &span) ||
        (span.size == 0) || (span.size > MAX_NESTS)) {
        MPI_Type_free(&animal.type);
    } else {
        MPI_Type_free(&place->type);
        *place = animal;
    }
}

static void pool_free(void)
{
    for (int i = 0; i < POOL; i++) {
        MPI_Type_free(&pool[i].type);
    }
}

/* --- types that are too much -------------------------------------------------- */

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* It is refused, and at once */
static void check_refused(const char *name, MPI_Datatype type)
{
    double start   = now();
    shape_t *shape = shape_of(type, MAX_NESTS);

    if ((shape != NULL) || (now() - start > 0.5)) {
        printf("%s: %s after %.3f s\n", name,
               (shape == NULL) ? "refused" : "it has a shape", now() - start);
        errors++;
    }
    free(shape);
}

static void check_million(void)
{
    enum { NUM = 1000000 };
    int *places = need(NUM * sizeof(*places));
    MPI_Datatype type;

    for (int i = 0; i < NUM; i++) {
        places[i] = 3 * i + below(2);
    }
    MPI_Type_create_indexed_block(NUM, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    check_refused("a million pieces", type);
    MPI_Type_free(&type);
    free(places);
}

/* Twice as many types in each as in the one before, of which none has a byte */
static void check_deep(void)
{
    MPI_Datatype types[2], type;

    MPI_Type_contiguous(0, MPI_INT, &types[0]);
    for (int i = 0; i < 24; i++) {
        MPI_Type_dup(types[0], &types[1]);
        MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, types,
                               &type);
        MPI_Type_free(&types[0]);
        MPI_Type_free(&types[1]);
        types[0] = type;
    }
    check_refused("a tree of 2^24 types", type);
    MPI_Type_free(&type);
}

/* --- the rest ------------------------------------------------------------------ */

static void check_number(const char *name, int ours, int its)
{
    if (ours != its) {
        printf("%s is %d, not %d\n", name, its, ours);
        errors++;
    }
}

static void check_abi(void)
{
    const int combiners[] = {
            [MPI_LIB_NAMED]          = MPI_COMBINER_NAMED,
            [MPI_LIB_DUP]            = MPI_COMBINER_DUP,
            [MPI_LIB_CONTIGUOUS]     = MPI_COMBINER_CONTIGUOUS,
            [MPI_LIB_VECTOR]         = MPI_COMBINER_VECTOR,
            [MPI_LIB_HVECTOR]        = MPI_COMBINER_HVECTOR,
            [MPI_LIB_INDEXED]        = MPI_COMBINER_INDEXED,
            [MPI_LIB_HINDEXED]       = MPI_COMBINER_HINDEXED,
            [MPI_LIB_INDEXED_BLOCK]  = MPI_COMBINER_INDEXED_BLOCK,
            [MPI_LIB_STRUCT]         = MPI_COMBINER_STRUCT,
            [MPI_LIB_SUBARRAY]       = MPI_COMBINER_SUBARRAY,
            [MPI_LIB_DARRAY]         = MPI_COMBINER_DARRAY,
            [MPI_LIB_F90_REAL]       = MPI_COMBINER_F90_REAL,
            [MPI_LIB_F90_COMPLEX]    = MPI_COMBINER_F90_COMPLEX,
            [MPI_LIB_F90_INTEGER]    = MPI_COMBINER_F90_INTEGER,
            [MPI_LIB_RESIZED]        = MPI_COMBINER_RESIZED,
            [MPI_LIB_HINDEXED_BLOCK] = MPI_COMBINER_HINDEXED_BLOCK,
    };
    const mpi_abi_t *abi = &lib->abi;

    for (int i = 0; i < MPI_LIB_NUM_COMBINERS; i++) {
        if ((i != MPI_LIB_HVECTOR_INTEGER) && (i != MPI_LIB_HINDEXED_INTEGER) &&
            (i != MPI_LIB_STRUCT_INTEGER)) {
            check_number("a combiner", abi->named + i, combiners[i]);
        }
    }
    check_number("MPI_ORDER_C", abi->order_c, MPI_ORDER_C);
    check_number("MPI_DISTRIBUTE_BLOCK", abi->block, MPI_DISTRIBUTE_BLOCK);
    check_number("MPI_DISTRIBUTE_CYCLIC", abi->cyclic, MPI_DISTRIBUTE_CYCLIC);
    check_number("MPI_DISTRIBUTE_DFLT_DARG", abi->dflt_arg,
                 MPI_DISTRIBUTE_DFLT_DARG);
}

/* MPICH, of which one call must not be in another, is not asked then */
static void check_multiple(void)
{
    shape_t *shape = shape_of(MPI_INT, 1);

#ifdef OPEN_MPI
    check_number("with threads, a shape", 1, shape != NULL);
#else
    check_number("with threads, a shape", 0, shape != NULL);
#endif
    free(shape);
}

static void check_lib(void)
{
    void *code = dlsym(RTLD_DEFAULT, "MPI_Pack");

    lib = mpi_lib_of(code);
    if ((lib == NULL) || !mpi_lib_is_present() ||
        (mpi_lib_of((const void *)check_lib) != NULL)) {
        printf("the MPI is not found, or in the wrong place\n");
        exit(1);
    }
}

static void check_all(unsigned num)
{
    check_abi();
    check_named();
    check_f90();
    pool_init();
    for (unsigned i = 0; i < num; i++) {
        check_random(i % NUM_MAKERS);
    }
    pool_free();
    check_million();
    check_deep();
}

int main(int argc, char **argv)
{
    unsigned seed =
            (argc > 1) ? strtoul(argv[1], NULL, 0) : (unsigned long)time(NULL);
    unsigned num = (argc > 2) ? strtoul(argv[2], NULL, 0) : 600;
    int is_multi = (argc > 3);
    int provided;

    check_lib(); /* before MPI_Init() */
    random_state = seed;
    MPI_Init_thread(&argc, &argv,
                    is_multi ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (is_multi) {
        check_multiple();
    } else {
        check_all(num);
    }
    MPI_Finalize();
    printf("mpi_zoo: seed %u, %d types, %d shapes, %d wrong\n", seed, num_types,
           num_shapes, errors);
    return errors != 0;
}
