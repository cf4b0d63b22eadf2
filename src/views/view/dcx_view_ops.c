/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of dcx_view_ops.h, the options, and what type of memory views are.
 */
#include "dcx_view.h"
#include "dcx_view_memory.h"
#include "uct/dcx/mem/dcx_md.h"
#include "uct/dcx/mem/dcx_mem_watch.h"
#include "uct/dcx/ucx/dcx_ucx.h"
#include "uct/dcx/strided/dcx_layout.h"

#include <pthread.h>
#include <string.h>


static uct_dcx_view_policy_t uct_dcx_view_policy;
static size_t uct_dcx_view_min_length, uct_dcx_view_min_block; /* or "auto" */
static unsigned uct_dcx_view_max;
static pthread_once_t uct_dcx_view_once = PTHREAD_ONCE_INIT;


static int uct_dcx_view_has_devices(uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };

    return (uct_component_query(component, &attr) == UCS_OK) &&
           !strncmp(attr.name, "rocm", strlen("rocm")) &&
           (attr.md_resource_count > 0);
}


/* A type that the processor cannot touch, and that no device here has: of those
 * that UCP takes without looking for whole allocations. It is the same in all
 * processes of a job, as their nodes are. */
static ucs_memory_type_t uct_dcx_view_pick_type(void)
{
    ucs_memory_type_t type = UCS_MEMORY_TYPE_ROCM;
    uct_component_h *components;
    unsigned num, i;

    if (uct_query_components(&components, &num) != UCS_OK) {
        return type;
    }

    for (i = 0; i < num; ++i) {
        if (uct_dcx_view_has_devices(components[i])) {
            type = UCS_MEMORY_TYPE_CUDA_MANAGED;
        }
    }
    uct_release_component_list(components);
    return type;
}


/* Returns the length of before a domain is open. */
static size_t uct_dcx_view_option(uct_dcx_threshold_t threshold, size_t option)
{
    return (option == UCS_MEMUNITS_AUTO) ? uct_dcx_profile_defaults[threshold] :
                                           option;
}


/* Raises a length that is "auto" to what the domain's device needs; by any
 * thread, while others read it. */
static void uct_dcx_view_raise(size_t *length, const uct_dcx_md_t *md,
                               uct_dcx_threshold_t threshold, size_t option)
{
    size_t most = md->dev.profile.thresholds[threshold];
    size_t seen = __atomic_load_n(length, __ATOMIC_RELAXED);

    while ((option == UCS_MEMUNITS_AUTO) && (seen < most) &&
           !__atomic_compare_exchange_n(length, &seen, most, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}


static unsigned uct_dcx_view_ops_watch_end(void **mds, unsigned max,
                                           unsigned *copy_eps_p)
{
    unsigned num = uct_dcx_mem_watch_end(mds, max, copy_eps_p);
    const uct_dcx_md_t *md;
    unsigned i;

    for (i = 0; i < ucs_min(num, max); ++i) {
        md = ucs_derived_of(mds[i], uct_dcx_md_t);
        uct_dcx_view_raise(&uct_dcx_view_policy.min_length, md,
                           UCT_DCX_THRESHOLD_LENGTH, uct_dcx_view_min_length);
        uct_dcx_view_raise(&uct_dcx_view_policy.min_block, md,
                           UCT_DCX_THRESHOLD_BLOCK, uct_dcx_view_min_block);
    }
    return num;
}


static void uct_dcx_view_init(void)
{
    static const uct_dcx_view_mode_t modes[] = {
        [UCS_NO]  = UCT_DCX_VIEW_OFF,
        [UCS_TRY] = UCT_DCX_VIEW_MPI,
        [UCS_YES] = UCT_DCX_VIEW_ON
    };
    ucs_config_field_t *table = uct_dcx_component.md_config.table;
    uct_dcx_md_config_t config;
    const uct_dcx_view_config_t *views = &config.views;

    if (uct_dcx_ucx_read_options(&config, table, "DCX_") != UCS_OK) {
        return;
    }

    if ((uct_dcx_view_config_check(views) == UCS_OK) &&
        (views->types != UCS_NO)) {
        uct_dcx_view_policy = (uct_dcx_view_policy_t){
            .mode             = modes[views->types],
            .min_length       = uct_dcx_view_option(UCT_DCX_THRESHOLD_LENGTH,
                                                    views->min_length),
            .min_block        = uct_dcx_view_option(UCT_DCX_THRESHOLD_BLOCK,
                                                    views->min_block),
            .min_sparse_block = views->min_sparse_block,
            .max_pieces       = (size_t)config.umr_max_entries +
                                UCT_DCX_LAYOUT_KLM_ALIGN,
            .is_reported      = views->report
        };
        uct_dcx_view_min_length = views->min_length;
        uct_dcx_view_min_block  = views->min_block;
        uct_dcx_view_memory_allow(views->max_span);
        uct_dcx_view_max = views->max_views;
    }
    ucs_config_parser_release_opts(&config, table);
}


static const uct_dcx_view_policy_t *uct_dcx_view_ops_policy(void)
{
    pthread_once(&uct_dcx_view_once, uct_dcx_view_init);
    return &uct_dcx_view_policy;
}


static void uct_dcx_view_begin(void)
{
    uct_dcx_view_enable(uct_dcx_view_max, uct_dcx_view_pick_type());
}


static const uct_dcx_view_policy_t *uct_dcx_view_ops_enable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)uct_dcx_view_ops_policy();
    pthread_once(&once, uct_dcx_view_begin);
    return &uct_dcx_view_policy;
}


_Static_assert(UCT_DCX_VIEW_OPS_MAX >= UCT_DCX_VIEW_MAX, "an index of each");

__attribute__((visibility("default")))
const uct_dcx_view_ops_t uct_dcx_view_ops = {
    .version           = UCT_DCX_VIEW_OPS_VERSION,
    .policy            = uct_dcx_view_ops_policy,
    .enable            = uct_dcx_view_ops_enable,
    .watch_begin       = uct_dcx_mem_watch_begin,
    .watch_end         = uct_dcx_view_ops_watch_end,
    .open              = uct_dcx_view_open,
    .close             = uct_dcx_view_close,
    .ep_config         = uct_dcx_ucx_ep_config,
    .worker_lock       = uct_dcx_ucx_worker_lock,
    .worker_unlock     = uct_dcx_ucx_worker_unlock,
    .worker_discount   = uct_dcx_ucx_worker_discount,
    .has_typed_handles = uct_dcx_ucx_has_typed_handles,
    .leave             = uct_dcx_view_leave
};
