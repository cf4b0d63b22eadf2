/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of all kinds, nested at random: for mpi_zoo.c, which tests them
 * alone, and mpi_zoo_wire.c, which sends them
 */
#ifndef DCX_TEST_MPI_ZOO_H
#define DCX_TEST_MPI_ZOO_H

#include <mpi.h>

typedef struct zoo_animal {
    char name[200];
    int depth;
    int is_negative; /* the extent, or an extent inside */
    MPI_Datatype type;
} zoo_animal_t;

typedef void (*zoo_visit_t)(const zoo_animal_t *animal);

/* Calls 'visit' with 'num' types; the same seed makes the same types. */
void zoo_show(unsigned seed, unsigned num, zoo_visit_t visit);

/* Returns a random number below 'limit', also for visitors. */
int zoo_below(int limit);

typedef struct zoo_span {
    MPI_Aint begin;
    MPI_Aint end;
    int size; /* number of packed bytes */
} zoo_span_t;

/* Gets the span of 'count' elements. Returns 0 if it is too large for a
 * test. */
int zoo_get_span(MPI_Datatype type, int count, zoo_span_t *span);

#endif
