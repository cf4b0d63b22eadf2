/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Random types. The same seed makes the same types, if their visitor draws as
 * many random numbers.
 */
#include "test/mpi/zoo.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SIZE = 4096, /* bytes of a type that is part of others */
    MAX_SPAN = 1 << 22,
    POOL     = 64 /* types that can be part of others */
};

static uint64_t random_state;

int zoo_below(int limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % limit);
}

static int between(int low, int high)
{
    return low + zoo_below(high - low + 1);
}

int zoo_get_span(MPI_Datatype type, int count, zoo_span_t *span)
{
    MPI_Aint lb, extent, true_lb, true_extent, last;
    int size;

    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &true_lb, &true_extent);
    MPI_Type_size(type, &size); /* MPI_UNDEFINED: more than an int */
    if (size == 0) {
        *span = (zoo_span_t){0}; /* MPICH may return any true extent then */
        return 1;
    }

    last        = (count - 1) * extent;
    span->begin = true_lb + ((last < 0) ? last : 0);
    span->end   = true_lb + true_extent + ((last > 0) ? last : 0);
    span->size  = size * count;
    return (size != MPI_UNDEFINED) && (size < MAX_SPAN) &&
           (span->end - span->begin < MAX_SPAN);
}

/* --- how types are made --------------------------------------------------- */

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

/* Open MPI 4.1.4 treats a stride of -1 byte as none: avoided */
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

enum { FEW_ENTRIES = 6, MAX_LIST = 80 };

typedef struct list {
    int num;
    int lengths[MAX_LIST];
    int places[MAX_LIST];
    MPI_Aint addresses[MAX_LIST];
} list_t;

/* Entries of any length at any place */
static void make_few_entries(list_t *list)
{
    list->num = between(0, FEW_ENTRIES);
    for (int i = 0; i < list->num; i++) {
        list->lengths[i]   = between(0, 3);
        list->places[i]    = between(-4, 5) + 4 * i;
        list->addresses[i] = between(-50, 50) + 64 * i;
    }
}

/* Entries as in programs: most are at equal distances, or adjacent. */
static void make_many_entries(list_t *list, MPI_Datatype old)
{
    int num = between(FEW_ENTRIES, MAX_LIST), period = between(1, 4), at = 0;
    int length = between(1, 3), step = length + zoo_below(3);
    MPI_Aint lb, extent;

    MPI_Type_get_extent(old, &lb, &extent);
    list->num = num;
    for (int i = 0; i < num; i++) {
        list->lengths[i]   = (zoo_below(20) == 0) ? between(0, 3) : length;
        list->places[i]    = at;
        list->addresses[i] = at * extent;
        at += step + (i % period == 0) + (zoo_below(20) == 0);
    }
}

static list_t make_list(MPI_Datatype old)
{
    list_t list;

    if (zoo_below(3) == 0) {
        make_many_entries(&list, old);
    } else {
        make_few_entries(&list);
    }
    return list;
}

static MPI_Datatype make_indexed(MPI_Datatype old)
{
    list_t list = make_list(old);
    MPI_Datatype type;

    MPI_Type_indexed(list.num, list.lengths, list.places, old, &type);
    return type;
}

static MPI_Datatype make_hindexed(MPI_Datatype old)
{
    list_t list = make_list(old);
    MPI_Datatype type;

    MPI_Type_create_hindexed(list.num, list.lengths, list.addresses, old,
                             &type);
    return type;
}

static MPI_Datatype make_indexed_block(MPI_Datatype old)
{
    list_t list = make_list(old);
    MPI_Datatype type;

    MPI_Type_create_indexed_block(list.num, between(0, 3), list.places, old,
                                  &type);
    return type;
}

static MPI_Datatype make_hindexed_block(MPI_Datatype old)
{
    list_t list = make_list(old);
    MPI_Datatype type;

    MPI_Type_create_hindexed_block(list.num, between(0, 3), list.addresses, old,
                                   &type);
    return type;
}

