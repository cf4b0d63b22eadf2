/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys of views; see dcx_view_key.h.
 */
#include "dcx_view_key.h"
#include "dcx_view.h"


/* --- layouts -------------------------------------------------------------- */

static uct_dcx_view_status_t
uct_dcx_view_key_make(uct_dcx_view_key_t *key, size_t max,
                      uct_dcx_view_layout_t *layout)
{
    ucs_status_t status;

    if (layout->super != NULL) {
        return UCT_DCX_VIEW_OK;
    }

    status = uct_dcx_ext.make(key->md, max, &layout->super, &layout->entries);
    return (status == UCS_OK)              ? UCT_DCX_VIEW_OK :
           (status == UCS_ERR_NO_RESOURCE) ? UCT_DCX_VIEW_BUSY :
                                             UCT_DCX_VIEW_FAILED;
}


/* Makes the next layer, of memory or of the layer before. @lkey_p: the key of
 * either; then that of the new layer. */
static uct_dcx_view_status_t
uct_dcx_view_key_layer(uct_dcx_view_key_t *key, const uct_dcx_view_row_t *row,
                       int is_dest, uint32_t *lkey_p)
{
    uct_dcx_view_layout_t *layer  = &key->layers[key->num_layers];
    const uct_dcx_ext_form_t form = {
        .length  = row->entry.bytes * row->repeat,
        .num     = 1,
        .repeat  = row->repeat,
        .depth   = key->num_layers + 1,
        .is_dest = is_dest,
    };
    uct_dcx_view_status_t status;

    status = uct_dcx_view_key_make(key, key->limits.sizes[0], layer);
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    layer->entries[0]      = row->entry;
    layer->entries[0].lkey = *lkey_p;
    key->num_layers++;
    return (uct_dcx_ext.set(layer->super, &form, lkey_p) == UCS_OK) ?
               UCT_DCX_VIEW_OK :
               UCT_DCX_VIEW_FAILED;
}


/* A list of blocks. It keeps the last region: most blocks are in that of the
 * block before. */
typedef struct uct_dcx_view_list {
    uct_dcx_view_entries_t entries;
    uint64_t begin;
    uint64_t length;
    uint32_t lkey;
    const uct_dcx_view_memory_t *memory;
} uct_dcx_view_list_t;


static int uct_dcx_view_list_add(void *arg, char *address, size_t bytes)
{
    uct_dcx_view_list_t *list = arg;
    uint64_t addr             = (uintptr_t)address;
    const uct_dcx_view_region_t *region;

    if (ucs_unlikely(addr - list->begin >= list->length)) {
        region       = uct_dcx_view_memory_find(list->memory, addr);
        list->begin  = region->begin;
        list->length = region->end - region->begin;
        list->lkey   = region->lkey;
    }
    return !uct_dcx_view_append(&list->entries, addr, bytes, list->lkey);
}


/* Makes the top layout, of the smallest size that takes the form's pieces. */
static uct_dcx_view_status_t
uct_dcx_view_key_top(uct_dcx_view_key_t *key, const uct_dcx_view_form_t *form,
                     const uct_dcx_view_data_t *data, uint32_t lkey)
{
    uct_dcx_view_list_t list    = {.memory = &key->memory};
    uct_dcx_ext_form_t ext_form = {
        .start   = uct_dcx_view_address(key->index),
        .length  = shape_length(&data->super),
        .repeat  = form->repeat,
        .depth   = key->num_layers + 1,
        .is_dest = data->is_dest,
    };
    unsigned i = 0;
    uct_dcx_view_status_t status;

    while (key->limits.sizes[i] < form->pieces) {
        ++i;
    }

    status = uct_dcx_view_key_make(key, key->limits.sizes[i], &key->tops[i]);
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    key->top           = key->tops[i].super;
    list.entries.first = key->tops[i].entries;
    list.entries.max   = key->limits.sizes[i];
    if ((form->kind == UCT_DCX_VIEW_LIST) ?
            shape_for_each(&data->super, uct_dcx_view_list_add, &list) :
            !uct_dcx_view_form_fill(form, &data->super, lkey, &list.entries)) {
        return UCT_DCX_VIEW_TOO_MANY;
    }

    ext_form.num = list.entries.num;
    return (uct_dcx_ext.set(key->top, &ext_form, &lkey) == UCS_OK) ?
               UCT_DCX_VIEW_OK :
               UCT_DCX_VIEW_FAILED;
}


/* Waits until the device has all layouts. It executes them in order, except
 * those that fail. Returns 0 if one was revoked or has failed. */
static int uct_dcx_view_key_wait(uct_dcx_view_key_t *key)
{
    ucs_status_t status = uct_dcx_ext.wait(key->top);
    unsigned i;

    for (i = 0; (i < key->num_layers) && (status == UCS_OK); ++i) {
        status = uct_dcx_ext.wait(key->layers[i].super);
    }
    return status == UCS_OK;
}


