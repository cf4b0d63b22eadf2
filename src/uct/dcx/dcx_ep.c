/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Endpoints: creation, end, and the operations that move no data. Called by
 * UCT in the interface's thread; the contract is in uct/api/uct.h.
 */
#include "dcx_dci_lost.h"
#include "dcx_tx.h"

#include <ucs/debug/log.h>


UCS_CLASS_INIT_FUNC(uct_dcx_ep_t, uct_dcx_iface_t *iface,
                    const uct_dcx_av_t *av)
{
    uct_dcx_place_t place;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);

    place = uct_dcx_dci_set_bind(iface);
    ucs_arbiter_group_init(&self->pending);
    self->av      = *av;
    self->dci     = place.dci;
    self->stream  = place.stream;
    self->last    = 0;
    self->flags   = 0;
    self->credits = 0;
    self->reserve = 0;
    self->pid     = 0;
    return UCS_OK;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_ep_t)
{
    uct_dcx_iface_t *iface = uct_dcx_ep_iface(self);
    uct_dcx_dci_t *dci;
    uint16_t index;

    uct_dcx_fc_ep_cleanup(iface, self);
    uct_dcx_pending_cleanup(self);
    if (iface->dci.failing != NULL) {
        uct_dcx_lost_forget(iface->dci.failing, self);
    }

    index = uct_dcx_ep_last_dci(self);
    if (index == UCT_DCX_NO_DCI) {
        return;
    }

    dci = &iface->dci.dci[index];
    if (!uct_dcx_ep_is_idle(self, dci)) {
        ucs_debug("ep %p is destroyed with operations outstanding on DCI 0x%x",
                  self, dci->sq.qpn);
    }
    uct_dcx_dci_leave(iface, dci, self);
}

UCS_CLASS_DEFINE(uct_dcx_ep_t, uct_base_ep_t);


UCS_CLASS_INIT_FUNC(uct_dcx_grh_ep_t, uct_dcx_iface_t *iface,
                    const uct_dcx_av_t *av, const uct_dcx_grh_t *grh)
{
    UCS_CLASS_CALL_SUPER_INIT(uct_dcx_ep_t, iface, av);

    if (uct_dcx_av_has_grh(av)) {
        self->super.flags |= UCT_DCX_EP_FLAG_GRH;
        self->grh          = *grh;
    }
    return UCS_OK;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_grh_ep_t)
{
    const unsigned bad   = UCT_DCX_EP_FLAG_FAILED | UCT_DCX_EP_FLAG_GRH;
    const unsigned flags = UCT_DCX_EP_FLAG_MUTED | bad;

    if ((self->super.flags & flags) == bad) {
        uct_dcx_port_forget(&uct_dcx_ep_iface(&self->super)->port, &self->grh);
    }
}

UCS_CLASS_DEFINE(uct_dcx_grh_ep_t, uct_dcx_ep_t);


UCS_CLASS_INIT_FUNC(uct_dcx_small_ep_t, uct_dcx_iface_t *iface,
                    const uct_dcx_av_t *av, const uct_dcx_grh_t *grh,
                    uint32_t seg_size)
{
    UCS_CLASS_CALL_SUPER_INIT(uct_dcx_grh_ep_t, iface, av, grh);

    self->super.super.flags |= UCT_DCX_EP_FLAG_SMALL;
    self->am_limit           = seg_size - sizeof(uct_dcx_am_hdr_t);
    return UCS_OK;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_small_ep_t)
{
}

UCS_CLASS_DEFINE(uct_dcx_small_ep_t, uct_dcx_grh_ep_t);


/* Spreads the pairs of targets, ours and the peer's, over the 16 bits. */
static uint16_t uct_dcx_ep_flow(const uct_dcx_iface_t *iface, uint32_t dctn)
{
    return ((dctn ^ (iface->rx.dct->qp_num << 8)) * 0x9e3779b1u) >> 16;
}


static inline uint32_t uct_dcx_ep_dctn(const uct_dcx_fc_origin_t *target)
{
    return ((uint32_t)target->dctn[0] << 16) |
           ((uint32_t)target->dctn[1] << 8) | target->dctn[2];
}


static inline void
uct_dcx_ep_complete_av(uct_dcx_av_t *av, const uct_dcx_fc_origin_t *target)
{
    av->key      = target->dc_key;
    av->dqp_dct |= htobe32(uct_dcx_ep_dctn(target));
}


