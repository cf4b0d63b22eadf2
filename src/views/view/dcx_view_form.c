/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Shapes as layouts; see dcx_view_form.h.
 */
#include "dcx_view_form.h"


enum {
    /* So many blocks are a list in the WQE that makes the layout: no layers */
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


/* Whether the device has a form for the blocks of this dimension */
static int
uct_dcx_view_is_regular(const shape_nest_t *nest, const shape_dim_t *dim)
{
    return (dim->stride > 0) && (nest->bytes <= UCT_DCX_LAYOUT_MAX_BLOCK) &&
           ((size_t)dim->stride > nest->bytes) &&
           (dim->stride <= UCT_DCX_LAYOUT_MAX_BLOCK);
}


/* The innermost dimension as a layer that goes on through all others: 'count'
 * blocks of it. Returns 0 if they are not at multiples of its distance. */
static int
uct_dcx_view_layer(const shape_nest_t *nest, uct_dcx_layout_run_t *layer)
{
    const shape_dim_t *inner = &nest->dims[0];
    const shape_dim_t *dim;

    *layer = (uct_dcx_layout_run_t){
        .addr   = nest->offset,
        .bytes  = nest->bytes,
        .stride = inner->stride,
        .count  = inner->count
    };
    if (!uct_dcx_view_is_regular(nest, inner)) {
        return 0;
    }

    for (dim = inner + 1; dim < nest->dims + nest->num_dims; ++dim) {
        if ((dim->stride <= 0) || ((dim->stride % inner->stride) != 0)) {
            return 0;
        }
        layer->count += (dim->count - 1) * (dim->stride / inner->stride);
    }
    return layer->count <= UINT32_MAX;
}


/* What is left of a nest in the space of that layer: an inner row is a block. */
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


/* Pieces of a list of so many blocks, each of these bytes */
static uint64_t uct_dcx_view_pieces(uint64_t num, size_t bytes)
{
    uint64_t parts = (bytes + UCT_DCX_LAYOUT_MAX_PIECE - 1) /
                     UCT_DCX_LAYOUT_MAX_PIECE;
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
                                     const uct_dcx_view_limits_t *limits)
{
    shape_nest_t *top = &form->top;

    if (uct_dcx_view_num_blocks(top) <= UCT_DCX_VIEW_FEW) {
        return;
    }

    while ((top->num_dims > 1) && (form->num_layers < limits->max_layers) &&
           uct_dcx_view_layer(top, &form->layers[form->num_layers])) {
        uct_dcx_view_peel(top);
        form->num_layers++;
    }
}


static int
uct_dcx_view_form_is_nest(uct_dcx_view_form_t *form, const shape_data_t *data,
                          const uct_dcx_view_limits_t *limits)
{
    shape_nest_t *top = &form->top;

    if (!shape_as_nest(data, top)) {
        return 0;
    }

    form->kind   = UCT_DCX_VIEW_NEST;
    top->offset += (intptr_t)data->buffer;
    uct_dcx_view_form_layers(form, limits);
    form->has_rows = uct_dcx_view_is_interleaved(top) &&
                     (limits->has_nests || (form->num_layers == 0));
    form->pieces   = form->has_rows ? 2 :
                     uct_dcx_view_pieces(uct_dcx_view_num_blocks(top),
                                         top->bytes);
    return 1;
}


/* --- rounds --------------------------------------------------------------- */

/* Whether rounds and elements are one row of rounds, of blocks that the device has
 * a form for */
static int
uct_dcx_view_form_is_rounds(uct_dcx_view_form_t *form, const shape_data_t *data)
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

uct_dcx_view_status_t
uct_dcx_view_form_init(uct_dcx_view_form_t *form, const shape_data_t *data,
                       int has_one_key, const uct_dcx_view_limits_t *limits)
{
    form->num_layers = 0;
    if (!has_one_key || (!uct_dcx_view_form_is_nest(form, data, limits) &&
                         !uct_dcx_view_form_is_rounds(form, data))) {
        form->kind   = UCT_DCX_VIEW_LIST;
        form->pieces = data->count * data->shape->num_blocks +
                       (shape_length(data) / UCT_DCX_LAYOUT_MAX_PIECE);
    }
    return (form->pieces <= limits->max_pieces) ? UCT_DCX_VIEW_OK : UCT_DCX_VIEW_TOO_MANY;
}


int uct_dcx_view_form_append(uct_dcx_layout_t *layout, uint64_t addr,
                             size_t bytes, uint32_t lkey)
{
    size_t part;

    for (; bytes > 0; addr += part, bytes -= part) {
        part = (bytes < UCT_DCX_LAYOUT_MAX_PIECE) ? bytes :
                                                    UCT_DCX_LAYOUT_MAX_PIECE;
        if (!uct_dcx_layout_append(layout, addr, part, lkey)) {
            return 0;
        }
    }
    return 1;
}


/* Blocks of dimension 'dim' and those in it, one by one */
static int
uct_dcx_view_fill_dim(const shape_nest_t *nest, unsigned dim, uint64_t addr,
                      uint32_t lkey, uct_dcx_layout_t *layout)
{
    size_t i;

    if (dim == 0) {
        return uct_dcx_view_form_append(layout, addr, nest->bytes, lkey);
    }

    for (i = 0; i < nest->dims[dim - 1].count; ++i) {
        if (!uct_dcx_view_fill_dim(nest, dim - 1, addr, lkey, layout)) {
            return 0;
        }
        addr += nest->dims[dim - 1].stride;
    }
    return 1;
}


static int uct_dcx_view_fill_nest(const uct_dcx_view_form_t *form,
                                  uint32_t lkey, uct_dcx_layout_t *layout)
{
    const shape_nest_t *nest       = &form->top;
    const uct_dcx_layout_run_t run = {
        .addr   = nest->offset,
        .bytes  = nest->bytes,
        .stride = nest->dims[0].stride,
        .count  = nest->dims[0].count,
        .lkey   = lkey
    };

    return form->has_rows ?
           (uct_dcx_layout_add(layout, &run) == NULL) :
           uct_dcx_view_fill_dim(nest, nest->num_dims, nest->offset, lkey,
                                 layout);
}


int uct_dcx_view_form_fill(const uct_dcx_view_form_t *form,
                           const shape_data_t *data, uint32_t lkey,
                           uct_dcx_layout_t *layout)
{
    const shape_nest_t *nests = data->shape->nests;
    size_t i;

    if (form->kind == UCT_DCX_VIEW_NEST) {
        return uct_dcx_view_fill_nest(form, lkey, layout);
    }

    layout->kind   = UCT_DCX_LAYOUT_INTERLEAVED;
    layout->repeat = form->repeat;
    for (i = 0; i < data->shape->num; ++i) {
        uct_dcx_layout_append(layout, (uintptr_t)data->buffer + nests[i].offset,
                              nests[i].bytes, lkey);
        layout->entries[i].stride = form->stride;
    }
    layout->length *= form->repeat;
    return 1;
}
