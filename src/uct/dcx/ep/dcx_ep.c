/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints: creation, destruction, and the operations that move no data.
 * Called by UCT in the interface's thread; the contract is in uct/api/uct.h.
 */
#include "dcx_ep.h"
#include "dcx_ep_cancel.h"
#include "dcx_orphan.h"
#include "uct/dcx/fc/dcx_fc_grant.h"
#include "uct/dcx/net/dcx_addr.h"
#include "uct/dcx/queue/dcx_post.h"
#include "uct/dcx/recover/dcx_recover.h"
#include "uct/dcx/sched/dcx_ep_fail.h"
#include "uct/dcx/sched/dcx_fc_table.h"
#include "uct/dcx/sched/dcx_pending.h"

#include <ucs/debug/log.h>


/* Initialises an endpoint without a peer. */
static ucs_status_t uct_dcx_ep_init(uct_dcx_ep_t *ep, uct_dcx_queues_t *queues)
{
    ucs_status_t status;

    status = UCS_CLASS_INIT(uct_base_ep_t, &ep->super, &queues->super);
    if (status != UCS_OK) {
        return status;
    }

    ucs_arbiter_group_init(&ep->pending);
    memset(&ep->av, 0, sizeof(ep->av));
    ep->pid = 0;
    uct_dcx_tx_bind(&queues->dci, ep);
    uct_dcx_fc_init_ep(ep, 0);
    return UCS_OK;
}


static void uct_dcx_ep_cleanup(uct_dcx_ep_t *ep)
{
    uct_dcx_dci_set_t *set = uct_dcx_ep_dci_set(ep);

    uct_dcx_fc_table_leave(set->fc_table, ep);
    uct_dcx_pending_cleanup(ep);
    uct_dcx_orphan_mark(ep);
    uct_dcx_recover_leave(set, ep);
    uct_dcx_op_purge(&set->ops, ep, UCS_ERR_CANCELED);
    UCS_CLASS_CLEANUP(uct_base_ep_t, &ep->super);
}


const uct_dcx_fc_ep_ops_t uct_dcx_ep_fc_ops = {
    .init    = uct_dcx_ep_init,
    .cleanup = uct_dcx_ep_cleanup,
};


/* Returns the memory for endpoints with @flags. */
static uct_dcx_slab_t *uct_dcx_ep_slab(uct_dcx_queues_t *queues, unsigned flags)
{
    if (ucs_unlikely(flags & UCT_DCX_EP_FLAG_SMALL)) {
        return &queues->eps.small;
    }
    return (flags & UCT_DCX_EP_FLAG_GRH) ? &queues->eps.grh :
                                           &queues->eps.plain;
}


static ucs_status_t uct_dcx_ep_new(uct_dcx_queues_t *queues,
                                   const uct_dcx_av_t *av,
                                   const uct_dcx_grh_t *grh,
                                   const uct_dcx_iface_addr_t *addr,
                                   uct_dcx_ep_t **ep_p)
{
    uint32_t seg_size = be32toh(addr->seg_size);
    int has_tm        = (addr->flags & UCT_DCX_ADDR_FLAG_TM) != 0;
    size_t longest = has_tm ? queues->limits.seg_size : queues->limits.am_size;
    unsigned flags = (uct_dcx_av_has_grh(av) ? UCT_DCX_EP_FLAG_GRH : 0) |
                     ((seg_size < longest) ? UCT_DCX_EP_FLAG_SMALL : 0) |
                     (has_tm ? 0 : UCT_DCX_EP_FLAG_NO_TM);
    uct_dcx_slab_t *slab = uct_dcx_ep_slab(queues, flags);
    uct_dcx_ep_t *ep     = uct_dcx_slab_get(slab);
    ucs_status_t status;

    if (ep == NULL) {
        ucs_error("%s: out of memory for an endpoint", queues->port.name);
        return UCS_ERR_NO_MEMORY;
    }

    status = uct_dcx_ep_init(ep, queues);
    if (status != UCS_OK) {
        uct_dcx_slab_put(slab, ep);
        return status;
    }

    ep->av = *av;
    ep->flags |= flags;
    if (flags & UCT_DCX_EP_FLAG_GRH) {
        ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh = *grh;
    }
    if (ucs_unlikely(flags & UCT_DCX_EP_FLAG_SMALL)) {
        ucs_derived_of(ep, uct_dcx_small_ep_t)->am_limit =
            seg_size - sizeof(uct_dcx_am_hdr_t);
    }
    *ep_p = ep;
    return UCS_OK;
}


