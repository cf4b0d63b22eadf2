/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The MPI in this process, through its binary interface: finds it, and asks it
 * about data types. mpi_lib.c finds it; mpi_lib_ompi.c and mpi_lib_mpich.c have
 * the parts in which Open MPI and MPICH differ.
 */
#ifndef MPI_LIB_H
#define MPI_LIB_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>


/* An MPI_Datatype: an address in Open MPI, an int in MPICH. Functions that take
 * an int get it in this width, too: on x86-64, an int argument is the lower
 * half of the register. */
typedef uintptr_t mpi_handle_t;


/* Constructors of types: MPI_COMBINER_*. All MPIs have them in this order; only
 * the value of the first differs. No MPI returns those with _INTEGER any
 * longer: they were made by Fortran functions of MPI-1. */
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


/* The arguments that made a type, as MPI_Type_get_contents() stores them. Named
 * types and those of Fortran 90 contain no types. */
typedef struct mpi_args {
    mpi_combiner_t combiner;
    int num_ints;
    int num_addresses;
    int num_types;
    int *ints;
    ptrdiff_t *addresses;
    mpi_handle_t *types;
} mpi_args_t;


/* Size, bounds and extents of a type in bytes, as the MPI reports them */
typedef struct mpi_extents {
    long long size;
    ptrdiff_t lb;
    ptrdiff_t extent;
    ptrdiff_t true_lb;
    ptrdiff_t true_extent;
} mpi_extents_t;


/* A function of the MPI, and the pointer that gets its address */
typedef struct mpi_symbol {
    const char *name;
    void *pointer;
} mpi_symbol_t;

typedef struct mpi_lib {
    mpi_abi_t abi;
    const char *name;            /* begin of MPI_Get_library_version() */
    const char *versions[2];     /* supported: begin of the text behind the name
                                  * and blanks; NULL: unused */
    const mpi_symbol_t *symbols; /* ends with a NULL name */

    /* Returns 1 if the MPI may be called within a call of MPI. */
    int (*is_askable)(void);

    /* Returns the type of the context of a generic data type. */
    mpi_handle_t (*handle)(const void *context);

    /* Parts of mpi_lib_get_args() and mpi_lib_put_args(): read the numbers and
     * the combiner, a value of the MPI; read the arrays; release the types. The
     * first two return non-zero on failure. */
    int (*get_envelope)(mpi_handle_t type, mpi_args_t *args, int *combiner);
    int (*get_contents)(mpi_handle_t type, mpi_args_t *args);
    void (*put_types)(const mpi_args_t *args);
} mpi_lib_t;

extern const mpi_lib_t mpi_lib_ompi;
extern const mpi_lib_t mpi_lib_ompi_6;
extern const mpi_lib_t mpi_lib_mpich;


/* Sets the numbers of arguments. Returns non-zero if the type has arguments of
 * 64 bits (@counts > 0), or more of a kind than an int can count. */
static inline int mpi_args_set_numbers(mpi_args_t *args, size_t ints,
                                       size_t addresses, size_t counts,
                                       size_t types)
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

/* Returns 1 if the process has a supported MPI. Cheap; may be called before
 * MPI_Init(), by any thread. */
int mpi_lib_is_present(void);

/* Returns the MPI that made a generic data type; @code is the address of one of
 * the type's functions. NULL: it is no MPI, or not a supported version. */
const mpi_lib_t *mpi_lib_of(const void *code);

/* Stores the extents. An MPI was found before. Returns non-zero if a call of
 * the MPI fails. */
int mpi_lib_get_extents(mpi_handle_t type, mpi_extents_t *extents);

/* Fills @args, for mpi_lib_put_args() to free. Returns non-zero, with nothing
 * to free, if a call of the MPI fails, the combiner is unknown, there are more
 * than @max arguments of a kind, or there is no memory. */
int mpi_lib_get_args(const mpi_lib_t *lib, mpi_handle_t type, int max,
                     mpi_args_t *args);
void mpi_lib_put_args(const mpi_lib_t *lib, mpi_args_t *args);

#endif
