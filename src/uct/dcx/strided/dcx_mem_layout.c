/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Handles of layouts; see dcx_mem_layout.h.
 */
#include "dcx_mem_layout.h"
#include "dcx_key_queue.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


/* --- memory of GPUs ------------------------------------------------------- */

/* Searches the current layouts: one that others name may get another. */
static int uct_dcx_mem_is_device_locked(const uct_dcx_mem_t *mem)
{
    const uct_dcx_key_ref_t *ref, *end;

    if (!uct_dcx_mem_is_layout(mem)) {
        return mem->region->is_device;
    }

    ref = mem->layout->key->refs;
    end = ref + mem->layout->key->num_refs;
    while ((ref < end) && ((ref->mem == NULL) || (ref->mem->md == NULL) ||
                           !uct_dcx_mem_is_device_locked(ref->mem))) {
        ++ref;
    }
    return ref < end;
}


int uct_dcx_mem_is_device(const uct_dcx_mem_t *mem)
{
    uct_dcx_md_t *md = mem->md;
    int is_device;

    if ((md == NULL) || !md->has_devices) {
        return 0;
    }

    ucs_spin_lock(&md->keys->lock);
    is_device = uct_dcx_mem_is_device_locked(mem);
    ucs_spin_unlock(&md->keys->lock);
    return is_device;
}


/* --- creation ------------------------------------------------------------- */

static void uct_dcx_mem_layout_free(uct_dcx_mem_layout_t *layout)
{
    ucs_free(layout->next.runs);
    ucs_free(layout->next.mems);
    ucs_free(layout->layout);
    if (layout->mem != NULL) {
        uct_dcx_mem_free(layout->mem->md, layout->mem);
    }
    ucs_free(layout);
}


/* Allocates a layout; that of a view has no description of runs. */
static uct_dcx_mem_layout_t *uct_dcx_mem_layout_alloc(uct_dcx_md_t *md,
                                                      size_t max, int is_view)
{
    uct_dcx_mem_layout_t *layout = ucs_calloc(1, sizeof(*layout),
                                              "uct_dcx_mem_layout");
    size_t num;

    if (layout == NULL) {
        return NULL;
    }

    num               = is_view ? 1 : max;
    layout->max       = max;
    layout->is_view   = is_view;
    layout->depth     = 1;
    layout->mem       = uct_dcx_mem_alloc(md);
    layout->layout    = ucs_malloc(uct_dcx_sgl_size(max), "uct_dcx_sgl");
    layout->next.runs = ucs_malloc(num * sizeof(*layout->next.runs),
                                   "uct_dcx_runs");
    layout->next.mems = ucs_malloc(num * sizeof(*layout->next.mems),
                                   "uct_dcx_mems");
    if ((layout->next.runs == NULL) || (layout->next.mems == NULL) ||
        (layout->layout == NULL) || (layout->mem == NULL)) {
        uct_dcx_mem_layout_free(layout);
        return NULL;
    }
    return layout;
}


/* Copies the key's number to the handle. A changed number was not given to any
 * peer. */
static void uct_dcx_mem_layout_number(uct_dcx_mem_layout_t *layout)
{
    uct_dcx_mem_t *mem = layout->mem;

    if (mem->lkey != layout->key->lkey) {
        mem->lkey    = layout->key->lkey;
        mem->rkey    = layout->key->rkey;
        mem->is_bare = 0;
    }
}


