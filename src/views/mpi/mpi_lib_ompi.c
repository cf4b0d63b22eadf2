/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Open MPI 4.1, 5.0 and 6.0. Source: ompi/include/mpi.h.in,
 * ompi/datatype/ompi_datatype.h.
 *
 * Calls ompi_datatype_get_args(), which has one form in 4.1 and 5.0, and
 * another in 6.0. MPI_Type_get_envelope() and MPI_Type_get_contents() wrap it,
 * but they abort the job for a type that Open MPI made for itself and that has
 * no arguments, and they copy each type that they return.
 */
#include "mpi_lib.h"


/* Functions of 4.1 and 5.0. @which: 0 for the numbers and the combiner, 1 for
 * the arrays */
static struct {
    int (*get_args)(mpi_handle_t type, int which, int *num_ints, int *ints,
                    int *num_addresses, ptrdiff_t *addresses, int *num_types,
                    mpi_handle_t *types, int *combiner);
} ompi;

/* Functions of 6.0. @counts: MPI_Counts of types that were made by functions
 * with _c */
static struct {
    int (*get_args)(mpi_handle_t type, int which, size_t *num_ints, int *ints,
                    size_t *num_counts, long long *counts,
                    size_t *num_addresses, ptrdiff_t *addresses,
                    size_t *num_types, mpi_handle_t *types, int *combiner);
} ompi_6;

static const mpi_symbol_t ompi_symbols[] = {
    {"ompi_datatype_get_args", &ompi.get_args},
    {NULL, NULL}};

static const mpi_symbol_t ompi_6_symbols[] = {
    {"ompi_datatype_get_args", &ompi_6.get_args},
    {NULL, NULL}};


static int ompi_is_askable(void)
{
    return 1;
}

/* Returns the context, which is the ompi_datatype_t (pml_ucx_datatype.c). */
static mpi_handle_t ompi_handle(const void *context)
{
    return (mpi_handle_t)context;
}

static int ompi_get_envelope(mpi_handle_t type, mpi_args_t *args, int *combiner)
{
    return ompi.get_args(type, 0, &args->num_ints, NULL, &args->num_addresses,
                         NULL, &args->num_types, NULL, combiner);
}

static int ompi_get_contents(mpi_handle_t type, mpi_args_t *args)
{
    return ompi.get_args(type, 1, &args->num_ints, args->ints,
                         &args->num_addresses, args->addresses,
                         &args->num_types, args->types, &(int){0});
}

static int ompi_6_get_envelope(mpi_handle_t type, mpi_args_t *args,
                               int *combiner)
{
    size_t ints, counts, addresses, types;

    if (ompi_6.get_args(type, 0, &ints, NULL, &counts, NULL, &addresses, NULL,
                        &types, NULL, combiner)) {
        return -1;
    }
    return mpi_args_set_numbers(args, ints, addresses, counts, types);
}

static int ompi_6_get_contents(mpi_handle_t type, mpi_args_t *args)
{
    return ompi_6.get_args(type, 1, &(size_t){args->num_ints}, args->ints,
                           &(size_t){0}, NULL, &(size_t){args->num_addresses},
                           args->addresses, &(size_t){args->num_types},
                           args->types, &(int){0});
}

/* Does nothing: inner types live as long as the type that contains them. */
static void ompi_put_types(const mpi_args_t *args)
{
    (void)args;
}

#define OMPI_ABI \
    { \
        .named = 0, .order_c = 0, .block = 0, .cyclic = 1, .dflt_arg = -1 \
    }

const mpi_lib_t mpi_lib_ompi = {
    .abi          = OMPI_ABI,
    .name         = "Open MPI",
    .versions     = {"v4.1.", "v5.0."},
    .symbols      = ompi_symbols,
    .is_askable   = ompi_is_askable,
    .handle       = ompi_handle,
    .get_envelope = ompi_get_envelope,
    .get_contents = ompi_get_contents,
    .put_types    = ompi_put_types,
};

const mpi_lib_t mpi_lib_ompi_6 = {
    .abi          = OMPI_ABI,
    .name         = "Open MPI",
    .versions     = {"v6.0."},
    .symbols      = ompi_6_symbols,
    .is_askable   = ompi_is_askable,
    .handle       = ompi_handle,
    .get_envelope = ompi_6_get_envelope,
    .get_contents = ompi_6_get_contents,
    .put_types    = ompi_put_types,
};
