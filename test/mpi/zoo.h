/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of all kinds, nested in each other at random: for mpi_zoo.c, which
 * looks at them, and mpi_zoo_wire.c, which sends them.
 */
#ifndef DCX_TEST_MPI_ZOO_H
#define DCX_TEST_MPI_ZOO_H

#include <mpi.h>

typedef struct zoo_animal {
    char name[200];
    int depth;
    int is_negative; /* the extent, or that of one in it */
    MPI_Datatype type;
} zoo_animal_t;

typedef void (*zoo_visit_t)(const zoo_animal_t *animal);

/* Shows 'num' types, of which the same seed makes the same */
void zoo_show(unsigned seed, unsigned num, zoo_visit_t visit);

/* A random number, also for those who are shown types */
int zoo_below(int limit);

typedef struct zoo_span {
    MPI_Aint begin;
    MPI_Aint end;
    int size; /* bytes that are packed */
} zoo_span_t;

/* Where 'count' elements lie. Returns 0 if that is too much to be tried. */
int zoo_get_span(MPI_Datatype type, int count, zoo_span_t *span);

#endif