/* Takes a key; logs an error if there is none. */
static ucs_status_t uct_dcx_mem_layout_own(uct_dcx_md_t *md, size_t max,
                                           uct_dcx_key_t **key_p)
{
    unsigned max_klm    = uct_dcx_keys_max_klm(md->keys);
    ucs_status_t status = UCS_ERR_EXCEEDS_LIMIT;

    if (max <= max_klm) {
        status = uct_dcx_keys_own(md->keys, max, key_p);
    }

    switch (status) {
    case UCS_ERR_EXCEEDS_LIMIT:
        ucs_error("uct_dcx_layout_create: max_pieces is %zu, the limit of %s "
                  "is %u: the lower of the device's %u and "
                  "UCX_DCX_UMR_MAX_ENTRIES",
                  max, uct_dcx_device_name(&md->dev), max_klm,
                  md->dev.umr.max_klm);
        return status;
    case UCS_ERR_NO_RESOURCE:
        ucs_error("uct_dcx_layout_create: all %u mkeys for %zu pieces are in "
                  "use on %s; raise UCX_DCX_UMR_LAYOUTS",
                  md->keys->params.max_owned, max,
                  uct_dcx_device_name(&md->dev));
        return UCS_ERR_EXCEEDS_LIMIT;
    default:
        return status;
    }
}


static ucs_status_t uct_dcx_mem_layout_init(uct_dcx_md_t *md, size_t max,
                                            int is_view, uct_dcx_key_t *key,
                                            uct_dcx_mem_layout_t **layout_p)
{
    uct_dcx_mem_layout_t *layout = uct_dcx_mem_layout_alloc(md, max, is_view);

    if (layout == NULL) {
        ucs_error("%s: out of memory for a layout of %zu pieces",
                  uct_dcx_device_name(&md->dev), max);
        uct_dcx_keys_disown(md->keys, key, 0);
        return UCS_ERR_NO_MEMORY;
    }

    layout->key         = key;
    layout->mem->layout = layout;
    uct_dcx_mem_layout_number(layout);
    ucs_spin_lock(&md->keys->lock);
    ucs_list_add_tail(&md->keys->handles, &layout->list);
    ucs_spin_unlock(&md->keys->lock);
    *layout_p = layout;
    return UCS_OK;
}


ucs_status_t uct_dcx_mem_layout_create(uct_dcx_md_t *md, size_t max,
                                       uct_dcx_mem_layout_t **layout_p)
{
    uct_dcx_key_t *key;
    ucs_status_t status;

    status = uct_dcx_mem_layout_own(md, max, &key);
    return (status == UCS_OK) ?
               uct_dcx_mem_layout_init(md, max, 0, key, layout_p) :
               status;
}


ucs_status_t uct_dcx_mem_layout_make(uct_dcx_md_t *md, size_t max,
                                     uct_dcx_mem_layout_t **layout_p)
{
    uct_dcx_key_t *key;
    ucs_status_t status;

    status = uct_dcx_keys_own(md->keys, max, &key);
    return (status == UCS_OK) ?
               uct_dcx_mem_layout_init(md, max, 1, key, layout_p) :
               status;
}


void uct_dcx_mem_layout_destroy(uct_dcx_mem_layout_t *layout)
{
    uct_dcx_md_t *md = layout->mem->md;

    ucs_spin_lock(&md->keys->lock);
    ucs_list_del(&layout->list);
    ucs_spin_unlock(&md->keys->lock);

    uct_dcx_keys_disown(md->keys, layout->key, layout->mem->is_bare);
    uct_dcx_mem_layout_free(layout);
}


/* --- setting -------------------------------------------------------------- */

void uct_dcx_mem_layout_begin(uct_dcx_mem_layout_t *layout, uint32_t access)
{
    uct_dcx_mem_next_t *next = &layout->next;

    uct_dcx_sgl_begin(layout->layout, layout->max, access);
    layout->layout->mems = next->mems;
    next->num            = 0;
    next->is_plain       = 1;
    next->depth          = 1;
    next->length         = 0;
}


/* Checks that a nested layout is not too deep. A layout that others name cannot
 * become deeper, so there are no cycles. */
