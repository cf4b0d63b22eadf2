/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of dcx_ext.h. Each function is a thin layer over strided/ and mem/.
 */
#include "dcx_ext.h"
#include "uct/dcx/base/dcx_config.h"
#include "uct/dcx/dev/dcx_gpu.h"
#include "uct/dcx/mem/dcx_mem_place.h"
#include "uct/dcx/strided/dcx_mem_layout.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <sched.h>


#define UCT_DCX_EXT_IS_SAME(_member) \
    (ucs_offsetof(uct_dcx_ext_entry_t, _member) == \
     ucs_offsetof(uct_dcx_sgl_entry_t, _member))

_Static_assert((sizeof(uct_dcx_ext_entry_t) == sizeof(uct_dcx_sgl_entry_t)) &&
                   UCT_DCX_EXT_IS_SAME(addr) && UCT_DCX_EXT_IS_SAME(bytes) &&
                   UCT_DCX_EXT_IS_SAME(stride) && UCT_DCX_EXT_IS_SAME(lkey) &&
                   UCT_DCX_EXT_IS_SAME(reserved),
               "entries are the layout's own");
_Static_assert(((int)UCT_DCX_EXT_SIZES == UCT_DCX_KEY_SIZES) &&
                   ((int)UCT_DCX_EXT_MAX_BLOCK == UCT_DCX_SGL_MAX_BLOCK) &&
                   ((int)UCT_DCX_EXT_MAX_PIECE == UCT_DCX_SGL_MAX_PIECE),
               "limits are the layout's own");


/* --- limits --------------------------------------------------------------- */

/* Returns the pieces of the largest layout that options allow; 0 if the options
 * are invalid. */
static size_t uct_dcx_ext_option_pieces(void)
{
    ucs_config_field_t *table = uct_dcx_component.md_config.table;
    uct_dcx_md_config_t config;

    if (uct_dcx_ucx_read_options(&config, table, "DCX_") != UCS_OK) {
        return 0;
    }

    ucs_config_parser_release_opts(&config, table);
    return (size_t)config.umr_max_entries + UCT_DCX_SGL_KLM_ALIGN;
}


/* Returns 1 if options require devices to match tags. */
static int uct_dcx_ext_option_tags(void)
{
    uct_dcx_iface_config_t config;

    if (uct_dcx_ucx_read_options(&config, uct_dcx_iface_config_table, "DCX_") !=
        UCS_OK) {
        return 0;
    }

    ucs_config_parser_release_opts(&config, uct_dcx_iface_config_table);
    return config.tm.enable == UCS_YES;
}


static void uct_dcx_ext_set_lengths(uct_dcx_ext_attr_t *attr,
                                    const size_t *thresholds)
{
    attr->min_length = thresholds[UCT_DCX_THRESHOLD_LENGTH];
    attr->min_block  = thresholds[UCT_DCX_THRESHOLD_BLOCK];
}


static void uct_dcx_ext_query(uct_md_h tl_md, uct_dcx_ext_attr_t *attr)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);
    unsigned i;

    *attr = (uct_dcx_ext_attr_t){.max_depth = 1};
    if (md == NULL) {
        attr->max_pieces = uct_dcx_ext_option_pieces();
        attr->has_tags   = uct_dcx_ext_option_tags();
        uct_dcx_ext_set_lengths(attr, uct_dcx_profile_defaults);
        return;
    }

    attr->has_keys   = uct_dcx_keys_is_open(md->keys);
    attr->max_depth  = md->dev.umr.max_depth;
    attr->has_nests  = md->dev.umr.has_nests;
    attr->max_pieces = uct_dcx_keys_max_klm(md->keys);
    for (i = 0; i < UCT_DCX_EXT_SIZES; ++i) {
        attr->sizes[i] = md->keys->sizes[i].num_klm;
    }
    uct_dcx_ext_set_lengths(attr, md->dev.profile.thresholds);
}


/* --- memory --------------------------------------------------------------- */

static void uct_dcx_ext_dereg(uct_md_h md, uct_dcx_ext_region_t *region)
{
    (void)uct_dcx_region_put(ucs_derived_of(md, uct_dcx_md_t), region);
}


