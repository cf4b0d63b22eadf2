/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shapes as layouts; see dcx_view_form.h.
 */
#include "dcx_view_form.h"

#include <ucs/sys/math.h>


enum {
    /* Up to this many blocks fit as a list into the WQE that makes the layout:
     * no layers are needed. */
    UCT_DCX_VIEW_FEW = 48
};


/* --- nests ---------------------------------------------------------------- */

static uint64_t uct_dcx_view_num_blocks(const shape_nest_t *nest)
{
    uint64_t num = 1;
    unsigned i;

    for (i = 0; i < nest->num_dims; ++i) {
        num *= nest->dims[i].count;
    }
    return num;
}


/* Returns 1 if one strided entry can have the blocks of this dimension. */
static int uct_dcx_view_is_regular(const shape_nest_t *nest,
                                   const shape_dim_t *dim)
{
    return (dim->stride > 0) && (nest->bytes <= UCT_DCX_EXT_MAX_BLOCK) &&
           ((size_t)dim->stride > nest->bytes) &&
           (dim->stride <= UCT_DCX_EXT_MAX_BLOCK);
}


/* Returns the innermost dimension of a nest as a row. */
static uct_dcx_view_row_t uct_dcx_view_row(const shape_nest_t *nest)
{
    return (uct_dcx_view_row_t){
        .entry.addr   = nest->offset,
        .entry.bytes  = nest->bytes,
        .entry.stride = nest->dims[0].stride,
        .repeat       = nest->dims[0].count,
    };
}


/* Makes a layer of the innermost dimension, extended through all outer ones.
 * Returns 0 if the strides of these are not multiples of its stride, or it is
 * not regular. */
static int uct_dcx_view_layer(const shape_nest_t *nest,
                              uct_dcx_view_row_t *layer)
{
    const shape_dim_t *inner = &nest->dims[0];
    const shape_dim_t *dim;

    *layer = uct_dcx_view_row(nest);
    if (!uct_dcx_view_is_regular(nest, inner)) {
        return 0;
    }

    for (dim = inner + 1; dim < nest->dims + nest->num_dims; ++dim) {
        if ((dim->stride <= 0) || ((dim->stride % inner->stride) != 0)) {
            return 0;
        }
        layer->repeat += (dim->count - 1) * (dim->stride / inner->stride);
    }
    return layer->repeat <= UINT32_MAX;
}


/* Removes the innermost dimension: in the space of its layer, an inner row is a
 * block. */
static void uct_dcx_view_peel(shape_nest_t *nest)
{
    const shape_dim_t inner = nest->dims[0];
    unsigned i;

    nest->num_dims--;
    for (i = 0; i < nest->num_dims; ++i) {
        nest->dims[i].count  = nest->dims[i + 1].count;
        nest->dims[i].stride = (nest->dims[i + 1].stride / inner.stride) *
                               nest->bytes;
    }
    nest->bytes *= inner.count;
    nest->offset = 0;
}


/* Returns how many pieces a list of @num blocks of @bytes has. */
static uint64_t uct_dcx_view_pieces(uint64_t num, size_t bytes)
{
    uint64_t parts = (bytes + UCT_DCX_EXT_MAX_PIECE - 1) /
                     UCT_DCX_EXT_MAX_PIECE;
    uint64_t pieces;

    return __builtin_mul_overflow(num, parts, &pieces) ? UINT64_MAX : pieces;
}


static int uct_dcx_view_is_interleaved(const shape_nest_t *nest)
{
    return (nest->num_dims == 1) &&
           uct_dcx_view_is_regular(nest, &nest->dims[0]) &&
           (nest->dims[0].count <= UINT32_MAX);
}


static void uct_dcx_view_form_layers(uct_dcx_view_form_t *form,
                                     const uct_dcx_ext_attr_t *limits)
{
    shape_nest_t *top = &form->top;
    unsigned max      = limits->has_nests ? UCT_DCX_VIEW_MAX_LAYERS : 1;

    if (uct_dcx_view_num_blocks(top) <= UCT_DCX_VIEW_FEW) {
        return;
    }

    while ((top->num_dims > 1) && (form->num_layers < max) &&
           (form->num_layers + 1 < limits->max_depth) &&
           uct_dcx_view_layer(top, &form->layers[form->num_layers])) {
        uct_dcx_view_peel(top);
        form->num_layers++;
    }
}


