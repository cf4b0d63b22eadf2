/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Exports the functions of <uct/dcx/dcx.h>, the library's only visible symbols.
 * Names the wrong argument in the log; strided/dcx_mem_layout.c and
 * ep/dcx_list.c do the work.
 */
#include "dcx.h"
#include "uct/dcx/ep/dcx_list.h"
#include "uct/dcx/strided/dcx_mem_layout.h"
#include "uct/dcx/queue/dcx_queues.h"

#include <ucs/debug/log.h>

#define UCT_DCX_EXPORT __attribute__((visibility("default")))

#define UCT_DCX_LAYOUT_ACCESS \
    (UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE | \
     UCT_MD_MEM_ACCESS_REMOTE_GET | UCT_MD_MEM_ACCESS_REMOTE_PUT)


static inline int uct_dcx_is_md(uct_md_h md)
{
    return (md != NULL) && (md->component == &uct_dcx_component);
}


UCT_DCX_EXPORT ucs_status_t uct_dcx_layout_create(uct_iface_h iface,
                                                  size_t max_pieces,
                                                  uct_mem_h *memh_p)
{
    uct_dcx_queues_t *queues = ucs_derived_of(iface, uct_dcx_queues_t);
    uct_dcx_mem_layout_t *layout;
    uct_dcx_md_t *md;
    ucs_status_t status;

    if ((iface == NULL) || !uct_dcx_is_md(queues->super.md)) {
        ucs_error("uct_dcx_layout_create: iface is not an interface of dcx");
        return UCS_ERR_INVALID_PARAM;
    }

    if (max_pieces == 0) {
        ucs_error("uct_dcx_layout_create: max_pieces is 0");
        return UCS_ERR_INVALID_PARAM;
    }

    md     = ucs_derived_of(queues->super.md, uct_dcx_md_t);
    status = uct_dcx_queues_open_keys(queues);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_mem_layout_create(md, max_pieces, &layout);
    if (status == UCS_OK) {
        *memh_p = layout->mem;
    }
    return status;
}


/* --- description ---------------------------------------------------------- */

/* Converts an entry to @run; in a list it has one block. Returns NULL, or an
 * error text. */
static const char *uct_dcx_block_run(const uct_dcx_block_t *block,
                                     size_t repeat, uct_dcx_sgl_run_t *run)
{
    *run = (uct_dcx_sgl_run_t){
        .addr   = block->address,
        .bytes  = block->length,
        .stride = block->length,
        .count  = repeat,
    };
    return ((repeat > 1) &&
            __builtin_add_overflow(block->length, block->skip, &run->stride)) ?
               "skip and length exceed 64 bits" :
               NULL;
}


/* Returns non-zero if the device repeats blocks over the memory of @memh. */
static int uct_dcx_block_is_repeatable(uct_mem_h memh)
{
    const uct_dcx_mem_t *mem = memh;

    return (mem == NULL) || (mem->md == NULL) || !uct_dcx_mem_is_layout(memh) ||
           mem->md->dev.umr.has_nests;
}


/* Returns non-zero if the device describes a repeated block as one piece, for
 * any @repeat. */
static int uct_dcx_block_is_round(const uct_dcx_block_t *block, size_t repeat)
{
    uct_dcx_sgl_run_t run;

    return (uct_dcx_block_run(block, repeat, &run) == NULL) &&
           uct_dcx_sgl_has_rounds(&run, 1) &&
           uct_dcx_block_is_repeatable(block->memh);
}


/* Returns the pieces of a block: one for each UCT_DCX_SGL_MAX_PIECE begun. */
static size_t uct_dcx_block_parts(const uct_dcx_block_t *block)
{
    return (block->length / UCT_DCX_SGL_MAX_PIECE) +
           ((block->length % UCT_DCX_SGL_MAX_PIECE) != 0);
}