/* Refuses memory of a GPU, as its users copy by the processor, too. */
static ucs_status_t uct_dcx_ext_reg(uct_md_h md, void *address, size_t length,
                                    uint64_t flags,
                                    uct_dcx_ext_region_t **region_p,
                                    uint32_t *lkey_p)
{
    ucs_status_t status;

    status = uct_dcx_region_get(ucs_derived_of(md, uct_dcx_md_t), address,
                                length, flags, region_p);
    if (status != UCS_OK) {
        return status;
    }

    if ((*region_p)->is_device) {
        uct_dcx_ext_dereg(md, *region_p);
        return UCS_ERR_UNSUPPORTED;
    }
    *lkey_p = (*region_p)->mr->lkey;
    return UCS_OK;
}


/* --- layouts -------------------------------------------------------------- */

static ucs_status_t uct_dcx_ext_make(uct_md_h md, size_t max,
                                     uct_dcx_ext_layout_t **layout_p,
                                     uct_dcx_ext_entry_t **entries_p)
{
    ucs_status_t status;

    status = uct_dcx_mem_layout_make(ucs_derived_of(md, uct_dcx_md_t), max,
                                     layout_p);
    if (status == UCS_OK) {
        *entries_p = (void *)(*layout_p)->layout->entries;
    }
    return status;
}


/* Returns the access of peers: they read from a source, and write to a
 * destination. */
static uint32_t uct_dcx_ext_access(const uct_dcx_ext_form_t *form)
{
    return form->is_dest ? (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) :
                           IBV_ACCESS_REMOTE_READ;
}


/* Repeats a call that has returned @busy until it returns another status.
 * UCS_ERR_NO_RESOURCE: there is no room for the layout of @depth;
 * UCS_INPROGRESS: it is on its way. Each call watches the queue. */
static ucs_status_t UCS_F_NOINLINE uct_dcx_ext_repeat(
    uct_dcx_ext_layout_t *layout, ucs_status_t busy, unsigned depth)
{
    ucs_status_t status;

    do {
        sched_yield();
        if (busy == UCS_INPROGRESS) {
            status = uct_dcx_mem_layout_test(layout);
        } else {
            status = uct_dcx_mem_layout_give(layout, depth);
        }
    } while (status == busy);
    return status;
}


static ucs_status_t uct_dcx_ext_set(uct_dcx_ext_layout_t *layout,
                                    const uct_dcx_ext_form_t *form,
                                    uint32_t *lkey_p)
{
    uct_dcx_sgl_t *built;
    ucs_status_t status;

    built         = uct_dcx_mem_layout_build(layout, uct_dcx_ext_access(form),
                                             form->start);
    built->kind   = (form->repeat > 1) ? UCT_DCX_SGL_INTERLEAVED :
                                         UCT_DCX_SGL_LIST;
    built->repeat = form->repeat;
    built->num    = form->num;
    built->length = form->length;
    status        = uct_dcx_mem_layout_give(layout, form->depth);
    if (ucs_unlikely(status == UCS_ERR_NO_RESOURCE)) {
        status = uct_dcx_ext_repeat(layout, status, form->depth);
    }
    if (status == UCS_OK) {
        *lkey_p = layout->mem->lkey;
    }
    return status;
}


static ucs_status_t uct_dcx_ext_wait(uct_dcx_ext_layout_t *layout)
{
    ucs_status_t status = uct_dcx_mem_layout_test(layout);

    return ucs_likely(status != UCS_INPROGRESS) ?
               status :
               uct_dcx_ext_repeat(layout, status, 0);
}


/* --- places --------------------------------------------------------------- */

static ucs_status_t uct_dcx_ext_place(uct_md_h tl_md, unsigned index,
                                      uct_dcx_ext_layout_t *layout)
{
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);

    if (layout == NULL) {
        uct_dcx_mem_place_clear(md, index);
        return UCS_OK;
    }
    return uct_dcx_mem_place_set(md, index, layout->mem);
}


const uct_dcx_ext_ops_t uct_dcx_ext = {
    .query      = uct_dcx_ext_query,
    .peer_types = uct_dcx_gpu_peer_types,
    .reg        = uct_dcx_ext_reg,
    .dereg      = uct_dcx_ext_dereg,
    .make       = uct_dcx_ext_make,
    .destroy    = uct_dcx_mem_layout_destroy,
    .set        = uct_dcx_ext_set,
    .wait       = uct_dcx_ext_wait,
    .revoke     = uct_dcx_mem_layout_revoke,
    .enable     = uct_dcx_mem_places_enable,
    .place      = uct_dcx_ext_place,
    .watch      = uct_dcx_md_set_watch,
};
