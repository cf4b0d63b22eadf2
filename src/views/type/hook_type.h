/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Data types of UCP calls, as shapes. When a generic type is created, UCP gets
 * functions of ours to start an operation, by which the type is recognized
 * later. The context that UCP passes to them is a record of ours, a
 * hook_type_t, which has the shape once that is found.
 *
 * References are counted: the UCP data type has one, each operation with a view
 * has another. The caller may hold UCP's locks, but none of ours.
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
    ucp_generic_dt_ops_t ops; /* the user's; unused in lists */
    void *context;            /* the user's; unused in lists */
    const mpi_lib_t *lib;     /* NULL: of no supported MPI, or a list */
    atomic_size_t min_count;  /* fewer elements never use a view: see below */
    atomic_size_t size;       /* hook_type_size(); SIZE_MAX: not read yet */
    shape_t *_Atomic shape;   /* hook_type_shape(); NULL: not read yet */
    hook_pause_t pause;       /* of receives with a view */
} hook_type_t;


/* Replaces ucp_dt_create_generic(). The new type is none of ours, with the
 * user's functions and context, if UCP's structure is not the expected one. */
ucs_status_t hook_type_create(const ucp_generic_dt_ops_t *ops, void *context,
                              ucp_datatype_t *datatype_p);

/* Replaces ucp_dt_destroy(). The last operation's finish() may call it. */
void hook_type_destroy(ucp_datatype_t datatype);

/* Starts an operation that UCP packs, as of ucp_generic_dt_ops_t. */
void *hook_type_start_pack(void *context, const void *buffer, size_t count);

static inline int hook_type_is_ours(ucp_datatype_t datatype)
{
    return ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC) &&
           (ucp_inside_generic(datatype)->ops.start_pack ==
            hook_type_start_pack);
}

/* Returns the record of a generic data type; NULL: the type is none of ours.
 * The record lives at least as long as the type. */
static inline hook_type_t *hook_type_of(ucp_datatype_t datatype)
{
    return hook_type_is_ours(datatype) ? ucp_inside_generic(datatype)->context :
                                         NULL;
}

/* Returns 1 if hook_message.c has found before that messages of @count elements
 * use no view. Short messages pay for no other check. */
static inline int hook_type_is_few(const hook_type_t *type, size_t count)
{
    return count < atomic_load_explicit(&type->min_count, memory_order_relaxed);
}

/* Returns a new type with one reference for a list of pieces. Its shape is
 * relative to the first piece. NULL: too many nests, or no memory. */
hook_type_t *hook_type_of_list(const ucp_dt_iov_t *iov, size_t count);

/* Take and drop a reference. */
void hook_type_get(hook_type_t *type);
void hook_type_put(hook_type_t *type);

/* Returns the bytes of an element of a generic type; 0: it has none, or they
 * are unknown. */
size_t hook_type_size(hook_type_t *type);

/* Returns the shape, which the type owns, or NULL if it is unknown. The first
 * call walks the type. If the type has more nests than any key has pieces, only
 * @num of the shape is valid. */
const shape_t *hook_type_shape(hook_type_t *type);

/* Reads size and shape of a new type at once, if its MPI must not be asked
 * within its calls. Called outside of them, before another thread knows the
 * type. */
void hook_type_learn(hook_type_t *type);

/* Starts the user's operation, to unpack if @is_dest, else to pack. Returns its
 * state, for hook_type_finish() at the end. MPIs hold a reference to their type
 * meanwhile. Both do nothing for lists. */
void *hook_type_start(const hook_type_t *type, void *buffer, size_t count,
                      int is_dest);
void hook_type_finish(const hook_type_t *type, void *state);

#endif
