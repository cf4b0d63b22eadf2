/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPI in this process, by its binary interface: where it is, and what it
 * tells of a data type. mpi_lib.c finds it, mpi_lib_ompi.c and mpi_lib_mpich.c
 * are what differs between the two that are known.
 */
#ifndef MPI_LIB_H
#define MPI_LIB_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>


/* An MPI_Datatype: of Open MPI an address, of MPICH an int. It is passed like
 * that to functions that take an int, too: on x86-64 an int argument is the
 * lower half of the register. */
typedef uintptr_t mpi_handle_t;


/* How a type was made: MPI_COMBINER_*. The order is that of all MPIs; only the
 * value of the first differs. No MPI makes those with _INTEGER any more, which
 * are of Fortran in MPI-1. */
typedef enum mpi_combiner {
    MPI_LIB_NAMED,
    MPI_LIB_DUP,
    MPI_LIB_CONTIGUOUS,
    MPI_LIB_VECTOR,
    MPI_LIB_HVECTOR_INTEGER,
    MPI_LIB_HVECTOR,
    MPI_LIB_INDEXED,
    MPI_LIB_HINDEXED_INTEGER,
    MPI_LIB_HINDEXED,
    MPI_LIB_INDEXED_BLOCK,
    MPI_LIB_STRUCT_INTEGER,
    MPI_LIB_STRUCT,
    MPI_LIB_SUBARRAY,
    MPI_LIB_DARRAY,
    MPI_LIB_F90_REAL,
    MPI_LIB_F90_COMPLEX,
    MPI_LIB_F90_INTEGER,
    MPI_LIB_RESIZED,
    MPI_LIB_HINDEXED_BLOCK,
    MPI_LIB_NUM_COMBINERS
} mpi_combiner_t;


/* Values of mpi.h, which differ between MPIs */
typedef struct mpi_abi {
    int named;    /* MPI_COMBINER_NAMED */
    int order_c;  /* MPI_ORDER_C */
    int block;    /* MPI_DISTRIBUTE_BLOCK */
    int cyclic;   /* MPI_DISTRIBUTE_CYCLIC */
    int dflt_arg; /* MPI_DISTRIBUTE_DFLT_DARG */
} mpi_abi_t;


/* What a type was made of, as MPI_Type_get_contents() has it. Named ones, and
 * those of Fortran 90, have no types in them. */
typedef struct mpi_args {
    mpi_combiner_t combiner;
    int num_ints;
    int num_addresses;
    int num_types;
    int *ints;
    ptrdiff_t *addresses;
    mpi_handle_t *types;
} mpi_args_t;


/* What the MPI says of a type */
typedef struct mpi_extents {
    long long size;
    ptrdiff_t lb;
    ptrdiff_t extent;
    ptrdiff_t true_lb;
    ptrdiff_t true_extent;
} mpi_extents_t;


/* A function of the MPI, and where its address goes */
typedef struct mpi_symbol {
    const char *name;
    void *pointer;
} mpi_symbol_t;

typedef struct mpi_lib {
    mpi_abi_t abi;
    const char *name;            /* what MPI_Get_library_version() says, */
    const char *versions[2];     /* ... and then, behind blanks */
    const mpi_symbol_t *symbols; /* ends with a NULL */

    /* Whether it can be asked within a call of MPI */
    int (*is_askable)(void);
    mpi_handle_t (*handle)(const void *context);

    /* See mpi_lib_get_args(): the numbers and the combiner, as the MPI's int;
     * the rest; and what is to be done with types that are no longer used */
    int (*get_envelope)(mpi_handle_t type, mpi_args_t *args, int *combiner);
    int (*get_contents)(mpi_handle_t type, mpi_args_t *args);
    void (*put_types)(const mpi_args_t *args);
} mpi_lib_t;

extern const mpi_lib_t mpi_lib_ompi;
extern const mpi_lib_t mpi_lib_ompi_6;
extern const mpi_lib_t mpi_lib_mpich;


/* The numbers, from an MPI that has counts of 64 bits as well. Returns
 * non-zero, and leaves the type to packing, if it has any, or more of a kind
 * than an int counts. */
static inline int
mpi_args_set_numbers(mpi_args_t *args, size_t ints, size_t addresses,
                     size_t counts, size_t types)
{
    if ((counts > 0) || (ints > INT_MAX) || (addresses > INT_MAX) ||
        (types > INT_MAX)) {
        return -1;
    }
    args->num_ints      = (int)ints;
    args->num_addresses = (int)addresses;
    args->num_types     = (int)types;
    return 0;
}

/* Whether there is an MPI in the process that is known. Cheap; may be called
 * before MPI_Init(). */
int mpi_lib_is_present(void);

/* The MPI that made a generic data type, by the address of one of its
 * functions; NULL: it is of no MPI that is known, in a version that is. */
const mpi_lib_t *mpi_lib_of(const void *code);

/* Returns non-zero if the MPI does not tell */
int mpi_lib_get_extents(mpi_handle_t type, mpi_extents_t *extents);

/* Fills 'args', which mpi_lib_put_args() frees. Returns non-zero if the MPI
 * does not tell, or there are more than 'max' of a kind. */
int mpi_lib_get_args(const mpi_lib_t *lib, mpi_handle_t type, int max,
                     mpi_args_t *args);
void mpi_lib_put_args(const mpi_lib_t *lib, mpi_args_t *args);

#endif
