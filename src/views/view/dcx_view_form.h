/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Converts the shape of data to the layout of a key. A key has one dimension.
 * So an inner dimension of a nest becomes a layer, an array of blocks of the
 * layer below it, if the device and the strides allow it. The top has all other
 * dimensions.
 *
 *   nest of 3 dimensions        layers[0]   blocks of memory
 *                               layers[1]   blocks of layers[0]
 *                               top         blocks of layers[1]
 *   rounds of several blocks    top         an entry for each block
 *   all else                    top         a list of all blocks
 *
 * These functions only compute: they register no memory and make no key.
 */
#ifndef UCT_DCX_VIEW_FORM_H
#define UCT_DCX_VIEW_FORM_H

#include "dcx_view_ops.h"
#include "uct/dcx/dcx_ext.h"


enum { UCT_DCX_VIEW_MAX_LAYERS = SHAPE_MAX_DIMS - 1 };


typedef enum uct_dcx_view_kind {
    UCT_DCX_VIEW_NEST,
    UCT_DCX_VIEW_ROUNDS,
    UCT_DCX_VIEW_LIST
} uct_dcx_view_kind_t;


/* A row of blocks: an entry that is repeated */
typedef struct uct_dcx_view_row {
    uct_dcx_ext_entry_t entry; /* its key is set later */
    uint64_t repeat;
} uct_dcx_view_row_t;


typedef struct uct_dcx_view_form {
    uct_dcx_view_kind_t kind;
    size_t pieces; /* room that the top layout needs: an upper bound of its
                    * entries, plus 1 if they are repeated */
    unsigned num_layers;
    uct_dcx_view_row_t layers[UCT_DCX_VIEW_MAX_LAYERS];
    shape_nest_t top; /* NEST: blocks of the last layer, with
                       * @offset 0, or of memory, with an address
                       * as @offset */
    size_t repeat;    /* of the top's entries; NEST: 1, or the
                       * count if the top is a row */
    size_t stride;    /* ROUNDS: bytes from one to the next */
} uct_dcx_view_form_t;


/* An array of entries that is being filled */
typedef struct uct_dcx_view_entries {
    uct_dcx_ext_entry_t *first;
    size_t num;
    size_t max;
} uct_dcx_view_entries_t;


/* Chooses the form of @data. @has_one_key: one key covers all of its memory.
 * Returns UCT_DCX_VIEW_TOO_MANY if the form has more pieces than @limits, those
 * of the domain, allow; else UCT_DCX_VIEW_OK. */
uct_dcx_view_status_t uct_dcx_view_form_init(uct_dcx_view_form_t *form,
                                             const shape_data_t *data,
                                             int has_one_key,
                                             const uct_dcx_ext_attr_t *limits);

/* Writes the top layout of a form other than LIST. All entries are in the space
 * of @lkey, the key of the last layer or of memory. @entries is empty, with
 * room for the pieces of the form. Returns 0 if a nest's blocks have no
 * room. */
int uct_dcx_view_form_fill(const uct_dcx_view_form_t *form,
                           const shape_data_t *data, uint32_t lkey,
                           uct_dcx_view_entries_t *entries);

/* Slow path of uct_dcx_view_append(): splits a block that is longer than one
 * entry may be. Returns 0 if there is no room. */
int uct_dcx_view_append_long(uct_dcx_view_entries_t *entries, uint64_t addr,
                             size_t bytes, uint32_t lkey);

/* Appends a block; callers have joined adjacent blocks. Returns 0 if there is
 * no room. */
static inline int uct_dcx_view_append(uct_dcx_view_entries_t *entries,
                                      uint64_t addr, size_t bytes,
                                      uint32_t lkey)
{
    if ((entries->num == entries->max) || (bytes > UCT_DCX_EXT_MAX_PIECE)) {
        return uct_dcx_view_append_long(entries, addr, bytes, lkey);
    }

    entries->first[entries->num++] = (uct_dcx_ext_entry_t){
        .addr  = addr,
        .bytes = bytes,
        .lkey  = lkey,
    };
    return 1;
}

#endif
