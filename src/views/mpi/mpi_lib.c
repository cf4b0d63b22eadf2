/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Finds the MPI of this process. Supports only the libraries and versions in
 * the tables; any other counts as no MPI. An MPI returns its version even
 * before MPI_Init(). A process has one MPI: once found, it stays.
 */
#define _GNU_SOURCE
#include "mpi_lib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>


enum {
    MPI_LIB_MAX_VERSION = 8192 /* MPICH's MPI_MAX_LIBRARY_VERSION_STRING */
};


/* The object that makes generic data types, and the library of its MPI. Both
 * are SONAMEs; file names may continue behind them. Among entries with the same
 * names, the version decides. */
typedef struct mpi_lib_object {
    const char *code;
    const char *library;
    const mpi_lib_t *lib;
} mpi_lib_object_t;

static const mpi_lib_object_t mpi_lib_objects[] = {
    {"mca_pml_ucx.so", "libmpi.so.40", &mpi_lib_ompi},
    {"libmpi.so.40", "libmpi.so.40", &mpi_lib_ompi},
    {"mca_pml_ucx.so", "libmpi.so.40", &mpi_lib_ompi_6},
    {"libopen_mpi.so.40", "libmpi.so.40", &mpi_lib_ompi_6},
    {"libmpich.so.12", "libmpich.so.12", &mpi_lib_mpich}, /* Debian's name */
    {"libmpi.so.12", "libmpi.so.12", &mpi_lib_mpich},
};

enum {
    MPI_LIB_NUM_OBJECTS = sizeof(mpi_lib_objects) / sizeof(mpi_lib_objects[0])
};

/* Functions that all MPIs share. MPI_Count has 64 bits in all of them. */
static struct {
    int (*version)(char *version, int *length);
    int (*size)(mpi_handle_t type, long long *size);
    int (*extent)(mpi_handle_t type, ptrdiff_t *lb, ptrdiff_t *extent);
    int (*true_extent)(mpi_handle_t type, ptrdiff_t *lb, ptrdiff_t *extent);
} mpi_lib_calls;

static const mpi_symbol_t mpi_lib_symbols[] = {
    {"PMPI_Get_library_version", &mpi_lib_calls.version},
    {"PMPI_Type_size_x", &mpi_lib_calls.size},
    {"PMPI_Type_get_extent", &mpi_lib_calls.extent},
    {"PMPI_Type_get_true_extent", &mpi_lib_calls.true_extent},
    {NULL, NULL}};

static pthread_mutex_t mpi_lib_lock = PTHREAD_MUTEX_INITIALIZER;
static const mpi_lib_t *mpi_lib_found;


static int mpi_lib_resolve(void *library, const mpi_symbol_t *symbol)
{
    for (; symbol->name != NULL; symbol++) {
        void *address = dlsym(library, symbol->name);

        if (address == NULL) {
            return -1;
        }
        memcpy(symbol->pointer, &address, sizeof(address));
    }
    return 0;
}

static int mpi_lib_is_version(const mpi_lib_t *lib)
{
    char version[MPI_LIB_MAX_VERSION];
    size_t length = strlen(lib->name);
    const char *number;

    if (mpi_lib_calls.version(version, &(int){0}) ||
        strncmp(version, lib->name, length)) {
        return 0;
    }

    number = version + length + strspn(version + length, " \t");
    for (size_t i = 0; i < sizeof(lib->versions) / sizeof(*lib->versions);
         i++) {
        if ((lib->versions[i] != NULL) &&
            !strncmp(number, lib->versions[i], strlen(lib->versions[i]))) {
            return 1;
        }
    }
    return 0;
}

/* Returns the MPI if its library is in the process and has a known version.
 * Then keeps the library mapped. */
static const mpi_lib_t *mpi_lib_load(const mpi_lib_object_t *object)
{
    void *library = dlopen(object->library, RTLD_LAZY | RTLD_NOLOAD);

    if (library == NULL) {
        return NULL;
    }
    if (mpi_lib_resolve(library, mpi_lib_symbols) ||
        mpi_lib_resolve(library, object->lib->symbols) ||
        !mpi_lib_is_version(object->lib)) {
        dlclose(library);
        return NULL;
    }
    return object->lib;
}

static const mpi_lib_t *mpi_lib_get(const mpi_lib_object_t *object)
{
    const mpi_lib_t *lib;

    pthread_mutex_lock(&mpi_lib_lock);
    if (mpi_lib_found == NULL) {
        mpi_lib_found = mpi_lib_load(object);
    }
    lib = mpi_lib_found;
    pthread_mutex_unlock(&mpi_lib_lock);
    return (lib == object->lib) ? lib : NULL;
}

int mpi_lib_is_present(void)
{
    for (int i = 0; i < MPI_LIB_NUM_OBJECTS; i++) {
        if (mpi_lib_get(&mpi_lib_objects[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

const mpi_lib_t *mpi_lib_of(const void *code)
{
    const mpi_lib_t *lib = NULL;
    const char *file;
    Dl_info info;

    if (!dladdr(code, &info) || (info.dli_fname == NULL)) {
        return NULL;
    }

    file = strrchr(info.dli_fname, '/');
    file = (file == NULL) ? info.dli_fname : file + 1;
    for (int i = 0; (i < MPI_LIB_NUM_OBJECTS) && (lib == NULL); i++) {
        const char *code_name = mpi_lib_objects[i].code;

        if (!strncmp(file, code_name, strlen(code_name))) {
            lib = mpi_lib_get(&mpi_lib_objects[i]);
        }
    }
    return lib;
}

int mpi_lib_get_extents(mpi_handle_t type, mpi_extents_t *extents)
{
    return mpi_lib_calls.size(type, &extents->size) ||
           mpi_lib_calls.extent(type, &extents->lb, &extents->extent) ||
           mpi_lib_calls.true_extent(type, &extents->true_lb,
                                     &extents->true_extent);
}

/* Allocates one piece of memory for all arrays: those that need an alignment of
 * 8 bytes come first. */
static int mpi_args_alloc(mpi_args_t *args)
{
    size_t words = (size_t)args->num_addresses + args->num_types;

    args->addresses = malloc(words * sizeof(*args->addresses) +
                             args->num_ints * sizeof(*args->ints) + 1);
    if (args->addresses == NULL) {
        return -1;
    }
    args->types = (mpi_handle_t *)(args->addresses + args->num_addresses);
    args->ints  = (int *)(args->types + args->num_types);
    return 0;
}

int mpi_lib_get_args(const mpi_lib_t *lib, mpi_handle_t type, int max,
                     mpi_args_t *args)
{
    int combiner;

    if (lib->get_envelope(type, args, &combiner) || (args->num_ints > max) ||
        (args->num_addresses > max) || (args->num_types > max) ||
        (combiner < lib->abi.named) ||
        (combiner >= lib->abi.named + MPI_LIB_NUM_COMBINERS) ||
        mpi_args_alloc(args)) {
        return -1;
    }

    args->combiner = (mpi_combiner_t)(combiner - lib->abi.named);
    if ((args->combiner != MPI_LIB_NAMED) && lib->get_contents(type, args)) {
        free(args->addresses);
        return -1;
    }
    return 0;
}

void mpi_lib_put_args(const mpi_lib_t *lib, mpi_args_t *args)
{
    lib->put_types(args);
    free(args->addresses);
}
