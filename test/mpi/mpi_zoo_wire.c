/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * mpi_zoo_wire [SEED [TYPES]]: sends random types of the zoo as bytes and as
 * the same type, and receives bytes as these types; some messages are shorter
 * than the receive. Compares every byte, also those between the pieces. The
 * settings of the ranks decide whether the messages are zero-copy.
 */
#include "test/mpi/rules.h"
#include "test/mpi/zoo.h"

#include <time.h>

enum { MIN_BYTES = 40000, MAX_SIZE = 100000 };

static int num_types, errors;

/* MPI does not allow a receive of several bytes to one place. */
static int is_overlapping(const struct area *area)
{
    char *is_used = need(area->length);
    int overlaps  = 0;

    memset(is_used, 0, area->length);
    for (size_t i = 0; i < area->size; i++) {
        overlaps += is_used[area->map[i]]++ != 0;
    }
    free(is_used);
    return overlaps != 0;
}

static void exchange_types(const char *name, struct area *typed)
{
    struct area bytes, fewer, other;
    unsigned seed = zoo_below(1000);
    size_t size   = typed->size / typed->count;

    area_init_bytes(&bytes, typed->size);
    area_init_bytes(&fewer, typed->size - zoo_below(typed->count) * size);
    area_clone(typed, &other);
    errors += exchange(name, typed, &bytes, seed, MPI_COMM_WORLD);
    if (!is_overlapping(typed)) {
        errors += exchange(name, &bytes, typed, seed + 1, MPI_COMM_WORLD);
        errors += exchange(name, typed, &other, seed + 2, MPI_COMM_WORLD);
        errors += exchange_late(name, &fewer, typed, seed + 3, MPI_COMM_WORLD);
    }
    area_cleanup_clone(&other);
    area_cleanup(&fewer);
    area_cleanup(&bytes);
}

static void visit(const zoo_animal_t *animal)
{
    struct area typed;
    zoo_span_t span;
    int count;

    if (animal->is_negative || !zoo_get_span(animal->type, 1, &span) ||
        (span.size == 0) || (span.size > MAX_SIZE)) {
        return;
    }
    count = MIN_BYTES / span.size + 1 + zoo_below(5);
    if (!zoo_get_span(animal->type, count, &span)) {
        return;
    }

    num_types++;
    area_init(&typed, animal->type, count);
    exchange_types(animal->name, &typed);
    typed.type = MPI_DATATYPE_NULL; /* it stays in the zoo */
    area_cleanup(&typed);
}

/* Returns the seed of rank 0 on all ranks. */
static unsigned choose_seed(int argc, char **argv)
{
    unsigned seed = (argc > 1) ? strtoul(argv[1], NULL, 0) :
                                 (unsigned long)time(NULL);

    MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
    return seed;
}

int main(int argc, char **argv)
{
    unsigned num = (argc > 2) ? strtoul(argv[2], NULL, 0) : 200;
    unsigned seed;
    int all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    seed = choose_seed(argc, argv);
    if (rank == 0) {
        printf("mpi_zoo_wire: seed %u\n", seed);
        fflush(stdout);
    }
    zoo_show(seed, num, visit);
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("mpi_zoo_wire: seed %u, %d ranks, %d types, %d wrong\n", seed,
               ranks, num_types, all);
    }
    MPI_Finalize();
    return all != 0;
}
