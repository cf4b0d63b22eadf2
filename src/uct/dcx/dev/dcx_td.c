/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Thread domains; see dcx_td.h.
 */
#include "dcx_td.h"

#include <string.h>
#include <ucs/debug/log.h>


void uct_dcx_td_init(uct_dcx_td_t *td, const uct_dcx_device_t *dev)
{
    struct ibv_td_init_attr td_attr            = {};
    struct ibv_parent_domain_init_attr pd_attr = {.pd = dev->pd};

    td->bf = (uct_dcx_bf_t){};
    td->pd = dev->pd;
    td->td = ibv_alloc_td(dev->ctx, &td_attr);
    if (td->td == NULL) {
        ucs_debug("%s: failed to allocate a thread domain, using a shared "
                  "doorbell register: %m",
                  uct_dcx_device_name(dev));
        return;
    }

    pd_attr.td = td->td;
    td->pd     = ibv_alloc_parent_domain(dev->ctx, &pd_attr);
    if (td->pd == NULL) {
        ucs_debug("%s: failed to allocate a parent domain, using a shared "
                  "doorbell register: %m",
                  uct_dcx_device_name(dev));
        ibv_dealloc_td(td->td);
        td->td = NULL;
        td->pd = dev->pd;
    }
}


/* libmlx5 returns its errors, and need not set errno. */
static int uct_dcx_td_check(const uct_dcx_td_t *td, const char *name, int error)
{
    if (error != 0) {
        ucs_warn("%s: failed to free the %s: %s",
                 ibv_get_device_name(td->td->context->device), name,
                 strerror(error));
    }
    return error;
}


void uct_dcx_td_cleanup(uct_dcx_td_t *td)
{
    if ((td->td == NULL) ||
        (uct_dcx_td_check(td, "parent domain", ibv_dealloc_pd(td->pd)) != 0)) {
        return;
    }

    uct_dcx_td_check(td, "thread domain", ibv_dealloc_td(td->td));
}
