/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * What UCX 1.18 and later ones have in common, for the headers of each.
 */
#ifndef UCT_DCX_UCX_SINCE_H
#define UCT_DCX_UCX_SINCE_H

#include <ucs/memory/rcache.h>
#include <ucs/sys/ptr_arith.h>
#include <ucs/sys/stubs.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>


typedef ucs_rcache_config_t uct_dcx_ucx_rcache_config_t;

#define UCT_DCX_UCX_RCACHE_TABLE    ucs_config_rcache_table
#define UCT_DCX_UCX_RCACHE_DEFAULT  "n"
#define UCT_DCX_UCX_RCACHE_OPS      .merge = uct_dcx_ucx_since_rcache_merge,

/* A function of any form; UCX declares it without parameters. */
#define UCT_DCX_UCX_UNSUPPORTED     ((void*) \
                                     ucs_empty_function_return_unsupported)

#define UCT_DCX_UCX_SINCE_MD_OPS \
    .query              = uct_dcx_ucx_since_md_query, \
    .mem_query          = UCT_DCX_UCX_UNSUPPORTED, \
    .mem_reg            = uct_dcx_ucx_since_mem_reg, \
    .mkey_pack          = uct_dcx_ucx_since_mkey_pack, \
    .mem_attach         = UCT_DCX_UCX_UNSUPPORTED, \
    .detect_memory_type = UCT_DCX_UCX_UNSUPPORTED,

#define UCT_DCX_UCX_COMPONENT_OPS \
    .cm_open      = UCT_DCX_UCX_UNSUPPORTED, \
    .rkey_ptr     = UCT_DCX_UCX_UNSUPPORTED, \
    .rkey_compare = uct_base_rkey_compare, \
    .md_vfs_init  = (uct_component_md_vfs_init_func_t)ucs_empty_function,

#define UCT_DCX_UCX_SINCE_IFACE_OPS \
    .iface_vfs_refresh     = (uct_iface_vfs_refresh_func_t) \
                             ucs_empty_function, \
    .ep_query              = UCT_DCX_UCX_UNSUPPORTED, \
    .ep_connect_to_ep_v2   = UCT_DCX_UCX_UNSUPPORTED, \
    .iface_is_reachable_v2 = uct_dcx_ucx_since_is_reachable, \
    .ep_is_connected       = uct_dcx_ucx_since_ep_is_connected,


void uct_dcx_ucx_since_rcache_merge(void *context, ucs_rcache_t *rcache,
                                    void *arg, ucs_rcache_region_t *region);
ucs_status_t uct_dcx_ucx_since_md_query(uct_md_h md, uct_md_attr_v2_t *attr);
ucs_status_t
uct_dcx_ucx_since_mem_reg(uct_md_h md, void *address, size_t length,
                          const uct_md_mem_reg_params_t *params,
                          uct_mem_h *memh_p);
ucs_status_t
uct_dcx_ucx_since_mkey_pack(uct_md_h md, uct_mem_h memh, void *address,
                            size_t length,
                            const uct_md_mkey_pack_params_t *params,
                            void *buffer);
int uct_dcx_ucx_since_is_reachable(
        const uct_iface_h iface, const uct_iface_is_reachable_params_t *params);
int uct_dcx_ucx_since_ep_is_connected(
        uct_ep_h ep, const uct_ep_is_connected_params_t *params);

#endif