static int uct_dcx_view_form_is_nest(uct_dcx_view_form_t *form,
                                     const shape_data_t *data,
                                     const uct_dcx_ext_attr_t *limits)
{
    shape_nest_t *top = &form->top;

    if (!shape_as_nest(data, top)) {
        return 0;
    }

    form->kind = UCT_DCX_VIEW_NEST;
    top->offset += (intptr_t)data->buffer;
    uct_dcx_view_form_layers(form, limits);
    if (uct_dcx_view_is_interleaved(top) &&
        (limits->has_nests || (form->num_layers == 0))) {
        form->pieces = 2;
        form->repeat = top->dims[0].count;
    } else {
        form->pieces = uct_dcx_view_pieces(uct_dcx_view_num_blocks(top),
                                           top->bytes);
    }
    return 1;
}


/* --- rounds --------------------------------------------------------------- */

/* Returns 1, and sets the form, if rounds and elements are one row of rounds,
 * and each nest of a round is one block that a strided entry can have. */
static int uct_dcx_view_form_is_rounds(uct_dcx_view_form_t *form,
                                       const shape_data_t *data)
{
    const shape_t *shape = data->shape;
    shape_dim_t rounds   = {shape->repeat, shape->stride};
    const shape_nest_t *nest;

    if (shape->repeat == 1) {
        rounds = (shape_dim_t){data->count, shape->extent};
    } else if (data->count > 1) {
        if ((ptrdiff_t)(shape->repeat * shape->stride) != shape->extent) {
            return 0;
        }
        rounds.count *= data->count;
    }

    if ((rounds.count < 2) || (rounds.count > UINT32_MAX)) {
        return 0;
    }

    for (nest = shape->nests; nest < shape->nests + shape->num; ++nest) {
        if ((nest->num_dims > 0) || !uct_dcx_view_is_regular(nest, &rounds)) {
            return 0;
        }
    }

    form->kind   = UCT_DCX_VIEW_ROUNDS;
    form->pieces = shape->num + 1;
    form->repeat = rounds.count;
    form->stride = rounds.stride;
    return 1;
}


/* --- use ------------------------------------------------------------------ */

uct_dcx_view_status_t uct_dcx_view_form_init(uct_dcx_view_form_t *form,
                                             const shape_data_t *data,
                                             int has_one_key,
                                             const uct_dcx_ext_attr_t *limits)
{
    form->num_layers = 0;
    form->repeat     = 1;
    if (!has_one_key || (!uct_dcx_view_form_is_nest(form, data, limits) &&
                         !uct_dcx_view_form_is_rounds(form, data))) {
        form->kind   = UCT_DCX_VIEW_LIST;
        form->pieces = data->count * data->shape->num_blocks +
                       (shape_length(data) / UCT_DCX_EXT_MAX_PIECE);
    }
    return (form->pieces <= limits->max_pieces) ? UCT_DCX_VIEW_OK :
                                                  UCT_DCX_VIEW_TOO_MANY;
}


int uct_dcx_view_append_long(uct_dcx_view_entries_t *entries, uint64_t addr,
                             size_t bytes, uint32_t lkey)
{
    size_t part;

    for (; bytes > 0; addr += part, bytes -= part) {
        part = ucs_min(bytes, (size_t)UCT_DCX_EXT_MAX_PIECE);
        if (entries->num == entries->max) {
            return 0;
        }
        (void)uct_dcx_view_append(entries, addr, part, lkey);
    }
    return 1;
}


/* Appends all blocks of the @dim inner dimensions, one by one. */
static int uct_dcx_view_fill_dim(const shape_nest_t *nest, unsigned dim,
                                 uint64_t addr, uint32_t lkey,
                                 uct_dcx_view_entries_t *entries)
{
    size_t i;

    if (dim == 0) {
        return uct_dcx_view_append(entries, addr, nest->bytes, lkey);
    }

    for (i = 0; i < nest->dims[dim - 1].count; ++i) {
        if (!uct_dcx_view_fill_dim(nest, dim - 1, addr, lkey, entries)) {
            return 0;
        }
        addr += nest->dims[dim - 1].stride;
    }
    return 1;
}


int uct_dcx_view_form_fill(const uct_dcx_view_form_t *form,
                           const shape_data_t *data, uint32_t lkey,
                           uct_dcx_view_entries_t *entries)
{
    const shape_nest_t *top   = &form->top;
    const shape_nest_t *nests = data->shape->nests;
    size_t i;

    if (form->kind == UCT_DCX_VIEW_NEST) {
        if (form->repeat == 1) {
            return uct_dcx_view_fill_dim(top, top->num_dims, top->offset, lkey,
                                         entries);
        }
        entries->first[0]      = uct_dcx_view_row(top).entry;
        entries->first[0].lkey = lkey;
        entries->num           = 1;
        return 1;
    }

    for (i = 0; i < data->shape->num; ++i) {
        (void)uct_dcx_view_append(entries,
                                  (uintptr_t)data->buffer + nests[i].offset,
                                  nests[i].bytes, lkey);
        entries->first[i].stride = form->stride;
    }
    return 1;
}
