/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The key of a view in a memory domain: a layout that begins at the view's
 * address, and layers below it (dcx_view_form.h). Its layouts stay on the
 * device when the view is closed, until it gets others, or the memory goes;
 * that is not registered meanwhile. Used by who has the view.
 */
#ifndef UCT_DCX_VIEW_KEY_H
#define UCT_DCX_VIEW_KEY_H

#include "dcx_view_form.h"
#include "dcx_view_memory.h"


/* What a view is of. Shapes are known by their id: they may be gone. */
typedef struct uct_dcx_view_data {
    shape_data_t super;
    uint64_t     id;
    int          is_dest;
} uct_dcx_view_data_t;


/* A layout of the transport, NULL: it was not made yet */
typedef struct uct_dcx_view_layout {
    uct_dcx_ext_layout_t *super;
    uct_dcx_ext_entry_t  *entries;
} uct_dcx_view_layout_t;


typedef struct uct_dcx_view_key {
    uct_md_h              md;         /* NULL: this key is in no domain */
    unsigned              index;      /* of the view */
    int                   is_current; /* has had the view's data */
    uct_dcx_ext_attr_t    limits;     /* of the domain */
    uct_dcx_view_memory_t memory;
    unsigned              num_layers;
    uct_dcx_ext_layout_t  *top;       /* of 'tops', the one that it has */
    uct_dcx_view_layout_t layers[UCT_DCX_VIEW_MAX_LAYERS];
    uct_dcx_view_layout_t tops[UCT_DCX_EXT_SIZES];
} uct_dcx_view_key_t;


/* Registers the memory, and gives the device the layouts if it has them not:
 * when it returns UCT_DCX_VIEW_OK, it has. Else nothing is registered. */
uct_dcx_view_status_t uct_dcx_view_key_open(uct_dcx_view_key_t *key,
                                            const uct_dcx_view_data_t *data);

/* 'is_failed': takes the layout back from peers. */
void uct_dcx_view_key_close(uct_dcx_view_key_t *key, int is_failed);

/* The domain goes, or another needs them: the key's layouts go. Returns how
 * many it had. */
unsigned uct_dcx_view_key_cleanup(uct_dcx_view_key_t *key);

#endif
