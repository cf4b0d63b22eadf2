/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Keys of views; see dcx_view_key.h.
 */
#include "dcx_view_key.h"
#include "uct/dcx/mem/dcx_mem_view.h"

#include <ucs/debug/log.h>
#include <ucs/time/time.h>


/* What a send lets the peer do, and a receive */
static uint32_t uct_dcx_view_access(const uct_dcx_view_data_t *data)
{
    return data->is_dest ? (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) :
                           IBV_ACCESS_REMOTE_READ;
}


/* --- layouts -------------------------------------------------------------- */

static uct_dcx_view_status_t
uct_dcx_view_key_make(uct_dcx_view_key_t *key, size_t max,
                      uct_dcx_mem_layout_t **layout_p)
{
    ucs_status_t status;

    if (*layout_p != NULL) {
        return UCT_DCX_VIEW_OK;
    }

    status = uct_dcx_mem_layout_make(key->md, max, layout_p);
    return (status == UCS_OK)              ? UCT_DCX_VIEW_OK :
           (status == UCS_ERR_NO_RESOURCE) ? UCT_DCX_VIEW_BUSY :
                                             UCT_DCX_VIEW_FAILED;
}


/* The top layout of the smallest size that takes so many pieces */
static uct_dcx_view_status_t
uct_dcx_view_key_make_top(uct_dcx_view_key_t *key, size_t pieces)
{
    const uct_dcx_slot_size_t *sizes = key->md->slots->sizes;
    unsigned i                       = 0;
    uct_dcx_view_status_t status;

    while (sizes[i].num_klm < pieces) {
        ++i;
    }

    status = uct_dcx_view_key_make(key, sizes[i].num_klm, &key->tops[i]);
    if (status == UCT_DCX_VIEW_OK) {
        key->top = key->tops[i];
    }
    return status;
}


/* A queue that does not move for so long is given up by who takes the layout
 * away. */
static int uct_dcx_view_is_late(const uct_dcx_view_key_t *key,
                                uct_dcx_mem_layout_t *layout, ucs_time_t since)
{
    if (ucs_get_time() - since <= key->md->slots->timeout) {
        return 0;
    }

    uct_dcx_mem_layout_revoke(layout);
    return 1;
}


/* The queue may have no room, but not for long. */
static uct_dcx_view_status_t
uct_dcx_view_key_give(uct_dcx_view_key_t *key, uct_dcx_mem_layout_t *layout,
                      unsigned depth)
{
    ucs_time_t since = ucs_get_time();
    ucs_status_t status;

    do {
        status = uct_dcx_mem_layout_give(layout, depth);
    } while ((status == UCS_ERR_NO_RESOURCE) &&
             !uct_dcx_view_is_late(key, layout, since));
    return (status == UCS_OK) ? UCT_DCX_VIEW_OK : UCT_DCX_VIEW_FAILED;
}


static uct_dcx_view_status_t
uct_dcx_view_key_wait(uct_dcx_view_key_t *key, uct_dcx_mem_layout_t *layout)
{
    ucs_time_t since = ucs_get_time();
    ucs_status_t status;

    do {
        status = uct_dcx_mem_layout_test(layout);
    } while ((status == UCS_INPROGRESS) &&
             !uct_dcx_view_is_late(key, layout, since));
    return (status == UCS_OK) ? UCT_DCX_VIEW_OK : UCT_DCX_VIEW_FAILED;
}


/* The device executes them in order, but for those that fail. */
static uct_dcx_view_status_t uct_dcx_view_key_wait_all(uct_dcx_view_key_t *key)
{
    uct_dcx_view_status_t status = uct_dcx_view_key_wait(key, key->top);
    unsigned i;

    for (i = 0; (i < key->num_layers) && (status == UCT_DCX_VIEW_OK); ++i) {
        status = uct_dcx_view_key_wait(key, key->layers[i]);
    }
    return status;
}