/* Returns 0 if one of a peer's addresses is damaged, or its options do not fit.
 * The first faults are logged, and each one that doubles their number. */
static int uct_dcx_ep_check_addr(const uct_dcx_queues_t *queues,
                                 const uct_dcx_packed_dev_addr_t *dev_addr,
                                 const uct_dcx_iface_addr_t *addr)
{
    static unsigned num_faults;
    const uct_dcx_addr_own_t own = uct_dcx_fc_addr_own(queues->fc);
    ucs_log_level_t level        = uct_dcx_fault_level(&num_faults);

    /* The version comes first, as the checksums contain it. */
    if (uct_dcx_addr_check(addr, &own, level)) {
        if (dev_addr->check == uct_dcx_dev_addr_crc(&dev_addr->addr)) {
            return 1;
        }
        ucs_log(level,
                "%s: the peer's device address is damaged or truncated: its "
                "checksum is 0x%x instead of 0x%x",
                queues->port.name, be32toh(dev_addr->check),
                be32toh(uct_dcx_dev_addr_crc(&dev_addr->addr)));
    }

    __atomic_fetch_add(&num_faults, 1, __ATOMIC_RELAXED);
    return 0;
}


ucs_status_t uct_dcx_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_dcx_queues_t *queues = ucs_derived_of(params->iface, uct_dcx_queues_t);
    const uct_dcx_packed_dev_addr_t *dev_addr;
    const uct_dcx_iface_addr_t *addr;
    uct_dcx_target_t target;
    uct_dcx_route_t route;
    uct_dcx_ep_t *ep;
    uct_dcx_grh_t grh;
    uct_dcx_av_t av;
    ucs_status_t status;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
    dev_addr = (const uct_dcx_packed_dev_addr_t *)params->dev_addr;
    addr     = (const uct_dcx_iface_addr_t *)params->iface_addr;
    if (!uct_dcx_ep_check_addr(queues, dev_addr, addr)) {
        return UCS_ERR_INVALID_ADDR;
    }

    target.dc_key   = addr->dc_key;
    target.dev_addr = dev_addr->addr;
    memcpy(target.dctn, addr->dctn, sizeof(target.dctn));
    route = (uct_dcx_route_t){
        .target     = &target,
        .own_dctn   = queues->rx.dctn,
        .path_index = UCT_EP_PARAMS_GET_PATH_INDEX(params),
    };
    status = uct_dcx_port_make_av(&queues->port, &route, &av, &grh);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_ep_new(queues, &av, &grh, addr, &ep);
    if (status != UCS_OK) {
        return status;
    }

    ep->pid = be32toh(addr->pid);
    uct_dcx_fc_init_ep(ep, be16toh(addr->credits));
    uct_dcx_fc_check_queue(queues->fc, 0);
    *ep_p = &ep->super.super;
    return UCS_OK;
}


void uct_dcx_ep_destroy(uct_ep_h tl_ep)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_slab_t *slab     = uct_dcx_ep_slab(queues, ep->flags);
    const unsigned flags     = UCT_DCX_EP_FLAG_MUTED | UCT_DCX_EP_FLAG_GRH;

    if ((ep->state == UCT_DCX_EP_FAILED) &&
        ((ep->flags & flags) == UCT_DCX_EP_FLAG_GRH)) {
        uct_dcx_port_forget(&queues->port,
                            &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh);
    }
    uct_dcx_ep_cleanup(ep);
    uct_dcx_slab_put(slab, ep);
}


