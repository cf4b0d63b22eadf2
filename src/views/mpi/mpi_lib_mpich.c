/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * MPICH 4 and 5. Source: src/include/mpi.h.in.
 *
 * In Debian's build of 4.0.2, all calls of MPI hold one lock if the program
 * asked for MPI_THREAD_MULTIPLE, and a thread that has it must not take it
 * again (mpidu_thread_fallback.h). So MPICH cannot be asked within a call then:
 * it is asked when a type was committed (hook_commit.c). With a lower thread
 * level, there is no lock.
 */
#include "mpi_lib.h"

#include <string.h>


enum { MPICH_THREAD_MULTIPLE = 3 };


static struct {
    int (*query_thread)(int *provided);
    int (*envelope)(mpi_handle_t type, long long *num_ints,
                    long long *num_addresses, long long *num_counts,
                    long long *num_types, int *combiner);
    int (*contents)(mpi_handle_t type, int max_ints, int max_addresses,
                    int max_types, int *ints, ptrdiff_t *addresses, int *types);
    int (*free)(int *type);
} mpich;

static const mpi_symbol_t mpich_symbols[] = {
    {"PMPI_Query_thread", &mpich.query_thread},
    {"PMPI_Type_get_envelope_c", &mpich.envelope},
    {"PMPI_Type_get_contents", &mpich.contents},
    {"PMPI_Type_free", &mpich.free},
    {NULL, NULL}};


/* Asks for the thread level: MPI_Query_thread() takes no lock. */
static int mpich_is_askable(void)
{
    int provided;

    return !mpich.query_thread(&provided) &&
           (provided != MPICH_THREAD_MULTIPLE);
}

/* Returns the handle: the first field of the MPIR_Datatype, as of all objects
 * of MPICH. The context is the MPIR_Datatype (ucx_datatype.c). */
static mpi_handle_t mpich_handle(const void *context)
{
    return *(const unsigned *)context;
}

/* Calls MPI_Type_get_envelope_c(), which succeeds for counts of 64 bits, too;
 * MPI_Type_get_envelope() fails. */
static int mpich_get_envelope(mpi_handle_t type, mpi_args_t *args,
                              int *combiner)
{
    long long ints, addresses, counts, types;

    if (mpich.envelope(type, &ints, &addresses, &counts, &types, combiner)) {
        return -1;
    }
    return mpi_args_set_numbers(args, ints, addresses, counts, types);
}

/* Gets the handles as an array of ints, then widens them in place, from the
 * end. */
static int mpich_get_contents(mpi_handle_t type, mpi_args_t *args)
{
    unsigned handle;

    if (mpich.contents(type, args->num_ints, args->num_addresses,
                       args->num_types, args->ints, args->addresses,
                       (int *)args->types)) {
        return -1;
    }

    for (int i = args->num_types - 1; i >= 0; i--) {
        memcpy(&handle, (char *)args->types + i * sizeof(handle),
               sizeof(handle));
        args->types[i] = handle;
    }
    return 0;
}

/* Frees the references that MPI_Type_get_contents() returned to types that are
 * not named. It also returned references to pairs (MPI_DOUBLE_INT), which are
 * named, but objects (type_contents.c). These cannot be released, as
 * MPI_Type_free() refuses named types; MPICH never frees pairs. */
static void mpich_put_types(const mpi_args_t *args)
{
    int combiner, handle;
    long long num;

    for (int i = 0; i < args->num_types; i++) {
        if (!mpich.envelope(args->types[i], &num, &num, &num, &num,
                            &combiner) &&
            (combiner != mpi_lib_mpich.abi.named)) {
            handle = (int)args->types[i];
            mpich.free(&handle);
        }
    }
}

const mpi_lib_t mpi_lib_mpich = {
    .abi          = {.named    = 1,
                     .order_c  = 56,
                     .block    = 121,
                     .cyclic   = 122,
                     .dflt_arg = -49767},
    .name         = "MPICH Version:",
    .versions     = {"4.", "5."},
    .symbols      = mpich_symbols,
    .is_askable   = mpich_is_askable,
    .handle       = mpich_handle,
    .get_envelope = mpich_get_envelope,
    .get_contents = mpich_get_contents,
    .put_types    = mpich_put_types,
};
