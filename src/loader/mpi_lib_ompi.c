/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Open MPI 4.1 and 5.0: ompi/include/mpi.h.in, ompi/datatype/ompi_datatype.h.
 *
 * ompi_datatype_get_args() is asked, of which both versions have the same:
 * MPI_Type_get_envelope() and MPI_Type_get_contents() are around it, but end the
 * job for a type that Open MPI made for itself and that has no arguments, and
 * copy each type that they return.
 */
#include "mpi_lib.h"


/* 'which' is 0 for the numbers and the combiner, 1 for the rest */
static struct {
    int (*get_args)(mpi_handle_t type, int which, int *num_ints, int *ints,
                    int *num_addresses, ptrdiff_t *addresses, int *num_types,
                    mpi_handle_t *types, int *combiner);
} ompi;

static const mpi_symbol_t ompi_symbols[] = {
        {"ompi_datatype_get_args", &ompi.get_args},
        {NULL, NULL}};


static int ompi_is_askable(void)
{
    return 1;
}

/* pml_ucx_datatype.c: the context is the ompi_datatype_t */
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

/* They are alive as long as the type that they are in */
static void ompi_put_types(const mpi_args_t *args)
{
    (void)args;
}

const mpi_lib_t mpi_lib_ompi = {
        .abi          = {.named    = 0,
                         .order_c  = 0,
                         .block    = 0,
                         .cyclic   = 1,
                         .dflt_arg = -1},
        .name         = "Open MPI",
        .versions     = {"v4.1.", "v5.0."},
        .symbols      = ompi_symbols,
        .is_askable   = ompi_is_askable,
        .handle       = ompi_handle,
        .get_envelope = ompi_get_envelope,
        .get_contents = ompi_get_contents,
        .put_types    = ompi_put_types,
};