/* A layer of memory, or of the one before; '*lkey_p' is the key of either */
static uct_dcx_view_status_t
uct_dcx_view_key_layer(uct_dcx_view_key_t *key, uct_dcx_layout_run_t run,
                       uint32_t access, uint32_t *lkey_p)
{
    uct_dcx_mem_layout_t **layer = &key->layers[key->num_layers];
    uct_dcx_view_status_t status;
    uct_dcx_layout_t *layout;

    status = uct_dcx_view_key_make(key, key->md->slots->sizes[0].num_klm,
                                   layer);
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    run.lkey = *lkey_p;
    layout   = uct_dcx_mem_layout_build(*layer, access, 0);
    if (uct_dcx_layout_add(layout, &run) != NULL) {
        return UCT_DCX_VIEW_TOO_MANY;
    }

    status  = uct_dcx_view_key_give(key, *layer, ++key->num_layers);
    *lkey_p = (*layer)->mem->lkey;
    return status;
}


/* A list of blocks. Most have the region of the one before. */
typedef struct uct_dcx_view_list {
    uct_dcx_layout_t            *layout;
    uint64_t                    begin;
    uint64_t                    length;
    uint32_t                    lkey;
    const uct_dcx_view_memory_t *memory;
} uct_dcx_view_list_t;


static void uct_dcx_view_list_find(uct_dcx_view_list_t *list, uint64_t addr)
{
    const uct_dcx_view_region_t *region;

    region       = uct_dcx_view_memory_find(list->memory, addr);
    list->begin  = region->begin;
    list->length = region->end - region->begin;
    list->lkey   = region->lkey;
}


static int uct_dcx_view_list_add(void *arg, char *address, size_t bytes)
{
    uct_dcx_view_list_t *list = arg;
    uint64_t addr             = (uintptr_t)address;

    if (ucs_unlikely(addr - list->begin >= list->length)) {
        uct_dcx_view_list_find(list, addr);
    }
    return ucs_unlikely(!uct_dcx_layout_append(list->layout, addr, bytes,
                                               list->lkey)) &&
           !uct_dcx_view_form_append(list->layout, addr, bytes, list->lkey);
}


static int
uct_dcx_view_key_fill(uct_dcx_view_key_t *key, const uct_dcx_view_form_t *form,
                      const shape_data_t *data, uint32_t lkey,
                      uct_dcx_layout_t *layout)
{
    uct_dcx_view_list_t list = {.layout = layout, .memory = &key->memory};

    return (form->kind == UCT_DCX_VIEW_LIST) ?
           !shape_for_each(data, uct_dcx_view_list_add, &list) :
           uct_dcx_view_form_fill(form, data, lkey, layout);
}


/* From memory up to the top */
static uct_dcx_view_status_t
uct_dcx_view_key_build(uct_dcx_view_key_t *key, const uct_dcx_view_form_t *form,
                       const uct_dcx_view_data_t *data)
{
    uint32_t access              = uct_dcx_view_access(data);
    uint32_t lkey                = key->memory.regions[0].lkey;
    uct_dcx_view_status_t status = UCT_DCX_VIEW_OK;
    uct_dcx_layout_t *layout;
    unsigned i;

    key->num_layers = 0;
    for (i = 0; (i < form->num_layers) && (status == UCT_DCX_VIEW_OK); ++i) {
        status = uct_dcx_view_key_layer(key, form->layers[i], access, &lkey);
    }

    if (status == UCT_DCX_VIEW_OK) {
        status = uct_dcx_view_key_make_top(key, form->pieces);
    }
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }

    layout = uct_dcx_mem_layout_build(key->top, access,
                                      uct_dcx_mem_view_address(key->index));
    if (!uct_dcx_view_key_fill(key, form, &data->super, lkey, layout)) {
        return UCT_DCX_VIEW_TOO_MANY;
    }

    status = uct_dcx_view_key_give(key, key->top, key->num_layers + 1);
    return (status == UCT_DCX_VIEW_OK) ? uct_dcx_view_key_wait_all(key) :
                                         status;
}


/* --- use ------------------------------------------------------------------ */