UCT_DCX_EXPORT size_t
uct_dcx_layout_pieces(const uct_dcx_layout_params_t *params)
{
    const uct_dcx_block_t *block = params->blocks;
    size_t num = 0, parts = 0;
    int has_rounds = 1;
    size_t pieces;

    for (; block < params->blocks + params->num; ++block) {
        if (block->length > 0) {
            num++;
            parts += uct_dcx_block_parts(block);
            has_rounds = has_rounds &&
                         uct_dcx_block_is_round(block, params->repeat);
        }
    }

    if ((num > 0) && has_rounds) {
        return num + 1;
    }

    return __builtin_mul_overflow(parts, params->repeat, &pieces) ? SIZE_MAX :
                                                                    pieces;
}


/* Converts UCT_MD_MEM_ACCESS_* to IBV_ACCESS_*; 0: use by this process alone */
static uint32_t uct_dcx_layout_access(uint64_t access)
{
    if (access == 0) {
        return IBV_ACCESS_LOCAL_WRITE;
    }

    return ((access & UCT_MD_MEM_ACCESS_LOCAL_WRITE) ? IBV_ACCESS_LOCAL_WRITE :
                                                       0) |
           ((access & UCT_MD_MEM_ACCESS_REMOTE_GET) ? IBV_ACCESS_REMOTE_READ :
                                                      0) |
           ((access & UCT_MD_MEM_ACCESS_REMOTE_PUT) ?
                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE :
                0);
}


/* Checks parameters other than blocks. Returns NULL, or an error text. */
static const char *
uct_dcx_layout_check_params(const uct_dcx_layout_params_t *params,
                            size_t pieces)
{
    return (params->repeat == 0) ?
               "repeat is 0" :
           (params->num == 0) ?
               "num is 0" :
           (params->access & ~UCT_DCX_LAYOUT_ACCESS) ?
               "access has flags other than puts, gets and local use" :
           (pieces == 0) ? "blocks: all lengths are 0" :
                           NULL;
}


static ucs_status_t
uct_dcx_layout_add_blocks(uct_dcx_mem_layout_t *layout,
                          const uct_dcx_layout_params_t *params)
{
    const uct_dcx_block_t *block;
    uct_dcx_sgl_run_t run;
    const char *fault;
    size_t i;

    for (i = 0; i < params->num; ++i) {
        block = &params->blocks[i];
        if (block->length == 0) {
            continue;
        }

        fault = uct_dcx_block_run(block, params->repeat, &run);
        if (fault == NULL) {
            fault = uct_dcx_mem_layout_add(layout, block->memh, &run);
        }
        if (fault != NULL) {
            ucs_error("uct_dcx_layout_set: params->blocks[%zu] (address 0x%lx, "
                      "length %zu, skip %zu, memh %p; repeat %zu): %s",
                      i, block->address, block->length, block->skip,
                      block->memh, params->repeat, fault);
            return UCS_ERR_INVALID_PARAM;
        }
    }
    return UCS_OK;
}


