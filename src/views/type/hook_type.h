/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of UCP calls, as shapes. A generic type is ours from its
 * beginning: UCP is given functions of ours to start an operation with, by
 * which it is known again, and a context of ours, which has the shape once it
 * is found.
 *
 * Counted references: the UCP data type has one, each operation by view
 * another. UCP's locks may be held by who calls; none of our own is.
 */
#ifndef HOOK_TYPE_H
#define HOOK_TYPE_H

#include "hook_pause.h"
#include "views/inside/ucp_inside.h"
#include "views/mpi/mpi_type.h"

#include <stdatomic.h>
#include <ucp/api/ucp.h>


typedef struct hook_type {
    atomic_uint num_refs;
    ucp_generic_dt_ops_t ops; /* the user's ...; unused in lists */
    void *context;            /* ... */
    const mpi_lib_t *lib;     /* NULL: nobody knows the layout */
    atomic_size_t min_count;  /* fewer elements never go by view: see below */
    atomic_size_t size;       /* SIZE_MAX: not asked for yet */
    shape_t *_Atomic shape;   /* NULL: not looked for yet */
    hook_pause_t pause;       /* of receives by view */
} hook_type_t;


/* As ucp_dt_create_generic() */
ucs_status_t hook_type_create(const ucp_generic_dt_ops_t *ops, void *context,
                              ucp_datatype_t *datatype_p);

/* As ucp_dt_destroy(). It may be called by the last operation's finish(). */
void hook_type_destroy(ucp_datatype_t datatype);

/* How an operation begins that UCP packs */
void *hook_type_start_pack(void *context, const void *buffer, size_t count);

static inline int hook_type_is_ours(ucp_datatype_t datatype)
{
    return ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC) &&
           (ucp_inside_generic(datatype)->ops.start_pack ==
            hook_type_start_pack);
}

/* What a generic data type is, as long as it is alive; NULL: it is none of
 * ours. */
static inline hook_type_t *hook_type_of(ucp_datatype_t datatype)
{
    return hook_type_is_ours(datatype) ? ucp_inside_generic(datatype)->context :
                                         NULL;
}

/* Whether it was found before that so few elements do not go by view, as
 * hook_message.c keeps with the type: the one question for short messages */
static inline int hook_type_is_few(const hook_type_t *type, size_t count)
{
    return count < atomic_load_explicit(&type->min_count, memory_order_relaxed);
}

/* A new type for a list of pieces, seen from where the first one is, with one
 * reference; NULL: its layout cannot be told. */
hook_type_t *hook_type_of_list(const ucp_dt_iov_t *iov, size_t count);

/* One more reference, and one less */
void hook_type_get(hook_type_t *type);
void hook_type_put(hook_type_t *type);

/* Bytes of an element of a generic type; 0: it has none, or they are not
 * known. */
size_t hook_type_size(hook_type_t *type);

/* Its shape, or NULL: it cannot be told. Walks the type the first time. Of one
 * with more nests than any key has pieces, their number alone is to be looked
 * at. */
const shape_t *hook_type_shape(hook_type_t *type);

/* Finds size and shape of one that is new, of an MPI that is not to be asked
 * later, within its calls */
void hook_type_learn(hook_type_t *type);

/* Start of an operation: what the user's function returns, for
 * hook_type_finish() when it ends. MPIs hold a reference to their type
 * meanwhile. */
void *hook_type_start(const hook_type_t *type, void *buffer, size_t count,
                      int is_dest);
void hook_type_finish(const hook_type_t *type, void *state);

#endif