/* Makes all layouts, from memory up to the top, and places the key. */
static uct_dcx_view_status_t
uct_dcx_view_key_build(uct_dcx_view_key_t *key, const uct_dcx_view_form_t *form,
                       const uct_dcx_view_data_t *data)
{
    uint32_t lkey                = key->memory.regions[0].lkey;
    uct_dcx_view_status_t status = UCT_DCX_VIEW_OK;
    unsigned i;

    key->num_layers = 0;
    for (i = 0; (i < form->num_layers) && (status == UCT_DCX_VIEW_OK); ++i) {
        status = uct_dcx_view_key_layer(key, &form->layers[i], data->is_dest,
                                        &lkey);
    }
    if (status == UCT_DCX_VIEW_OK) {
        status = uct_dcx_view_key_top(key, form, data, lkey);
    }
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }
    return (uct_dcx_view_key_wait(key) &&
            (uct_dcx_ext.place(key->md, key->index, key->top) == UCS_OK)) ?
               UCT_DCX_VIEW_OK :
               UCT_DCX_VIEW_FAILED;
}


/* --- use ------------------------------------------------------------------ */

/* Makes the layouts, unless @is_same: the key has had this data before, in the
 * same registrations. The memory is registered. */
static uct_dcx_view_status_t
uct_dcx_view_key_set(uct_dcx_view_key_t *key, const uct_dcx_view_data_t *data,
                     int is_same)
{
    uct_dcx_view_form_t form;
    uct_dcx_view_status_t status;

    if (is_same && uct_dcx_view_key_wait(key)) {
        return UCT_DCX_VIEW_OK;
    }

    key->is_current = 0;
    status = uct_dcx_view_form_init(&form, &data->super, key->memory.num == 1,
                                    &key->limits);
    if (status == UCT_DCX_VIEW_OK) {
        status = uct_dcx_view_key_build(key, &form, data);
    }
    key->is_current = (status == UCT_DCX_VIEW_OK);
    return status;
}


/* Registers the memory. First checks the pieces: too many in one region are too
 * many in several. */
static uct_dcx_view_status_t
uct_dcx_view_key_reg(uct_dcx_view_key_t *key, const uct_dcx_view_data_t *data)
{
    uct_dcx_view_form_t form;
    uct_dcx_view_status_t status;

    uct_dcx_ext.query(key->md, &key->limits);
    if (!key->limits.has_keys) {
        return UCT_DCX_VIEW_UNSUPPORTED;
    }

    status = uct_dcx_view_form_init(&form, &data->super, 1, &key->limits);
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }
    return uct_dcx_view_memory_reg(&key->memory, key->md, &data->super,
                                   data->is_dest) ?
               UCT_DCX_VIEW_OK :
               UCT_DCX_VIEW_UNMAPPED;
}


uct_dcx_view_status_t uct_dcx_view_key_open(uct_dcx_view_key_t *key,
                                            const uct_dcx_view_data_t *data)
{
    int is_same                  = 0;
    uct_dcx_view_status_t status = UCT_DCX_VIEW_OK;

    if (!key->is_current ||
        !uct_dcx_view_memory_again(&key->memory, key->md, &is_same)) {
        is_same = 0;
        status  = uct_dcx_view_key_reg(key, data);
    }
    if (status != UCT_DCX_VIEW_OK) {
        key->is_current = 0;
        return status;
    }

    status = uct_dcx_view_key_set(key, data, is_same);
    if (status != UCT_DCX_VIEW_OK) {
        uct_dcx_view_memory_dereg(&key->memory, key->md, key->memory.num);
    }
    return status;
}


void uct_dcx_view_key_close(uct_dcx_view_key_t *key, int is_failed)
{
    if (is_failed) {
        uct_dcx_ext.revoke(key->top);
    }
    uct_dcx_view_memory_dereg(&key->memory, key->md, key->memory.num);
}


static void uct_dcx_view_key_destroy(uct_dcx_view_layout_t *layouts,
                                     unsigned max)
{
    unsigned i;

    for (i = 0; i < max; ++i) {
        if (layouts[i].super != NULL) {
            uct_dcx_ext.destroy(layouts[i].super);
            layouts[i].super = NULL;
        }
    }
}


void uct_dcx_view_key_cleanup(uct_dcx_view_key_t *key)
{
    (void)uct_dcx_ext.place(key->md, key->index, NULL);
    uct_dcx_view_key_destroy(key->tops, UCT_DCX_EXT_SIZES);
    uct_dcx_view_key_destroy(key->layers, UCT_DCX_VIEW_MAX_LAYERS);
}


void uct_dcx_view_key_reset(uct_dcx_view_key_t *key)
{
    key->md         = NULL;
    key->top        = NULL;
    key->is_current = 0;
}


int uct_dcx_view_key_is_empty(const uct_dcx_view_key_t *key)
{
    unsigned i;

    for (i = 0; i < UCT_DCX_EXT_SIZES; ++i) {
        if (key->tops[i].super != NULL) {
            return 0;
        }
    }
    return key->layers[0].super == NULL;
}