static MPI_Datatype make_struct(MPI_Datatype old)
{
    static const MPI_Datatype others[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT_INT};
    list_t list                        = make_list(old);
    MPI_Datatype types[MAX_LIST], type;

    for (int i = 0; i < list.num; i++) {
        types[i] = (zoo_below(2) == 0) ? old : others[zoo_below(3)];
    }
    MPI_Type_create_struct(list.num, list.lengths, list.addresses, types,
                           &type);
    return type;
}

static MPI_Datatype make_subarray(MPI_Datatype old)
{
    int num = between(1, 5), sizes[5], subsizes[5], starts[5];
    MPI_Datatype type;

    for (int i = 0; i < num; i++) {
        sizes[i]    = between(1, 4);
        subsizes[i] = between(1, sizes[i]);
        starts[i]   = zoo_below(sizes[i] - subsizes[i] + 1);
    }
    MPI_Type_create_subarray(num, sizes, subsizes, starts,
                             zoo_below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                             old, &type);
    return type;
}

/* Draws a dimension: its distribution, number of processes, and block size. */
static void make_darray_dim(int *size, int *distrib, int *arg, int *procs)
{
    *size  = between(3, 11);
    *arg   = MPI_DISTRIBUTE_DFLT_DARG;
    *procs = between(1, 3);
    switch (zoo_below(5)) {
    case 0:
        *distrib = MPI_DISTRIBUTE_NONE;
        *procs   = 1;
        break;
    case 1:
        *distrib = MPI_DISTRIBUTE_BLOCK;
        break;
    case 2:
        *distrib = MPI_DISTRIBUTE_BLOCK;
        *arg     = (*size + *procs - 1) / *procs + zoo_below(2);
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
    /* Open MPI does not make an empty one */
    return MPI_Type_create_darray(
               ranks, zoo_below(ranks), num, sizes, distribs, args, procs,
               zoo_below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, old, &type) ?
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

/* --- the zoo -------------------------------------------------------------- */

static zoo_animal_t pool[POOL];

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

/* Makes a type of one from the pool. Returns 0 if MPI refuses. */
static int make_animal(int maker, zoo_animal_t *animal)
{
    const zoo_animal_t *old = &pool[zoo_below(POOL)];

    if (old->depth == 4) {
        old = &pool[zoo_below(5)];
    }
    animal->depth = old->depth + 1;
    animal->type  = makers[maker].make(old->type);
    if (animal->type == MPI_DATATYPE_NULL) {
        return 0;
    }
    snprintf(animal->name, sizeof(animal->name), "%s of %.160s",
             makers[maker].name, old->name);
    MPI_Type_commit(&animal->type);
    animal->is_negative = old->is_negative || is_negative(animal->type);
    return 1;
}

/* Puts the type into the pool in the place of another, or frees it. */
static void keep_animal(zoo_animal_t *animal)
{
    zoo_animal_t *place = &pool[zoo_below(POOL)];
    zoo_span_t span;

    /* MPICH 4.0.2 divides by zero if MPI_Pack() finds empty types in others */
    if ((place < &pool[5]) || !zoo_get_span(animal->type, 1, &span) ||
        (span.size == 0) || (span.size > MAX_SIZE)) {
        MPI_Type_free(&animal->type);
    } else {
        MPI_Type_free(&place->type);
        *place = *animal;
    }
}

static void pool_free(void)
{
    for (int i = 0; i < POOL; i++) {
        MPI_Type_free(&pool[i].type);
    }
}

void zoo_show(unsigned seed, unsigned num, zoo_visit_t visit)
{
    zoo_animal_t animal;

    random_state = seed;
    pool_init();
    for (unsigned i = 0; i < num; i++) {
        if (make_animal(i % NUM_MAKERS, &animal)) {
            visit(&animal);
            keep_animal(&animal);
        }
    }
    pool_free();
}
