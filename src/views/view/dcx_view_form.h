/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * How the shape of data becomes the layout of a key. A key has one dimension, so
 * the inner ones of a nest are layers of their own, each an array of blocks in
 * that below:
 *
 *   nest of 3 dimensions        layers[0]   blocks of memory, one dimension less
 *                               layers[1]   ... of layers[0]
 *                               top         blocks of layers[1]
 *   rounds of several blocks    top         an entry for each
 *   all else                    top         a list of all blocks
 *
 * Pure: nothing is registered, and no key made here.
 */
#ifndef UCT_DCX_VIEW_FORM_H
#define UCT_DCX_VIEW_FORM_H

#include "dcx_view_ops.h"
#include "uct/dcx/strided/dcx_layout.h"


enum {
    UCT_DCX_VIEW_MAX_LAYERS = SHAPE_MAX_DIMS - 1
};


typedef enum uct_dcx_view_kind {
    UCT_DCX_VIEW_NEST,
    UCT_DCX_VIEW_ROUNDS,
    UCT_DCX_VIEW_LIST
} uct_dcx_view_kind_t;


typedef struct uct_dcx_view_form {
    uct_dcx_view_kind_t  kind;
    size_t               pieces;     /* room that the top layout needs */
    unsigned             num_layers;
    uct_dcx_layout_run_t layers[UCT_DCX_VIEW_MAX_LAYERS]; /* less their keys */
    int                  has_rows;   /* NEST: the top is a repeated block */
    shape_nest_t         top;        /* NEST: blocks of the last layer, or of
                                      * memory; 'offset' is an address */
    size_t               repeat;     /* ROUNDS */
    size_t               stride;
} uct_dcx_view_form_t;


/* Limits of a form */
typedef struct uct_dcx_view_limits {
    size_t   max_pieces; /* of the top layout */
    unsigned max_layers;
    int      has_nests;  /* repeated blocks over layers; else one layer */
} uct_dcx_view_limits_t;


/* Finds the form of data whose memory has one key, or not ('has_one_key').
 * Returns UCT_DCX_VIEW_TOO_MANY if none keeps to the limits. */
uct_dcx_view_status_t
uct_dcx_view_form_init(uct_dcx_view_form_t *form, const shape_data_t *data,
                       int has_one_key, const uct_dcx_view_limits_t *limits);

/* Appends the top layout to one with nothing in it. All of it is in the space of
 * 'lkey', that of the last layer or of memory; a LIST is not for this function.
 * Returns 0 if there is no room for it after all. */
int uct_dcx_view_form_fill(const uct_dcx_view_form_t *form,
                           const shape_data_t *data, uint32_t lkey,
                           uct_dcx_layout_t *layout);

/* Appends blocks that are not adjacent to the last one, of any length; the same. */
int uct_dcx_view_form_append(uct_dcx_layout_t *layout, uint64_t addr,
                             size_t bytes, uint32_t lkey);

#endif