ucs_status_t uct_dcx_ep_flush(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;

    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL)) {
        return uct_dcx_ep_flush_cancel(ep, comp);
    }

    if (ep->dci == UCT_DCX_NO_DCI) {
        if (ucs_unlikely(ep->state == UCT_DCX_EP_FAILED)) {
            return uct_dcx_ep_refuse(ep);
        }
        if (!ucs_arbiter_group_is_empty(&ep->pending)) {
            return uct_dcx_ep_no_resource(ep); /* its requests go first */
        }
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    dci = &queues->dci.dci[ep->dci];
    if (uct_dcx_pending_is_blocked(ep) ||
        (!uct_dcx_dci_may_post(dci, ep) &&
         !(uct_dcx_ep_is_idle(ep, dci) &&
           ucs_arbiter_group_is_empty(&ep->pending)))) {
        return uct_dcx_ep_no_resource(ep); /* the wait queue goes first */
    }

    if (!uct_dcx_ep_is_idle(ep, dci)) {
        return uct_dcx_ep_flush_wait(ep, dci, comp);
    }

    UCT_TL_EP_STAT_FLUSH(&ep->super);
    return UCS_OK;
}


int uct_dcx_ep_fits(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, size_t length)
{
    size_t max = ucs_derived_of(ep, uct_dcx_small_ep_t)->am_limit;

    if (length <= max) {
        return 1;
    }

    ucs_error("message of %zu bytes is too long for the peer, whose "
              "UCX_DCX_SEG_SIZE allows %zu: set the same value in all "
              "processes, or set UCX_ADDRESS_VERSION=v2",
              length, max);
    uct_dcx_tx_release(uct_dcx_ep_dci_set(ep), dci);
    return 0;
}


/* Orders later operations after earlier ones. All outstanding operations of an
 * endpoint are in one queue, or in one stream of a shared queue, and messages
 * stay in order anyway. The fence makes the next operation wait for earlier
 * gets and atomics; for all operations, if the port may reorder puts
 * (uct_dcx_port_t.is_ordered is 0). */
ucs_status_t uct_dcx_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);

    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_dci_fence(&queues->dci.dci[ep->dci], ep->stream);
    }

    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}


/* Called by UCP before it moves the endpoint to another configuration. */
int uct_dcx_ep_is_connected(uct_ep_h tl_ep,
                            const uct_device_addr_t *tl_dev_addr,
                            const uct_iface_addr_t *tl_iface_addr)
{
    const uct_dcx_dev_addr_t *dev_addr =
        (const uct_dcx_dev_addr_t *)tl_dev_addr;
    const uct_dcx_iface_addr_t *addr =
        (const uct_dcx_iface_addr_t *)tl_iface_addr;
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    const uct_dcx_grh_t *grh = uct_dcx_av_has_grh(&ep->av) ?
                                   &ucs_derived_of(ep, uct_dcx_grh_ep_t)->grh :
                                   NULL;

    return (uct_dcx_av_dctn(&ep->av) == uct_dcx_target_dctn(addr->dctn)) &&
           (ep->av.key == addr->dc_key) &&
           uct_dcx_port_is_av_to(&ep->av, grh, dev_addr);
}


ucs_status_t uct_dcx_ep_check(uct_ep_h tl_ep, unsigned flags,
                              uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;

    UCT_CHECK_PARAM(flags == 0, "unsupported flags 0x%x", flags);

    if ((comp == NULL) && (ep->dci != UCT_DCX_NO_DCI) &&
        !uct_dcx_ep_is_idle(ep, &queues->dci.dci[ep->dci])) {
        return UCS_OK; /* an outstanding operation checks the peer as well */
    }

    dci = uct_dcx_tx_get_dci(ep);
    if (dci == NULL) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_post_probe(ep, dci, comp);
    return (comp == NULL) ? UCS_OK : UCS_INPROGRESS;
}
