/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * UCP makes endpoints that copy to and from memory of a type only with a domain
 * that registers host memory and that type, and an interface that moves both
 * (ucp_wireup_add_rma_lanes()). It reads the type from @access_mem_types
 * (ucp_worker_mem_type_eps_create()), where UCX 1.22 requires host memory, too.
 */
#include "dcx_view_md.h"
#include "views/view/dcx_view.h"
#include "views/view/dcx_view_config.h"

#include <ucs/sys/stubs.h>


static void uct_dcx_view_md_query(uct_md_h md, uct_dcx_ucx_md_attr_t *attr)
{
    uint64_t views = UCS_BIT(uct_dcx_view_memory_type());

    attr->reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST) | views;
    attr->access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) | views;
    attr->max_reg          = SIZE_MAX;
    memset(&attr->local_cpus, 0xff, sizeof(attr->local_cpus));
}


/* Returns a handle other than UCT_MEM_HANDLE_NULL; registers nothing. */
static ucs_status_t uct_dcx_view_md_mem_reg(uct_md_h md, void *address,
                                            size_t length, uint64_t flags,
                                            const uct_dcx_ucx_dmabuf_t *buf,
                                            uct_mem_h *memh_p)
{
    *memh_p = &uct_dcx_view_component;
    return UCS_OK;
}


static ucs_status_t
uct_dcx_view_rkey_unpack(uct_component_t *component, const void *buffer,
                         UCT_DCX_UCX_RKEY_UNPACK_ARG uct_rkey_t *rkey_p,
                         void **handle_p)
{
    *rkey_p   = 0;
    *handle_p = NULL;
    return UCS_OK;
}


static uct_dcx_ucx_md_ops_t uct_dcx_view_md_ops = {
    .super =
        {
            UCT_DCX_UCX_MD_OPS.close = (void *)ucs_empty_function,
            .mem_dereg = (void *)ucs_empty_function_return_success,
        },
    .query     = uct_dcx_view_md_query,
    .mem_reg   = uct_dcx_view_md_mem_reg,
    .mkey_pack = (void *)ucs_empty_function_return_success,
};


static ucs_status_t uct_dcx_view_md_open(uct_component_t *component,
                                         const char *md_name,
                                         const uct_md_config_t *config,
                                         uct_md_h *md_p)
{
    static uct_md_t md = {
        .ops       = &uct_dcx_view_md_ops.super,
        .component = &uct_dcx_view_component,
    };
    ucs_status_t status;

    status = uct_dcx_view_config_check(
        ucs_derived_of(config, uct_dcx_view_config_t));
    if (status == UCS_OK) {
        *md_p = &md;
    }
    return status;
}


static ucs_status_t
uct_dcx_view_query_md_resources(uct_component_t *component,
                                uct_md_resource_desc_t **resources_p,
                                unsigned *num_resources_p)
{
    /* Read the options: UCX warns of those that are not read. */
    (void)uct_dcx_view_get_policy();
    if (uct_dcx_view_memory_type() == UCS_MEMORY_TYPE_UNKNOWN) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }
    return uct_md_query_single_md_resource(component, resources_p,
                                           num_resources_p);
}


uct_component_t uct_dcx_view_component = {
    UCT_DCX_UCX_COMPONENT_OPS.query_md_resources =
        uct_dcx_view_query_md_resources,
    .md_open      = uct_dcx_view_md_open,
    .rkey_unpack  = uct_dcx_view_rkey_unpack,
    .rkey_release = (void *)ucs_empty_function_return_success,
    .name         = UCT_DCX_VIEW_TL,
    .md_config =
        {
            .name   = "dcx_view memory domain",
            .prefix = "DCX_",
            .table  = uct_dcx_view_config_table,
            .size   = sizeof(uct_dcx_view_config_t),
        },
    .cm_config = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list   = UCT_COMPONENT_TL_LIST_INITIALIZER(&uct_dcx_view_component),
    .flags     = 0,
};
