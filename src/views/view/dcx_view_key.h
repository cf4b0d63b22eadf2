/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The key of a view in a memory domain: a layout that begins at the view's
 * address, and layers below it (dcx_view_form.h). When the view is closed, its
 * layouts stay on the device, until they are replaced or their memory is gone.
 * A closed view keeps no memory registered, but the registration cache may.
 * Only the thread that has the view may use its keys.
 */
#ifndef UCT_DCX_VIEW_KEY_H
#define UCT_DCX_VIEW_KEY_H

#include "dcx_view_form.h"
#include "dcx_view_memory.h"


/* The data of a view. A shape is known by its @id, as it may be freed. */
typedef struct uct_dcx_view_data {
    shape_data_t super;
    uint64_t id;
    int is_dest;
} uct_dcx_view_data_t;


/* A layout of the transport; @super is NULL until it is made. */
typedef struct uct_dcx_view_layout {
    uct_dcx_ext_layout_t *super;
    uct_dcx_ext_entry_t *entries;
} uct_dcx_view_layout_t;


typedef struct uct_dcx_view_key {
    uct_md_h md;               /* NULL: this key is in no domain */
    unsigned index;            /* of the view */
    int is_current;            /* its layouts are of the view's data */
    uct_dcx_ext_attr_t limits; /* of the domain */
    uct_dcx_view_memory_t memory;
    unsigned num_layers;
    uct_dcx_ext_layout_t *top; /* the one of @tops in use */
    uct_dcx_view_layout_t layers[UCT_DCX_VIEW_MAX_LAYERS];
    uct_dcx_view_layout_t tops[UCT_DCX_EXT_SIZES]; /* by size */
} uct_dcx_view_key_t;


/* Registers the memory, and gives the device the layouts unless it has them;
 * waits until it has. Returns a status other than UCT_DCX_VIEW_OK if that
 * fails: then nothing is registered. */
uct_dcx_view_status_t uct_dcx_view_key_open(uct_dcx_view_key_t *key,
                                            const uct_dcx_view_data_t *data);

/* Deregisters the memory. @is_failed: first revokes the access of peers. */
void uct_dcx_view_key_close(uct_dcx_view_key_t *key, int is_failed);

/* Destroys the layouts of a key that is in a domain, but not in use: waits for
 * the device. */
void uct_dcx_view_key_cleanup(uct_dcx_view_key_t *key);

/* Takes the key out of its domain, after uct_dcx_view_key_cleanup(). */
void uct_dcx_view_key_reset(uct_dcx_view_key_t *key);

/* Returns 1 if the key has no layouts. */
int uct_dcx_view_key_is_empty(const uct_dcx_view_key_t *key);

#endif
