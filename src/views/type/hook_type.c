/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
#include "hook_type.h"
#include "views/ucp/hook_real.h"
#include "views/ucp/hook_report.h"
#include "views/ucp/hook_views.h"

#include "views/shape/shape_build.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    /* nests that are read of a type: a list may become rounds of a few */
    HOOK_TYPE_MAX_NESTS = 64 * 1024
};

/* Shapes of types with an unknown layout, and with more blocks than any key
 * takes */
static shape_t hook_type_unknown;
static shape_t hook_type_too_many = {.num = UINT_MAX};

void *hook_type_start_pack(void *context, const void *buffer, size_t count)
{
    hook_type_t *type = context;

    return type->ops.start_pack(type->context, buffer, count);
}

static void *hook_type_start_unpack(void *context, void *buffer, size_t count)
{
    hook_type_t *type = context;

    return type->ops.start_unpack(type->context, buffer, count);
}

/* Returns a record of the user's type, with one reference; NULL: there is no
 * memory. */
static hook_type_t *hook_type_new(const ucp_generic_dt_ops_t *ops,
                                  void *context)
{
    hook_type_t *type = calloc(1, sizeof(*type));

    if (type == NULL) {
        return NULL;
    }

    type->num_refs = 1;
    type->size     = SIZE_MAX;
    type->ops      = *ops;
    type->context  = context;
    return type;
}

/* Returns 1 if UCP's data type has the structure that dcx expects, so that the
 * record is found through it. */
static int hook_type_is_read_back(ucp_datatype_t datatype, hook_type_t *type)
{
    if (hook_type_of(datatype) == type) {
        return 1;
    }

    hook_report_off("UCP's generic data types are not as dcx expects them");
    return 0;
}

ucs_status_t hook_type_create(const ucp_generic_dt_ops_t *ops, void *context,
                              ucp_datatype_t *datatype_p)
{
    ucp_generic_dt_ops_t ours = *ops;
    ucs_status_t status;
    hook_type_t *type;

    type = hook_type_new(ops, context);
    if (type == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    type->lib         = mpi_lib_of((void *)ops->start_pack);
    ours.start_pack   = hook_type_start_pack;
    ours.start_unpack = hook_type_start_unpack;
    status = hook_real.ucp_dt_create_generic(&ours, type, datatype_p);
    if ((status == UCS_OK) && hook_type_is_read_back(*datatype_p, type)) {
        return UCS_OK;
    }

    if (status == UCS_OK) {
        hook_real.ucp_dt_destroy(*datatype_p);
        status = hook_real.ucp_dt_create_generic(ops, context, datatype_p);
    }
    hook_type_put(type);
    return status;
}

void hook_type_destroy(ucp_datatype_t datatype)
{
    hook_type_t *type = hook_type_of(datatype);

    hook_real.ucp_dt_destroy(datatype);
    if (type != NULL) {
        hook_type_put(type);
    }
}

static shape_t *hook_type_list_shape(const ucp_dt_iov_t *iov, size_t count)
{
    shape_builder_t *builder = shape_build_begin(HOOK_TYPE_MAX_NESTS);
    shape_nest_t nest        = {0};
    shape_t *shape;
    size_t i;

    if (builder == NULL) {
        return NULL;
    }

    for (i = 0; i < count; ++i) {
        nest.offset = (char *)iov[i].buffer - (char *)iov[0].buffer;
        nest.bytes  = iov[i].length;
        shape_build_add(builder, &nest);
    }

    shape = shape_build_end(builder, 0);
    if (shape != NULL) {
        shape->id = 0; /* the next list has another shape */
    }

    return shape;
}

hook_type_t *hook_type_of_list(const ucp_dt_iov_t *iov, size_t count)
{
    static const ucp_generic_dt_ops_t no_ops;
    shape_t *shape = hook_type_list_shape(iov, count);
    hook_type_t *type;

    if (shape == NULL) {
        return NULL;
    }

    type = hook_type_new(&no_ops, NULL);
    if (type == NULL) {
        free(shape);
        return NULL;
    }

    type->shape = shape;
    return type;
}

void hook_type_get(hook_type_t *type)
{
    atomic_fetch_add_explicit(&type->num_refs, 1, memory_order_relaxed);
}

static void hook_type_free_shape(shape_t *shape)
{
    if ((shape != &hook_type_unknown) && (shape != &hook_type_too_many)) {
        free(shape);
    }
}

void hook_type_put(hook_type_t *type)
{
    if (atomic_fetch_sub_explicit(&type->num_refs, 1, memory_order_acq_rel) >
        1) {
        return;
    }

    hook_type_free_shape(type->shape);
    free(type);
}

static int hook_type_is_askable(const hook_type_t *type)
{
    return (type->lib != NULL) && type->lib->is_askable();
}

size_t hook_type_size(hook_type_t *type)
{
    size_t size = atomic_load_explicit(&type->size, memory_order_relaxed);

    if (size == SIZE_MAX) {
        size = hook_type_is_askable(type) ?
                   mpi_type_size(type->lib, type->context) :
                   0;
        atomic_store_explicit(&type->size, size, memory_order_relaxed);
    }

    return size;
}

/* Walks the type. Returns its shape, or hook_type_unknown, or, for a shape that
 * no message can use, hook_type_too_many. */
static shape_t *hook_type_make_shape(const hook_type_t *type)
{
    shape_t *shape = mpi_type_shape(type->lib, type->context,
                                    HOOK_TYPE_MAX_NESTS);

    if (shape == NULL) {
        return &hook_type_unknown;
    }

    if (shape->num > hook_policy()->max_pieces) {
        free(shape);
        return &hook_type_too_many;
    }

    return shape;
}

/* Finds the shape of a type. Holds no lock while it calls the MPI, which takes
 * locks of its own: if two threads walk a type at once, the second drops its
 * result. */
static shape_t *hook_type_walk(hook_type_t *type)
{
    shape_t *found = NULL;
    shape_t *shape = hook_type_is_askable(type) ? hook_type_make_shape(type) :
                                                  &hook_type_unknown;

    if (atomic_compare_exchange_strong(&type->shape, &found, shape)) {
        return shape;
    }

    hook_type_free_shape(shape);
    return found;
}

const shape_t *hook_type_shape(hook_type_t *type)
{
    shape_t *shape = atomic_load_explicit(&type->shape, memory_order_acquire);

    if (shape == NULL) {
        shape = hook_type_walk(type);
    }

    return (shape == &hook_type_unknown) ? NULL : shape;
}

/* Needs no atomic access: no other thread knows the type yet. */
void hook_type_learn(hook_type_t *type)
{
    if ((type->lib == NULL) || type->lib->is_askable()) {
        return;
    }

    type->size  = mpi_type_size(type->lib, type->context);
    type->shape = hook_type_make_shape(type);
}

void *hook_type_start(const hook_type_t *type, void *buffer, size_t count,
                      int is_dest)
{
    if (type->ops.finish == NULL) {
        return NULL;
    }

    return is_dest ? type->ops.start_unpack(type->context, buffer, count) :
                     type->ops.start_pack(type->context, buffer, count);
}

void hook_type_finish(const hook_type_t *type, void *state)
{
    if (type->ops.finish != NULL) {
        type->ops.finish(state);
    }
}