/* The address vector to a target. Errors are logged. */
static ucs_status_t
uct_dcx_ep_route(uct_dcx_iface_t *iface, const uct_dcx_fc_origin_t *target,
                 uct_dcx_route_t *route, uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    ucs_status_t status;

    route->addr = &target->dev_addr;
    route->flow = uct_dcx_ep_flow(iface, uct_dcx_ep_dctn(target));
    status      = uct_dcx_port_make_av(&iface->port, route, av, grh);
    if (status == UCS_OK) {
        uct_dcx_ep_complete_av(av, target);
    }
    return status;
}


ucs_status_t
uct_dcx_ep_make_answer_av(uct_dcx_iface_t *iface,
                          const uct_dcx_fc_origin_t *target, uct_dcx_av_t *av,
                          uct_dcx_grh_t *grh)
{
    uct_dcx_route_t route = {.is_answer = 1};

    if (ucs_likely(uct_dcx_port_make_plain_av(&iface->port, &target->dev_addr,
                                              av))) {
        uct_dcx_ep_complete_av(av, target);
        return UCS_OK;
    }
    return uct_dcx_ep_route(iface, target, &route, av, grh);
}


static ucs_status_t
uct_dcx_ep_make_av(uct_dcx_iface_t *iface, const uct_dcx_fc_origin_t *target,
                   unsigned path_index, uct_dcx_av_t *av, uct_dcx_grh_t *grh)
{
    uct_dcx_route_t route = {.path_index = path_index};

    if ((path_index == 0) &&
        uct_dcx_port_make_plain_av(&iface->port, &target->dev_addr, av)) {
        uct_dcx_ep_complete_av(av, target);
        return UCS_OK;
    }
    return uct_dcx_ep_route(iface, target, &route, av, grh);
}


/* Where endpoints lie that have such flags */
static uct_dcx_slab_t *
uct_dcx_ep_slab(uct_dcx_iface_t *iface, unsigned flags)
{
    if (ucs_unlikely(flags & UCT_DCX_EP_FLAG_SMALL)) {
        return &iface->small_eps;
    }
    return (flags & UCT_DCX_EP_FLAG_GRH) ? &iface->grh_eps : &iface->eps;
}


void uct_dcx_ep_for_each(uct_dcx_iface_t *iface,
                         void (*visit)(void *ep, void *arg), void *arg)
{
    uct_dcx_slab_for_each(&iface->eps, iface, visit, arg);
    uct_dcx_slab_for_each(&iface->grh_eps, iface, visit, arg);
    uct_dcx_slab_for_each(&iface->small_eps, iface, visit, arg);
}


static ucs_status_t
uct_dcx_ep_new(uct_dcx_iface_t *iface, const uct_dcx_av_t *av,
               const uct_dcx_grh_t *grh, uint32_t seg_size,
               uct_dcx_ep_t **ep_p)
{
    unsigned flags = (uct_dcx_av_has_grh(av) ? UCT_DCX_EP_FLAG_GRH : 0) |
                     ((seg_size < iface->rx.seg_size) ?
                      UCT_DCX_EP_FLAG_SMALL : 0);
    uct_dcx_slab_t *slab = uct_dcx_ep_slab(iface, flags);
    uct_dcx_ep_t *ep     = uct_dcx_slab_get(slab);
    ucs_status_t status;

    if (ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    if (ucs_unlikely(flags & UCT_DCX_EP_FLAG_SMALL)) {
        status = UCS_CLASS_INIT(uct_dcx_small_ep_t, ep, iface, av, grh,
                                seg_size);
    } else if (flags & UCT_DCX_EP_FLAG_GRH) {
        status = UCS_CLASS_INIT(uct_dcx_grh_ep_t, ep, iface, av, grh);
    } else {
        status = UCS_CLASS_INIT(uct_dcx_ep_t, ep, iface, av);
    }
    if (status != UCS_OK) {
        uct_dcx_slab_put(slab, ep);
        return status;
    }

    *ep_p = ep;
    return UCS_OK;
}


ucs_status_t uct_dcx_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    uct_dcx_iface_t *iface = ucs_derived_of(params->iface, uct_dcx_iface_t);
    const uct_dcx_iface_addr_t *addr;
    uct_dcx_fc_origin_t target;
    uct_dcx_ep_t *ep;
    uct_dcx_grh_t grh;
    uct_dcx_av_t av;
    ucs_status_t status;

    UCT_EP_PARAMS_CHECK_DEV_IFACE_ADDRS(params);
    addr = (const uct_dcx_iface_addr_t*)params->iface_addr;
    if (!uct_dcx_addr_check(iface, addr, UCS_LOG_LEVEL_ERROR)) {
        return UCS_ERR_INVALID_ADDR;
    }

    target.dc_key   = addr->dc_key;
    target.dev_addr = *(const uct_dcx_dev_addr_t*)params->dev_addr;
    memcpy(target.dctn, addr->dctn, sizeof(target.dctn));
    status = uct_dcx_ep_make_av(iface, &target,
                                UCT_EP_PARAMS_GET_PATH_INDEX(params), &av,
                                &grh);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_ep_new(iface, &av, &grh, be32toh(addr->seg_size), &ep);
    if (status != UCS_OK) {
        return status;
    }

    ep->pid = be32toh(addr->pid);
    uct_dcx_fc_ep_init(ep, be16toh(addr->credits));
    *ep_p = &ep->super.super;
    return UCS_OK;
}


