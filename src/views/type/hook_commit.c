/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Interposes both names of each function: a tool that is linked with the
 * program defines the usual names, and calls those of the profiling interface.
 * The code assumes of the binary interface only that a data type is passed as
 * an int or as an address.
 */
#define _GNU_SOURCE
#include "hook_commit.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define HOOK_EXPORT __attribute__((visibility("default")))

typedef int (*hook_commit_t)(void *type);
typedef int (*hook_dup_t)(mpi_handle_t type, void *new_type);

/* A function of the MPI, which the first call looks up */
typedef struct hook_commit_function {
    const char *name;
    void *_Atomic addr;
} hook_commit_function_t;

static __thread unsigned hook_commit_depth;
static __thread hook_type_t *hook_commit_made; /* a reference, or NULL */

void hook_commit_add(hook_type_t *type)
{
    if (hook_commit_depth == 0) {
        return;
    }

    if (hook_commit_made != NULL) {
        hook_type_put(hook_commit_made);
    }
    hook_type_get(type);
    hook_commit_made = type;
}

static int hook_commit_end(int result)
{
    hook_type_t *type = hook_commit_made;

    --hook_commit_depth;
    if (type != NULL) {
        hook_commit_made = NULL;
        hook_type_learn(type);
        hook_type_put(type);
    }

    return result;
}

/* Looks a name up through the object of the caller: an MPI that a plugin loaded
 * is visible only to objects that are linked with it. */
static void *hook_commit_beside(const char *name, const void *caller)
{
    Dl_info info;
    void *object;

    if (!dladdr(caller, &info)) {
        return NULL;
    }

    object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return (object == NULL) ? NULL : dlsym(object, name);
}

/* Returns the function that the caller would have called without us. */
static void *hook_commit_real(hook_commit_function_t *function,
                              const void *caller)
{
    void *addr = function->addr;

    if (addr == NULL) {
        addr = dlsym(RTLD_NEXT, function->name);
    }
    if (addr == NULL) {
        addr = hook_commit_beside(function->name, caller);
    }
    if (addr == NULL) {
        fprintf(stderr, "dcx: no MPI has %s\n", function->name);
        abort();
    }

    function->addr = addr;
    ++hook_commit_depth;
    return addr;
}

static int hook_commit(hook_commit_function_t *function, void *type,
                       const void *caller)
{
    hook_commit_t real = (hook_commit_t)hook_commit_real(function, caller);

    return hook_commit_end(real(type));
}

static int hook_commit_dup(hook_commit_function_t *function, mpi_handle_t type,
                           void *new_type, const void *caller)
{
    hook_dup_t real = (hook_dup_t)hook_commit_real(function, caller);

    return hook_commit_end(real(type, new_type));
}

/* The MPI's header is not included, so these are declared here. */
HOOK_EXPORT int MPI_Type_commit(void *type);
HOOK_EXPORT int PMPI_Type_commit(void *type);
HOOK_EXPORT int MPI_Type_dup(mpi_handle_t type, void *new_type);
HOOK_EXPORT int PMPI_Type_dup(mpi_handle_t type, void *new_type);

int MPI_Type_commit(void *type)
{
    static hook_commit_function_t real = {"MPI_Type_commit", NULL};

    return hook_commit(&real, type, __builtin_return_address(0));
}

int PMPI_Type_commit(void *type)
{
    static hook_commit_function_t real = {"PMPI_Type_commit", NULL};

    return hook_commit(&real, type, __builtin_return_address(0));
}

int MPI_Type_dup(mpi_handle_t type, void *new_type)
{
    static hook_commit_function_t real = {"MPI_Type_dup", NULL};

    return hook_commit_dup(&real, type, new_type, __builtin_return_address(0));
}

int PMPI_Type_dup(mpi_handle_t type, void *new_type)
{
    static hook_commit_function_t real = {"PMPI_Type_dup", NULL};

    return hook_commit_dup(&real, type, new_type, __builtin_return_address(0));
}
