/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCX 1.13: its types, and the first members of its tables. See dcx_ucx.h.
 */
#ifndef UCT_DCX_UCX_1_13_H
#define UCT_DCX_UCX_1_13_H

#include <ucs/sys/stubs.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>


typedef unsigned uct_dcx_ucx_ep_invalidate_arg_t;

#define UCT_DCX_UCX_HAS_DMABUF 0
#define UCT_DCX_UCX_RKEY_UNPACK_ARG
#define UCT_DCX_UCX_PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE
#define UCT_DCX_UCX_MKEY_PACK_RANGE(_address, _length)

#define UCT_DCX_UCX_MD_OPS \
    .query = uct_dcx_ucx_1_13_md_query, .mem_reg = uct_dcx_ucx_1_13_mem_reg, \
    .mkey_pack              = uct_dcx_ucx_1_13_mkey_pack, \
    .is_sockaddr_accessible = ucs_empty_function_return_zero_int, \
    .detect_memory_type     = ucs_empty_function_return_unsupported,

#define UCT_DCX_UCX_COMPONENT_OPS \
    .cm_open     = ucs_empty_function_return_unsupported, \
    .rkey_ptr    = ucs_empty_function_return_unsupported, \
    .md_vfs_init = (uct_component_md_vfs_init_func_t)ucs_empty_function,

#define UCT_DCX_UCX_IFACE_FLAGS 0
#define UCT_DCX_UCX_IFACE_OPS \
    .ep_query = (uct_ep_query_func_t)ucs_empty_function_return_unsupported,
#define UCT_DCX_UCX_SGL_OPS(_put, _get)


ucs_status_t uct_dcx_ucx_1_13_md_query(uct_md_h md, uct_md_attr_t *attr);
ucs_status_t uct_dcx_ucx_1_13_mem_reg(uct_md_h md, void *address, size_t length,
                                      unsigned flags, uct_mem_h *memh_p);
ucs_status_t uct_dcx_ucx_1_13_mkey_pack(uct_md_h md, uct_mem_h memh,
                                        const uct_md_mkey_pack_params_t *params,
                                        void *buffer);

#endif