static const char *uct_dcx_mem_layout_check_nested(uct_dcx_mem_layout_t *layout,
                                                   uct_dcx_mem_layout_t *inner)
{
    unsigned depth      = inner->depth + 1;
    ucs_status_t status = uct_dcx_keys_peek(inner->mem->md->keys, inner->key);

    if (inner == layout) {
        return "memh is the layout itself";
    }

    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        return "memh is a layout that was not set, or that the device failed "
               "to set";
    }

    if (depth > layout->mem->md->dev.umr.max_depth) {
        return "memh is a layout that already has the maximum depth of the "
               "device";
    }

    if ((depth > layout->depth) &&
        uct_dcx_keys_is_named(layout->mem->md->keys, layout->mem)) {
        return "memh would make this layout deeper, but other layouts refer "
               "to it";
    }

    layout->next.depth = ucs_max(layout->next.depth, depth);
    return NULL;
}


/* Returns the first address, and the bytes, of @mem. */
static void uct_dcx_mem_span(const uct_dcx_mem_t *mem, uint64_t *begin_p,
                             uint64_t *length_p)
{
    if (uct_dcx_mem_is_layout(mem)) {
        *begin_p  = mem->layout->start;
        *length_p = mem->layout->length;
    } else {
        *begin_p  = (uintptr_t)mem->region->mr->addr;
        *length_p = mem->region->mr->length;
    }
}


/* Returns 1 if the run is in @mem. The run itself may end at any 64-bit
 * address. */
static int uct_dcx_mem_has_run(const uct_dcx_mem_t *mem,
                               const uct_dcx_sgl_run_t *run)
{
    uint64_t last = ((run->count - 1) * run->stride) + (run->bytes - 1);
    uint64_t begin, length;

    uct_dcx_mem_span(mem, &begin, &length);
    return (run->addr >= begin) && (last < length) &&
           (run->addr - begin < length - last);
}


static const char *uct_dcx_mem_layout_check(uct_dcx_mem_layout_t *layout,
                                            uct_mem_h memh,
                                            const uct_dcx_sgl_run_t *run)
{
    uct_dcx_mem_t *mem = memh;
    const char *fault;

    if ((mem == NULL) || (mem->md != layout->mem->md)) {
        return "memh belongs to another memory domain, or was deregistered";
    }

    fault = uct_dcx_mem_is_layout(memh) ?
                uct_dcx_mem_layout_check_nested(layout, mem->layout) :
                NULL;
    if (fault != NULL) {
        return fault;
    }

    if (uct_dcx_sgl_check(run) != NULL) {
        return "address, length, skip and repeat exceed 64 bits";
    }
    return uct_dcx_mem_has_run(mem, run) ?
               NULL :
               "address: blocks are outside the memory of memh";
}


const char *uct_dcx_mem_layout_add(uct_dcx_mem_layout_t *layout, uct_mem_h memh,
                                   const uct_dcx_sgl_run_t *run)
{
    uct_dcx_mem_next_t *next = &layout->next;
    uct_dcx_sgl_t *made      = layout->layout;
    const char *fault        = uct_dcx_mem_layout_check(layout, memh, run);
    uint64_t length;

    if (fault != NULL) {
        return fault;
    }

    if (__builtin_mul_overflow(run->count, run->bytes, &length) ||
        __builtin_add_overflow(next->length, length, &next->length)) {
        return "length: the sum of lengths exceeds 64 bits";
    }

    if ((made->num_mems == 0) || (made->mems[made->num_mems - 1] != memh)) {
        made->mems[made->num_mems++] = memh;
        next->is_plain &= uct_dcx_mem_is_plain(memh);
    }
    next->runs[next->num]      = *run;
    next->runs[next->num].lkey = uct_dcx_mem_strict_lkey(memh);
    next->num++;
    return NULL;
}


