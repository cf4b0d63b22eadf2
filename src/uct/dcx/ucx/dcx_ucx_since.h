/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.14 and later: its types, and the first members of its tables. Additions
 * and changes after 1.14 are under the number of their version. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_SINCE_H
#define UCT_DCX_UCX_SINCE_H

#include <uct/api/version.h>

#include <ucs/memory/rcache.h>
#include <ucs/sys/math.h>
#include <ucs/sys/stubs.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>

#if UCT_VERNO_MINOR >= 17
#include <ucs/sys/ptr_arith.h>
#endif


/* A function that returns UCS_ERR_UNSUPPORTED, converted to any type */
#define UCT_DCX_UCX_UNSUPPORTED ((void *)ucs_empty_function_return_unsupported)


/* --- parameters ----------------------------------------------------------- */

#define UCT_DCX_UCX_HAS_DMABUF 1

#if UCT_VERNO_MINOR >= 15
#define UCT_DCX_UCX_PACK_INVALIDATE \
    (UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA | \
     UCT_MD_MKEY_PACK_FLAG_INVALIDATE_AMO)
#else
#define UCT_DCX_UCX_PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE
#endif

#if UCT_VERNO_MINOR >= 16
#define UCT_DCX_UCX_MKEY_PACK_ARG void *address, size_t length,

#define UCT_DCX_UCX_MKEY_PACK_RANGE(_address, _length) (_address), (_length),
#else
#define UCT_DCX_UCX_MKEY_PACK_ARG
#define UCT_DCX_UCX_MKEY_PACK_RANGE(_address, _length)
#endif

#if UCT_VERNO_MINOR >= 19
#define UCT_DCX_UCX_RKEY_UNPACK_ARG const uct_rkey_unpack_params_t *params,
#else
#define UCT_DCX_UCX_RKEY_UNPACK_ARG
#endif

#if UCT_VERNO_MINOR >= 21
typedef const uct_ep_invalidate_params_t *uct_dcx_ucx_ep_invalidate_arg_t;
#else
typedef unsigned uct_dcx_ucx_ep_invalidate_arg_t;
#endif


/* --- interfaces ----------------------------------------------------------- */

/* Interfaces need INTER_NODE since 1.18: UCP omits others from an address for
 * other nodes (UCP_WORKER_ADDRESS_FLAG_NET_ONLY), which Open MPI 5 requests. */
#if UCT_VERNO_MINOR >= 18
#define UCT_DCX_UCX_IFACE_FLAGS UCT_IFACE_FLAG_INTER_NODE
#else
#define UCT_DCX_UCX_IFACE_FLAGS 0
#endif


/* --- members of tables ---------------------------------------------------- */

#if UCT_VERNO_MINOR >= 16
#define UCT_DCX_UCX_RKEY_COMPARE .rkey_compare = uct_base_rkey_compare,
#define UCT_DCX_UCX_SOCKADDR
#define UCT_DCX_UCX_REACH \
    .iface_is_reachable_v2 = uct_dcx_ucx_since_is_reachable, \
    .ep_is_connected       = uct_dcx_ucx_since_ep_is_connected,
#else
#define UCT_DCX_UCX_RKEY_COMPARE
#define UCT_DCX_UCX_SOCKADDR \
    .is_sockaddr_accessible = ucs_empty_function_return_zero_int,
#if UCT_VERNO_MINOR >= 15
#define UCT_DCX_UCX_REACH \
    .iface_is_reachable_v2 = uct_base_iface_is_reachable_v2,
#else
#define UCT_DCX_UCX_REACH
#endif
#endif

/* iface_query_v2(): in UCX 1.20, and again since 1.22, with attributes of
 * lists */
#if UCT_VERNO_MINOR >= 22
#define UCT_DCX_UCX_QUERY_V2 .iface_query_v2 = uct_dcx_ucx_since_query_v2,
#elif UCT_VERNO_MINOR == 20
#define UCT_DCX_UCX_QUERY_V2 .iface_query_v2 = uct_iface_base_query_v2,
#else
#define UCT_DCX_UCX_QUERY_V2
#endif

/* memory and endpoints for a GPU, unsupported: UCP releases only memory
 * elements that were packed */
#if UCT_VERNO_MINOR >= 23
#define UCT_DCX_UCX_MEM_ELEM \
    .mem_elem_pack    = UCT_DCX_UCX_UNSUPPORTED, \
    .mem_elem_release = (uct_md_mem_elem_release_func_t)ucs_empty_function,