void uct_dcx_ep_destroy(uct_ep_h tl_ep)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_slab_t *slab   = uct_dcx_ep_slab(iface, ep->flags);

    if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_SMALL)) {
        UCS_CLASS_CLEANUP(uct_dcx_small_ep_t, ep);
    } else if (ep->flags & UCT_DCX_EP_FLAG_GRH) {
        UCS_CLASS_CLEANUP(uct_dcx_grh_ep_t, ep);
    } else {
        UCS_CLASS_CLEANUP(uct_dcx_ep_t, ep);
    }
    uct_dcx_slab_put(slab, ep);
}


ucs_status_t
uct_dcx_ep_flush(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;

    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL)) {
        return uct_dcx_ep_flush_cancel(ep, comp);
    }

    if (ep->dci == UCT_DCX_NO_DCI) {
        if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_FAILED)) {
            return uct_dcx_ep_refuse(ep);
        }
        if (!ucs_arbiter_group_is_empty(&ep->pending)) {
            return uct_dcx_tx_no_resource(ep); /* behind those in line */
        }
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    dci = &iface->dci.dci[ep->dci];
    if (uct_dcx_pending_is_blocked(ep) ||
        (!uct_dcx_dci_has_room(dci, ep) &&
         !(uct_dcx_ep_is_idle(ep, dci) &&
           ucs_arbiter_group_is_empty(&ep->pending)))) {
        return uct_dcx_tx_no_resource(ep); /* others may be in line for it */
    }

    if (uct_dcx_ep_is_idle(ep, dci)) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }
    return uct_dcx_ep_flush_wait(ep, dci, comp);
}


/* Writes and sends of one endpoint are executed in order anyhow: they share a
 * queue, or the earlier ones have completed; on a shared one, a stream of it.
 * A fence adds that what follows waits for earlier gets and atomics. */
ucs_status_t uct_dcx_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);

    if (ep->dci != UCT_DCX_NO_DCI) {
        uct_dcx_dci_fence(&iface->dci.dci[ep->dci], ep->stream);
    }

    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}


/* It needs no key. */
void uct_dcx_ep_post_probe(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci)
{
    uct_dcx_tx_t tx = {.opcode = MLX5_OPCODE_RDMA_WRITE};
    uct_dcx_wqe_t wqe;

    uct_dcx_tx_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, 0, 0);
    uct_dcx_tx_post(dci, &wqe, &tx);
}


ucs_status_t
uct_dcx_ep_check(uct_ep_h tl_ep, unsigned flags, uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;

    UCT_EP_KEEPALIVE_CHECK_PARAM(flags, comp);

    if ((ep->dci != UCT_DCX_NO_DCI) &&
        !uct_dcx_ep_is_idle(ep, &iface->dci.dci[ep->dci])) {
        return UCS_OK; /* what is on the wire tells as much */
    }

    dci = uct_dcx_tx_get_dci(iface, ep);
    if (dci == NULL) {
        return uct_dcx_tx_no_resource(ep);
    }

    uct_dcx_ep_post_probe(ep, dci);
    return UCS_OK;
}