/* Whether the device has the layouts */
static int uct_dcx_view_key_is_ready(uct_dcx_view_key_t *key)
{
    ucs_status_t status = uct_dcx_mem_layout_test(key->top);
    unsigned i;

    for (i = 0; (i < key->num_layers) && (status == UCS_OK); ++i) {
        status = uct_dcx_mem_layout_test(key->layers[i]);
    }
    return status == UCS_OK;
}


static uct_dcx_view_limits_t
uct_dcx_view_key_limits(const uct_dcx_view_key_t *key)
{
    const uct_dcx_umr_caps_t *umr = &key->md->dev.umr;

    return (uct_dcx_view_limits_t){
        .max_pieces = uct_dcx_slots_max_klm(key->md->slots),
        .max_layers = ucs_min(umr->max_depth - 1,
                              umr->has_nests ? UCT_DCX_VIEW_MAX_LAYERS : 1),
        .has_nests  = umr->has_nests
    };
}


/* Has had this data before: only what changed is made again. The memory is
 * registered. */
static uct_dcx_view_status_t
uct_dcx_view_key_set(uct_dcx_view_key_t *key, const uct_dcx_view_data_t *data,
                     int is_same)
{
    uct_dcx_view_limits_t limits = uct_dcx_view_key_limits(key);
    uct_dcx_view_form_t form;
    uct_dcx_view_status_t status;

    if (is_same && uct_dcx_view_key_is_ready(key)) {
        return UCT_DCX_VIEW_OK;
    }

    key->is_current = 0;
    status          = uct_dcx_view_form_init(&form, &data->super,
                                             key->memory.num == 1,
                                             &limits);
    if (status == UCT_DCX_VIEW_OK) {
        status = uct_dcx_view_key_build(key, &form, data);
    }
    if (status == UCT_DCX_VIEW_OK) {
        status = (uct_dcx_mem_view_set(key->md, key->index,
                                       key->top->mem) == UCS_OK) ?
                 UCT_DCX_VIEW_OK : UCT_DCX_VIEW_FAILED;
    }
    key->is_current = (status == UCT_DCX_VIEW_OK);
    return status;
}


/* What would be too many pieces in one region is in several, too. */
static uct_dcx_view_status_t
uct_dcx_view_key_reg(uct_dcx_view_key_t *key, const uct_dcx_view_data_t *data)
{
    uct_dcx_view_limits_t limits = uct_dcx_view_key_limits(key);
    uct_dcx_view_form_t form;
    uct_dcx_view_status_t status;

    status = uct_dcx_view_form_init(&form, &data->super, 1, &limits);
    if (status != UCT_DCX_VIEW_OK) {
        return status;
    }
    return uct_dcx_view_memory_reg(&key->memory, key->md, &data->super,
                                   data->is_dest) ?
           UCT_DCX_VIEW_OK : UCT_DCX_VIEW_UNMAPPED;
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
        uct_dcx_view_memory_dereg(&key->memory, key->md);
    }
    return status;
}


void uct_dcx_view_key_close(uct_dcx_view_key_t *key, int is_failed)
{
    if (is_failed) {
        uct_dcx_mem_layout_revoke(key->top);
    }
    uct_dcx_view_memory_dereg(&key->memory, key->md);
}


static unsigned uct_dcx_view_key_destroy(uct_dcx_mem_layout_t **layouts,
                                         unsigned max)
{
    unsigned num = 0;
    unsigned i;

    for (i = 0; i < max; ++i) {
        if (layouts[i] != NULL) {
            uct_dcx_mem_layout_destroy(layouts[i]);
            layouts[i] = NULL;
            num++;
        }
    }
    return num;
}


unsigned uct_dcx_view_key_cleanup(uct_dcx_view_key_t *key)
{
    unsigned num;

    uct_dcx_mem_view_clear(key->md, key->index);
    num  = uct_dcx_view_key_destroy(key->tops, UCT_DCX_SLOT_SIZES);
    num += uct_dcx_view_key_destroy(key->layers, UCT_DCX_VIEW_MAX_LAYERS);
    key->md         = NULL;
    key->top        = NULL;
    key->is_current = 0;
    return num;
}
