/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_zoo [SEED [TYPES [multiple]]]: types of all kinds, alone, nested, and at
 * random. The shape that mpi_type_shape() makes of a type has to gather the
 * bytes that MPI_Pack() packs, and to scatter them as MPI_Unpack() does, for
 * one to three elements. The loader's constants for this MPI must equal those
 * in its mpi.h. With `multiple` only MPI_INT is tried, in MPI_THREAD_MULTIPLE.
 */
#define _GNU_SOURCE
#include "views/mpi/mpi_type.h"
#include "test/mpi/zoo.h"
#include "test/times.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTS = 4096, MAX_COUNT = 3 };

static const mpi_lib_t *lib;
static int num_types, num_shapes, errors;

static void *need(size_t bytes)
{
    void *memory = malloc(bytes + 1);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

/* --- one type ------------------------------------------------------------- */

/* Returns the context of a type, as passed to ucp_dt_create_generic(). */
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

/* Gathers in two parts. */
static void gather(const shape_data_t *data, char *dest, int size)
{
    int part = zoo_below(size + 1);

    shape_gather(data, 0, dest, part);
    shape_gather(data, part, dest + part, size - part);
}

static void scatter(const shape_data_t *data, const char *src, int size)
{
    int part = zoo_below(size + 1);

    shape_scatter(data, 0, src, part);
    shape_scatter(data, part, src + part, size - part);
}

static void pack(const void *memory, const shape_data_t *data,
                 MPI_Datatype type, char *dest, int size)
{
    int position = 0;

    MPI_Pack(memory, (int)data->count, type, dest, size, &position,
             MPI_COMM_WORLD);
}

static int is_gathered(const shape_data_t *data, MPI_Datatype type, int size)
{
    char *packed = need(size), *gathered = need(size);
    int is_same;

    pack(data->buffer, data, type, packed, size);
    gather(data, gathered, size);
    is_same = !memcmp(gathered, packed, size);
    free(gathered);
    free(packed);
    return is_same;
}

/* Scatters random bytes, and compares the memory with MPI_Unpack()'s. Types
 * with several bytes in one place (packing returns other bytes) are not
 * compared. */
static int is_scattered(shape_data_t *data, MPI_Datatype type,
                        const zoo_span_t *span, char *other)
{
    char *packed = need(span->size), *again = need(span->size);
    char *memory = (char *)data->buffer + span->begin;
    size_t len   = span->end - span->begin;
    int position = 0, is_same;

    for (int i = 0; i < span->size; i++) {
        packed[i] = (char)zoo_below(256);
    }
    memcpy(other, memory, len);
    MPI_Unpack(packed, span->size, &position, other - span->begin,
               (int)data->count, type, MPI_COMM_WORLD);
    pack(other - span->begin, data, type, again, span->size);
    scatter(data, packed, span->size);
    is_same = memcmp(packed, again, span->size) || !memcmp(memory, other, len);
    free(again);
    free(packed);
    return is_same;
}

static void compare(const char *name, MPI_Datatype type, const shape_t *shape,
                    int count)
{
    shape_data_t data;
    char *memory, *other;
    zoo_span_t span;

    if (!zoo_get_span(type, count, &span)) {
        return;
    }

    memory = need(span.end - span.begin);
    other  = need(span.end - span.begin);
    data   = (shape_data_t){shape, memory - span.begin, count};
    for (MPI_Aint i = 0; i < span.end - span.begin; i++) {
        memory[i] = (char)zoo_below(256);
    }
    if ((shape_length(&data) != (size_t)span.size) ||
        (mpi_type_size(lib, context_of(&type)) != shape->size)) {
        printf("%s: %d of it are %zu bytes instead of %d\n", name, count,
               shape_length(&data), span.size);
        errors++;
    } else if (!is_gathered(&data, type, span.size)) {
        printf("%s: %d of it are other bytes\n", name, count);
        errors++;
    } else if (!is_scattered(&data, type, &span, other)) {
        printf("%s: %d of it are scattered to other places\n", name, count);
        errors++;
    }
    free(other);
    free(memory);
}

/* Checks that a type has a shape unless it is too large; twice, so that a
 * missing or a double free of a type is found. */
static void check_type(const char *name, MPI_Datatype type, int is_refused)
{
    shape_t *shape;
    zoo_span_t span;

    num_types++;
    for (int i = 0; i < 2; i++) {
        shape = shape_of(type, MAX_NESTS);
        num_shapes += (shape != NULL) && (i == 0);
        if ((shape == NULL) && !is_refused && zoo_get_span(type, 1, &span) &&
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

/* --- the zoo -------------------------------------------------------------- */

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

static void check_random(const zoo_animal_t *animal)
{
    check_type(animal->name, animal->type, animal->is_negative);
}

/* --- types that are too large --------------------------------------------- */

/* Checks that the type is refused, and at once. */
static void check_refused(const char *name, MPI_Datatype type)
{
    uint64_t start = time_now_us();
    shape_t *shape = shape_of(type, MAX_NESTS);
    double ms      = (time_now_us() - start) / 1e3;

    if ((shape != NULL) || (ms > time_slow(TIME_REFUSAL))) {
        printf("%s: %s after %.0f ms\n", name,
               (shape == NULL) ? "refused" : "it has a shape", ms);
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
        places[i] = 3 * i + zoo_below(2);
    }
    MPI_Type_create_indexed_block(NUM, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    check_refused("a million pieces", type);
    MPI_Type_free(&type);
    free(places);
}

/* Each type has twice as many types as the one before, and none has a byte. */
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

/* --- the rest ------------------------------------------------------------- */

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

/* The loader must not call MPICH within another call of it; here it calls
 * between two calls. */
static void check_multiple(void)
{
    shape_t *shape = shape_of(MPI_INT, 1);

#ifdef OPEN_MPI
    check_number("with threads, asked", 1, lib->is_askable());
#else
    check_number("with threads, asked", 0, lib->is_askable());
#endif
    check_number("with threads, a shape", 1, shape != NULL);
    free(shape);
}

/* A function in the library that makes types for UCX. In Open MPI 6 this
 * library does not contain the functions MPI_*. */
#ifdef OPEN_MPI
#define LIB_FUNCTION "ompi_datatype_get_args"
#else
#define LIB_FUNCTION "MPI_Pack"
#endif

static void check_lib(void)
{
    void *code = dlsym(RTLD_DEFAULT, LIB_FUNCTION);

    lib = mpi_lib_of(code);
    if ((lib == NULL) || !mpi_lib_is_present() ||
        (mpi_lib_of((const void *)check_lib) != NULL)) {
        printf("the MPI is not found, or in the wrong place\n");
        exit(1);
    }
}

static void check_all(unsigned seed, unsigned num)
{
    check_abi();
    check_named();
    check_f90();
    zoo_show(seed, num, check_random);
    check_million();
    check_deep();
}

int main(int argc, char **argv)
{
    unsigned seed = (argc > 1) ? strtoul(argv[1], NULL, 0) :
                                 (unsigned long)time(NULL);
    unsigned num  = (argc > 2) ? strtoul(argv[2], NULL, 0) : 600;
    int is_multi  = (argc > 3);
    int provided;

    check_lib(); /* before MPI_Init() */
    MPI_Init_thread(&argc, &argv,
                    is_multi ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (is_multi) {
        check_multiple();
    } else {
        check_all(seed, num);
    }
    MPI_Finalize();
    printf("mpi_zoo: seed %u, %d types, %d shapes, %d wrong\n", seed, num_types,
           num_shapes, errors);
    return errors != 0;
}