UCT_DCX_EXPORT ucs_status_t
uct_dcx_layout_set(uct_mem_h memh, const uct_dcx_layout_params_t *params)
{
    uct_dcx_mem_layout_t *layout = uct_dcx_mem_layout_of(memh);
    ucs_status_t status;
    const char *fault;
    size_t pieces;

    if (layout == NULL) {
        ucs_error("uct_dcx_layout_set: memh %p is not a layout", memh);
        return UCS_ERR_INVALID_PARAM;
    }

    pieces = uct_dcx_layout_pieces(params);
    fault  = uct_dcx_layout_check_params(params, pieces);
    if (fault != NULL) {
        ucs_error("uct_dcx_layout_set: params->%s", fault);
        return UCS_ERR_INVALID_PARAM;
    }

    if (pieces > layout->max) {
        ucs_error("uct_dcx_layout_set: params->blocks: %zu pieces exceed the "
                  "%zu that the layout was created for",
                  pieces, layout->max);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_mem_layout_begin(layout, uct_dcx_layout_access(params->access));
    status = uct_dcx_layout_add_blocks(layout, params);
    return (status == UCS_OK) ? uct_dcx_mem_layout_commit(layout) : status;
}


/* --- queries -------------------------------------------------------------- */

UCT_DCX_EXPORT ucs_status_t uct_dcx_layout_test(uct_mem_h memh)
{
    uct_dcx_mem_layout_t *layout = uct_dcx_mem_layout_of(memh);

    if (layout == NULL) {
        ucs_error("uct_dcx_layout_test: memh %p is not a layout", memh);
        return UCS_ERR_INVALID_PARAM;
    }
    return uct_dcx_mem_layout_test(layout);
}


UCT_DCX_EXPORT size_t uct_dcx_layout_length(uct_mem_h memh)
{
    const uct_dcx_mem_layout_t *layout = uct_dcx_mem_layout_of(memh);

    return (layout == NULL) ? 0 : layout->length;
}


UCT_DCX_EXPORT ucs_status_t uct_dcx_layout_query(uct_md_h md,
                                                 uct_dcx_layout_stats_t *stats)
{
    uct_dcx_keys_stats_t keys;

    if (!uct_dcx_is_md(md)) {
        ucs_error("uct_dcx_layout_query: md is not a memory domain of dcx");
        return UCS_ERR_INVALID_PARAM;
    }

    uct_dcx_keys_query(ucs_derived_of(md, uct_dcx_md_t)->keys, &keys);
    *stats = (uct_dcx_layout_stats_t){
        .hits        = keys.hits,
        .misses      = keys.misses,
        .evictions   = keys.evictions,
        .exhausted   = keys.exhausted,
        .invalidated = keys.invalidated,
        .failures    = keys.failures,
        .sets        = keys.sets,
        .doorbells   = keys.doorbells,
        .num_keys    = keys.num_keys,
        .num_layouts = keys.num_set,
    };
    return UCS_OK;
}


/* --- lists ---------------------------------------------------------------- */

static int uct_dcx_list_is_ours(uct_ep_h ep, const char *name)
{
    if (ep->iface->ops.ep_fence == uct_dcx_ep_fence) {
        return 1;
    }
    ucs_error("%s: ep is not of dcx", name);
    return 0;
}


UCT_DCX_EXPORT ucs_status_t uct_dcx_put_sgl_zcopy(
    uct_ep_h ep, void *const *buffers, const size_t *lengths,
    uct_mem_h const *memhs, const uint64_t *remote_addrs,
    uct_rkey_t const *rkeys, const size_t *counts, const size_t *strides,
    size_t count, uct_completion_t *comp)
{
    return uct_dcx_list_is_ours(ep, "uct_dcx_put_sgl_zcopy") ?
               uct_dcx_ep_put_sgl_zcopy(ep, buffers, lengths, memhs,
                                        remote_addrs, rkeys, counts, strides,
                                        count, comp) :
               UCS_ERR_INVALID_PARAM;
}


UCT_DCX_EXPORT ucs_status_t uct_dcx_get_sgl_zcopy(
    uct_ep_h ep, void *const *buffers, const size_t *lengths,
    uct_mem_h const *memhs, const uint64_t *remote_addrs,
    uct_rkey_t const *rkeys, const size_t *counts, const size_t *strides,
    size_t count, uct_completion_t *comp)
{
    return uct_dcx_list_is_ours(ep, "uct_dcx_get_sgl_zcopy") ?
               uct_dcx_ep_get_sgl_zcopy(ep, buffers, lengths, memhs,
                                        remote_addrs, rkeys, counts, strides,
                                        count, comp) :
               UCS_ERR_INVALID_PARAM;
}


UCT_DCX_EXPORT size_t uct_dcx_max_sgl_count(uct_ep_h ep)
{
    return uct_dcx_list_is_ours(ep, "uct_dcx_max_sgl_count") ?
               uct_dcx_list_max_ep(ep) :
               0;
}