/* Builds the next layout and checks it. Logs errors. */
static ucs_status_t uct_dcx_mem_layout_check_next(uct_dcx_mem_layout_t *layout)
{
    const uct_dcx_mem_next_t *next = &layout->next;
    uct_dcx_sgl_t *made            = layout->layout;
    int overlaps                   = 0;
    const char *fault;

    made->is_list = (next->depth > 1) && !layout->mem->md->dev.umr.has_nests;
    fault         = uct_dcx_sgl_add_rounds(made, next->runs, next->num);
    if (fault == NULL) {
        overlaps = uct_dcx_sgl_end(made);
        fault    = (overlaps == 0) ? NULL :
                   (overlaps > 0)  ? "they overlap, and are writable" :
                                     "failed to allocate memory to check for "
                                     "overlap";
    }

    if (fault != NULL) {
        ucs_error("uct_dcx_layout_set: params->blocks: %s", fault);
        return (overlaps < 0) ? UCS_ERR_NO_MEMORY : UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


/* All layouts of views have the same hash: they are not searched for. */
ucs_status_t uct_dcx_mem_layout_give(uct_dcx_mem_layout_t *layout,
                                     unsigned depth)
{
    uct_dcx_mem_t *mem  = layout->mem;
    ucs_status_t status = uct_dcx_keys_set(mem->md->keys, &layout->key,
                                           mem->is_bare, layout->layout);

    uct_dcx_mem_layout_number(layout);
    if (status == UCS_OK) {
        layout->depth  = depth;
        layout->length = layout->layout->length;
        layout->start  = layout->layout->start;
    }
    return status;
}


/* Pins memory that is registered on demand, and has the runs name its new key.
 * Sets @is_changed_p to 1 if one does not name it yet. */
static ucs_status_t uct_dcx_mem_layout_pin(const uct_dcx_mem_next_t *next,
                                           uct_dcx_mem_t *mem,
                                           int *is_changed_p)
{
    uint32_t lkey       = mem->region->mr->lkey;
    ucs_status_t status = uct_dcx_mem_pin(mem);
    uint32_t strict     = uct_dcx_mem_strict_lkey(mem);
    unsigned i;

    for (i = 0; (strict != lkey) && (i < next->num); ++i) {
        if (next->runs[i].lkey == lkey) {
            next->runs[i].lkey = strict;
            *is_changed_p      = 1;
        }
    }
    return status;
}


/* Pins the memory of the next layout, which was checked, and builds the layout
 * again if that has changed keys. */
static UCS_F_NOINLINE ucs_status_t
uct_dcx_mem_layout_pin_next(uct_dcx_mem_layout_t *layout)
{
    uct_dcx_sgl_t *made = layout->layout;
    unsigned num_mems   = made->num_mems;
    ucs_status_t status = UCS_OK;
    int is_changed      = 0;
    unsigned i;

    for (i = 0; (i < num_mems) && (status == UCS_OK); ++i) {
        if (!uct_dcx_mem_is_layout(made->mems[i])) {
            status = uct_dcx_mem_layout_pin(&layout->next, made->mems[i],
                                            &is_changed);
        }
    }
    if (!is_changed || (status != UCS_OK)) {
        return status;
    }

    uct_dcx_sgl_begin(made, layout->max, made->access);
    made->mems     = layout->next.mems;
    made->num_mems = num_mems;
    return uct_dcx_mem_layout_check_next(layout);
}


ucs_status_t uct_dcx_mem_layout_commit(uct_dcx_mem_layout_t *layout)
{
    ucs_status_t status = uct_dcx_mem_layout_check_next(layout);
    unsigned i;

    if ((status == UCS_OK) && ucs_unlikely(!layout->next.is_plain)) {
        status = uct_dcx_mem_layout_pin_next(layout);
    }
    if (status != UCS_OK) {
        return status;
    }

    for (i = 0; i < layout->layout->num_mems; ++i) {
        layout->layout->mems[i]->was_named = 1;
    }
    return uct_dcx_mem_layout_give(layout, layout->next.depth);
}


/* --- of views ------------------------------------------------------------- */

uct_dcx_sgl_t *uct_dcx_mem_layout_build(uct_dcx_mem_layout_t *layout,
                                        uint32_t access, uint64_t start)
{
    uct_dcx_sgl_begin(layout->layout, layout->max, access);
    layout->layout->start = start;
    return layout->layout;
}


void uct_dcx_mem_layout_revoke(uct_dcx_mem_layout_t *layout)
{
    uct_dcx_keys_forget_key(layout->mem->md->keys, layout->key);
}


/* --- of a domain ---------------------------------------------------------- */

static int uct_dcx_mem_layout_is_stale(void *arg, uint32_t number)
{
    return uct_dcx_mkey_is_stale(arg, number);
}


static void uct_dcx_mem_layout_add_stale(void *arg, uint32_t number)
{
    uct_dcx_mkey_add_stale(arg, number);
}


static ucs_status_t
uct_dcx_mem_layout_init_keys(uct_dcx_md_t *md,
                             const uct_dcx_md_config_t *config)
{
    const uct_dcx_keys_params_t params = {
        .dev         = &md->dev,
        .async       = &md->async,
        .max_keys    = config->umr_slots,
        .max_owned   = config->umr_layouts,
        .max_entries = config->umr_max_entries,
        .is_stale    = uct_dcx_mem_layout_is_stale,
        .add_stale   = uct_dcx_mem_layout_add_stale,
        .arg         = &md->mkeys,
    };

    if ((config->umr_slots < 1) || (config->umr_slots > 4096)) {
        ucs_error("UCX_DCX_UMR_SLOTS=%u is out of range: set it to 1-4096",
                  config->umr_slots);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((config->umr_layouts < 1) || (config->umr_layouts > 65536)) {
        ucs_error("UCX_DCX_UMR_LAYOUTS=%u is out of range: set it to 1-65536",
                  config->umr_layouts);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((config->umr_max_entries < UCT_DCX_SGL_KLM_ALIGN) ||
        (config->umr_max_entries > UCT_DCX_SGL_MAX_ENTRIES)) {
        ucs_error("UCX_DCX_UMR_MAX_ENTRIES=%u is out of range: set it to %u-%u",
                  config->umr_max_entries, UCT_DCX_SGL_KLM_ALIGN,
                  UCT_DCX_SGL_MAX_ENTRIES);
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_dcx_keys_init(md->keys, &params);
}


static ucs_status_t uct_dcx_mem_layout_open(uct_dcx_md_t *md,
                                            const uct_dcx_md_config_t *config)
{
    ucs_status_t status;

    md->keys = ucs_malloc(sizeof(*md->keys), "uct_dcx_keys");
    if (md->keys == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_dcx_mem_layout_init_keys(md, config);
    if (status != UCS_OK) {
        ucs_free(md->keys);
    }
    return status;
}


/* Destroys handles that were not deregistered: memory that they name may be
 * gone. */
static void uct_dcx_mem_layout_close(uct_dcx_md_t *md)
{
    uct_dcx_mem_layout_t *layout, *next;

    if (!ucs_list_is_empty(&md->keys->handles)) {
        ucs_warn("%s: %lu layouts were not deregistered",
                 uct_dcx_device_name(&md->dev),
                 ucs_list_length(&md->keys->handles));
    }

    ucs_list_for_each_safe (layout, next, &md->keys->handles, list) {
        uct_dcx_mem_layout_destroy(layout);
    }
    uct_dcx_keys_cleanup(md->keys);
    ucs_free(md->keys);
}


static int uct_dcx_mem_layout_region(uct_dcx_md_t *md, uint32_t lkey,
                                     int is_waiting)
{
    return uct_dcx_keys_forget(md->keys, lkey, is_waiting);
}


/* Does not destroy layouts of a view: the view does that. */
static void uct_dcx_mem_layout_handle(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    if (mem->was_named) {
        uct_dcx_keys_forget_mem(md->keys, mem);
    }
    if (uct_dcx_mem_is_layout(mem) && (mem->layout != NULL) &&
        !mem->layout->is_view) {
        uct_dcx_mem_layout_destroy(mem->layout);
    }
}


const uct_dcx_md_hook_t uct_dcx_mem_layout_hook = {
    .open   = uct_dcx_mem_layout_open,
    .close  = uct_dcx_mem_layout_close,
    .region = uct_dcx_mem_layout_region,
    .handle = uct_dcx_mem_layout_handle,
};
