/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The table of dcx_view_ops.h, the options, the memory type of views, and the
 * record of what a thread opens for UCP.
 */
#include "dcx_view.h"
#include "dcx_view_config.h"
#include "dcx_view_memory.h"
#include "uct/dcx/dcx_ext.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>


enum {
    UCT_DCX_VIEW_WATCH_MAX = 64 /* UCP has no more domains (UCP_MAX_MDS) */
};


static uct_dcx_view_policy_t uct_dcx_view_policy;
static size_t uct_dcx_view_min_length, uct_dcx_view_min_block; /* as set */
static unsigned uct_dcx_view_max;
static pthread_once_t uct_dcx_view_once = PTHREAD_ONCE_INIT;


/* --- the type of memory --------------------------------------------------- */

/* Adds the memory types that a domain of @component can have memory of. Domains
 * that cannot be opened have none. */
static uint64_t uct_dcx_view_md_types(uct_component_h component,
                                      const char *name)
{
    uint64_t types = 0;
    uct_md_config_t *config;
    uct_md_attr_t attr;
    uct_md_h md;

    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
        return 0;
    }

    if (uct_md_open(component, name, config, &md) == UCS_OK) {
        if (uct_md_query(md, &attr) == UCS_OK) {
            types = attr.cap.reg_mem_types | attr.cap.alloc_mem_types |
                    attr.cap.access_mem_types | attr.cap.detect_mem_types;
        }
        uct_md_close(md);
    }
    uct_config_release(config);
    return types;
}


/* Returns 1 for components whose domains are adapters: their types are those of
 * peer memory, and opening them takes long. */
static int uct_dcx_view_is_adapter(const char *name)
{
    static const char *const names[] = {"dcx", "ib", "gga"};
    unsigned i;

    for (i = 0; i < ucs_static_array_size(names); ++i) {
        if (!strcmp(name, names[i])) {
            return 1;
        }
    }
    return 0;
}


/* Returns the memory types of the domains of a component. */
static uint64_t uct_dcx_view_component_types(uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT,
    };
    uint64_t types = 0;
    unsigned i;

    if ((uct_component_query(component, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0) || uct_dcx_view_is_adapter(attr.name)) {
        return 0;
    }

    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count,
                               sizeof(*attr.md_resources));
    if ((attr.md_resources != NULL) &&
        (uct_component_query(component, &attr) == UCS_OK)) {
        for (i = 0; i < attr.md_resource_count; ++i) {
            types |= uct_dcx_view_md_types(component,
                                           attr.md_resources[i].md_name);
        }
    }
    free(attr.md_resources);
    return types;
}


/* Returns the memory types that this process may have, or that adapters can
 * register. */
static uint64_t uct_dcx_view_used_types(void)
{
    uct_component_h *components;
    uint64_t types = uct_dcx_ext.peer_types();
    unsigned num, i;

    if (uct_query_components(&components, &num) != UCS_OK) {
        return types;
    }

    for (i = 0; i < num; ++i) {
        types |= uct_dcx_view_component_types(components[i]);
    }
    uct_release_component_list(components);
    return types;
}


/* Picks a memory type that the processor cannot access, that nothing here
 * serves, and that UCP takes without looking for whole allocations. It is the
 * same in all processes of a job if their nodes are alike. Returns
 * UCS_MEMORY_TYPE_UNKNOWN if none is free. */
static ucs_memory_type_t uct_dcx_view_pick_type(void)
{
    static const ucs_memory_type_t types[] = {UCS_MEMORY_TYPE_ROCM,
                                              UCS_MEMORY_TYPE_CUDA_MANAGED};
    uint64_t used                          = uct_dcx_view_used_types();
    unsigned i;

    for (i = 0; i < ucs_static_array_size(types); ++i) {
        if (!(used & UCS_BIT(types[i]))) {
            return types[i];
        }
    }
    return UCS_MEMORY_TYPE_UNKNOWN;
}


/* --- options -------------------------------------------------------------- */

/* Raises @length to @most, a device's need, if its @option is "auto". Any
 * thread may call it, while others read the length. */