#define UCT_DCX_UCX_DEVICE_EP .ep_get_device_ep = UCT_DCX_UCX_UNSUPPORTED,
#elif UCT_VERNO_MINOR >= 21
#define UCT_DCX_UCX_MEM_ELEM  .mem_elem_pack = UCT_DCX_UCX_UNSUPPORTED,
#define UCT_DCX_UCX_DEVICE_EP .ep_get_device_ep = UCT_DCX_UCX_UNSUPPORTED,
#elif UCT_VERNO_MINOR == 20
#define UCT_DCX_UCX_MEM_ELEM
#define UCT_DCX_UCX_DEVICE_EP \
    .iface_mem_element_pack = UCT_DCX_UCX_UNSUPPORTED, \
    .ep_get_device_ep       = UCT_DCX_UCX_UNSUPPORTED,
#else
#define UCT_DCX_UCX_MEM_ELEM
#define UCT_DCX_UCX_DEVICE_EP
#endif

/* puts and gets of lists; the undelivered operations of a failed endpoint are
 * unsupported */
#if UCT_VERNO_MINOR >= 23
#define UCT_DCX_UCX_SGL_OPS(_put, _get) \
    .ep_put_sgl_zcopy = (_put), .ep_get_sgl_zcopy = (_get),
#define UCT_DCX_UCX_PURGE .ep_outstanding_purge = UCT_DCX_UCX_UNSUPPORTED,
#elif UCT_VERNO_MINOR >= 22
#define UCT_DCX_UCX_SGL_OPS(_put, _get) .ep_put_sgl_zcopy = (_put),
#define UCT_DCX_UCX_PURGE
#else
#define UCT_DCX_UCX_SGL_OPS(_put, _get)
#define UCT_DCX_UCX_PURGE
#endif


/* --- first members of tables ---------------------------------------------- */

#define UCT_DCX_UCX_MD_OPS \
    .query = uct_dcx_ucx_since_md_query, .mem_query = UCT_DCX_UCX_UNSUPPORTED, \
    .mem_reg            = uct_dcx_ucx_since_mem_reg, \
    .mkey_pack          = uct_dcx_ucx_since_mkey_pack, \
    .mem_attach         = UCT_DCX_UCX_UNSUPPORTED, \
    .detect_memory_type = UCT_DCX_UCX_UNSUPPORTED, \
    UCT_DCX_UCX_SOCKADDR UCT_DCX_UCX_MEM_ELEM

#define UCT_DCX_UCX_COMPONENT_OPS \
    .cm_open = UCT_DCX_UCX_UNSUPPORTED, .rkey_ptr = UCT_DCX_UCX_UNSUPPORTED, \
    .md_vfs_init = (uct_component_md_vfs_init_func_t)ucs_empty_function, \
    UCT_DCX_UCX_RKEY_COMPARE

#define UCT_DCX_UCX_IFACE_OPS \
    .ep_query            = UCT_DCX_UCX_UNSUPPORTED, \
    .ep_connect_to_ep_v2 = UCT_DCX_UCX_UNSUPPORTED, \
    UCT_DCX_UCX_REACH UCT_DCX_UCX_QUERY_V2 UCT_DCX_UCX_DEVICE_EP \
        UCT_DCX_UCX_PURGE


ucs_status_t uct_dcx_ucx_since_md_query(uct_md_h md, uct_md_attr_v2_t *attr);
ucs_status_t uct_dcx_ucx_since_mem_reg(uct_md_h md, void *address,
                                       size_t length,
                                       const uct_md_mem_reg_params_t *params,
                                       uct_mem_h *memh_p);
ucs_status_t uct_dcx_ucx_since_mkey_pack(
    uct_md_h md, uct_mem_h memh,
    UCT_DCX_UCX_MKEY_PACK_ARG const uct_md_mkey_pack_params_t *params,
    void *buffer);

#if UCT_VERNO_MINOR >= 16
int uct_dcx_ucx_since_is_reachable(
    const uct_iface_h iface, const uct_iface_is_reachable_params_t *params);
int uct_dcx_ucx_since_ep_is_connected(
    uct_ep_h ep, const uct_ep_is_connected_params_t *params);
#endif

#if UCT_VERNO_MINOR >= 22
ucs_status_t uct_dcx_ucx_since_query_v2(uct_iface_h iface,
                                        uct_iface_attr_v2_t *attr);
#endif

#endif