static void uct_dcx_view_raise(size_t *length, size_t most, size_t option)
{
    size_t seen = __atomic_load_n(length, __ATOMIC_RELAXED);

    while ((option == UCS_MEMUNITS_AUTO) && (seen < most) &&
           !__atomic_compare_exchange_n(length, &seen, most, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}


/* Raises the lengths to the needs of a domain, or to those that hold until one
 * is open. */
static void uct_dcx_view_raise_all(const uct_dcx_ext_attr_t *attr)
{
    uct_dcx_view_raise(&uct_dcx_view_policy.min_length, attr->min_length,
                       uct_dcx_view_min_length);
    uct_dcx_view_raise(&uct_dcx_view_policy.min_block, attr->min_block,
                       uct_dcx_view_min_block);
}


static void uct_dcx_view_set_policy(const uct_dcx_view_config_t *config,
                                    const uct_dcx_ext_attr_t *attr)
{
    static const uct_dcx_view_mode_t modes[] = {
        [UCS_NO]  = UCT_DCX_VIEW_OFF,
        [UCS_TRY] = UCT_DCX_VIEW_MPI,
        [UCS_YES] = UCT_DCX_VIEW_ON,
    };

    uct_dcx_view_min_length = config->min_length;
    uct_dcx_view_min_block  = config->min_block;
    uct_dcx_view_max        = config->max_views;
    uct_dcx_view_memory_allow(config->max_span);
    uct_dcx_view_policy = (uct_dcx_view_policy_t){
        .mode = modes[config->types],
        .min_length =
            (config->min_length == UCS_MEMUNITS_AUTO) ? 0 : config->min_length,
        .min_block =
            (config->min_block == UCS_MEMUNITS_AUTO) ? 0 : config->min_block,
        .min_sparse_block = config->min_sparse_block,
        .max_pieces       = attr->max_pieces,
        .is_reported      = config->report,
    };
    uct_dcx_view_raise_all(attr);
}


static void uct_dcx_view_init(void)
{
    uct_dcx_view_config_t config;
    uct_dcx_ext_attr_t attr;

    if (uct_dcx_ucx_read_options(&config, uct_dcx_view_config_table, "DCX_") !=
        UCS_OK) {
        return;
    }

    uct_dcx_ext.query(NULL, &attr);
    if ((uct_dcx_view_config_check(&config) == UCS_OK) &&
        (config.types != UCS_NO)) {
        uct_dcx_view_set_policy(&config, &attr);
    }
    uct_dcx_view_policy.has_tags = attr.has_tags;
    ucs_config_parser_release_opts(&config, uct_dcx_view_config_table);
}


const uct_dcx_view_policy_t *uct_dcx_view_get_policy(void)
{
    pthread_once(&uct_dcx_view_once, uct_dcx_view_init);
    return &uct_dcx_view_policy;
}


/* --- record of a thread --------------------------------------------------- */

static __thread struct {
    int is_on;
    unsigned num;
    unsigned copy_eps;
    uct_md_h mds[UCT_DCX_VIEW_WATCH_MAX];
} uct_dcx_view_watch;


static void uct_dcx_view_watch_begin(void)
{
    uct_dcx_view_watch.is_on    = 1;
    uct_dcx_view_watch.num      = 0;
    uct_dcx_view_watch.copy_eps = 0;
}


static unsigned uct_dcx_view_watch_end(void **mds, unsigned max,
                                       unsigned *copy_eps_p)
{
    uct_dcx_ext_attr_t attr;
    unsigned i;

    uct_dcx_view_watch.is_on = 0;
    for (i = 0; i < ucs_min(uct_dcx_view_watch.num, max); ++i) {
        mds[i] = uct_dcx_view_watch.mds[i];
        uct_dcx_ext.query(mds[i], &attr);
        uct_dcx_view_raise_all(&attr);
    }
    *copy_eps_p = uct_dcx_view_watch.copy_eps;
    return uct_dcx_view_watch.num;
}


/* Records a domain that was opened (@is_open), or forgets one that is about to
 * be closed. */
static void uct_dcx_view_watch_md(uct_md_h md, int is_open)
{
    unsigned i = 0;

    if (is_open) {
        if (uct_dcx_view_watch.is_on &&
            (uct_dcx_view_watch.num < UCT_DCX_VIEW_WATCH_MAX)) {
            uct_dcx_view_watch.mds[uct_dcx_view_watch.num++] = md;
        }
        return;
    }

    while ((i < uct_dcx_view_watch.num) && (uct_dcx_view_watch.mds[i] != md)) {
        ++i;
    }
    if (i < uct_dcx_view_watch.num) {
        uct_dcx_view_watch.mds[i] =
            uct_dcx_view_watch.mds[--uct_dcx_view_watch.num];
    }
}


void uct_dcx_view_watch_copy_ep(void)
{
    uct_dcx_view_watch.copy_eps += uct_dcx_view_watch.is_on;
}


/* --- the table ------------------------------------------------------------ */

static void uct_dcx_view_begin(void)
{
    ucs_memory_type_t type = uct_dcx_view_pick_type();

    if (type != UCS_MEMORY_TYPE_UNKNOWN) {
        uct_dcx_ext.watch(uct_dcx_view_watch_md);
        uct_dcx_view_enable(uct_dcx_view_max, type);
    }
}


static const uct_dcx_view_policy_t *uct_dcx_view_ops_enable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)uct_dcx_view_get_policy();
    pthread_once(&once, uct_dcx_view_begin);
    return (uct_dcx_view_memory_type() == UCS_MEMORY_TYPE_UNKNOWN) ?
               NULL :
               &uct_dcx_view_policy;
}


__attribute__((visibility("default")))
const uct_dcx_view_ops_t uct_dcx_view_ops = {
    .version     = UCT_DCX_VIEW_OPS_VERSION,
    .policy      = uct_dcx_view_get_policy,
    .enable      = uct_dcx_view_ops_enable,
    .watch_begin = uct_dcx_view_watch_begin,
    .watch_end   = uct_dcx_view_watch_end,
    .open        = uct_dcx_view_open,
    .close       = uct_dcx_view_close,
    .ucp         = &ucp_inside_ops,
    .leave       = uct_dcx_view_leave,
};
