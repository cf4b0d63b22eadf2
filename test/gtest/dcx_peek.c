/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * See dcx_peek.h. Compiled as the transport is: structures of UCX depend on
 * the macros it was built with.
 */
#include "dcx_peek.h"

#include "uct/dcx/dcx_ep.h"
#include "uct/dcx/dcx_mem.h"


void dcx_peek(uct_iface_h tl_iface, const void *iface_addr,
              struct dcx_view *view)
{
    const uct_dcx_iface_t *iface     = ucs_derived_of(tl_iface,
                                                      uct_dcx_iface_t);
    const uct_dcx_iface_addr_t *addr = iface_addr;
    const uct_dcx_sq_t *sq           = &iface->dci.dci[0].sq;

    view->ring      = sq->start;
    view->num_bb    = sq->mask + 1;
    view->pi        = sq->pi;
    view->dbrec     = be32toh(*sq->dbrec);
    view->qpn       = sq->qpn;
    view->dctn      = ((uint32_t)addr->dctn[0] << 16) |
                      ((uint32_t)addr->dctn[1] << 8) | addr->dctn[2];
    view->dc_key    = be64toh(addr->dc_key);
    view->am_short  = iface->limits.am_short - sizeof(uint64_t);
    view->put_short = iface->limits.put_short;
    view->am_iov    = iface->limits.am_iov;
    view->rma_iov   = iface->limits.rma_iov;
}


void dcx_peek_seal_addr(void *iface_addr)
{
    uct_dcx_iface_addr_t *addr = iface_addr;

    addr->check = uct_dcx_iface_addr_hash(*addr);
}


struct ibv_qp *dcx_peek_dci(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_iface_t)->dci.dci[0].qp;
}


struct ibv_qp *dcx_peek_dct(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_iface_t)->rx.dct;
}


const struct mlx5_cqe64 *dcx_peek_last_recv(uct_iface_h iface)
{
    uct_dcx_cq_t *cq = &ucs_derived_of(iface, uct_dcx_iface_t)->rx_cq;

    return uct_dcx_cq_peek(cq, cq->ci - 1);
}


int dcx_peek_av(uct_ep_h tl_ep, uint8_t *av)
{
    const uct_dcx_ep_t *ep = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    int is_compact         = !(ep->flags & UCT_DCX_EP_FLAG_GRH);

    memcpy(av, &ep->av, sizeof(ep->av));
    if (is_compact) {
        memset(av + sizeof(ep->av), 0, sizeof(uct_dcx_grh_t));
    } else {
        memcpy(av + sizeof(ep->av),
               &ucs_derived_of(tl_ep, uct_dcx_grh_ep_t)->grh,
               sizeof(uct_dcx_grh_t));
    }
    return is_compact;
}


void dcx_peek_ep_sizes(struct dcx_ep_sizes *sizes)
{
    sizes->ep          = sizeof(uct_dcx_ep_t);
    sizes->grh_ep      = sizeof(uct_dcx_grh_ep_t);
    sizes->has_asserts = ENABLE_ASSERT;
}


void dcx_peek_set_max_asks(uct_iface_h iface, unsigned max)
{
    ucs_derived_of(iface, uct_dcx_iface_t)->fc.max_asks = max;
}


unsigned dcx_peek_num_blocked(uct_iface_h iface)
{
    const uct_dcx_fc_t *fc = &ucs_derived_of(iface, uct_dcx_iface_t)->fc;

    return fc->num_blocked + fc->num_unasked;
}


void dcx_peek_set_origin_gid(uct_iface_h iface, const uint8_t *gid)
{
    uct_dcx_fc_t *fc = &ucs_derived_of(iface, uct_dcx_iface_t)->fc;

    memcpy(fc->origin.fields.dev_addr.gid, gid, 16);
}


static struct {
    uct_dcx_neigh_resolve_t resolve;
    unsigned                *count;
} dcx_peek_neigh;

static ucs_status_t
dcx_peek_resolve(void *arg, const union ibv_gid *gid, uct_dcx_mac_t *mac)
{
    (*dcx_peek_neigh.count)++;
    return dcx_peek_neigh.resolve(arg, gid, mac);
}


void dcx_peek_count_neigh(uct_iface_h iface, unsigned *count)
{
    uct_dcx_neigh_t *neigh = &ucs_derived_of(iface,
                                             uct_dcx_iface_t)->port.neigh;

    *count                 = 0;
    dcx_peek_neigh.count   = count;
    dcx_peek_neigh.resolve = neigh->resolve;
    neigh->resolve         = dcx_peek_resolve;
}


int dcx_peek_has_fc(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_iface_t)->fc.enabled;
}


unsigned dcx_peek_credits(uct_ep_h tl_ep)
{
    const uct_dcx_ep_t *ep = ucs_derived_of(tl_ep, uct_dcx_ep_t);

    return ep->credits +
           ((ep->flags & UCT_DCX_EP_FLAG_FC_ASKED) ? 0 : ep->reserve);
}


unsigned dcx_peek_options(const void *config, const char **names, unsigned max)
{
    const uct_config_bundle_t *bundle = (const uct_config_bundle_t*)config - 1;
    const ucs_config_field_t *field;
    unsigned count                    = 0;

    for (field = bundle->table; field->name != NULL; ++field) {
        if (field->name[0] == '\0') {
            continue; /* a table of UCX in this one */
        }
        if (count < max) {
            names[count] = field->name;
        }
        ++count;
    }
    return count;
}


uint32_t dcx_peek_lkey(uct_mem_h memh)
{
    return uct_dcx_mem_lkey(memh);
}


uint32_t dcx_peek_rkey(uct_mem_h memh)
{
    return ((const uct_dcx_mem_t*)memh)->rkey;
}


void dcx_peek_dcis(uct_iface_h iface, struct dcx_dci_count *count)
{
    const uct_dcx_dci_set_t *set =
            &ucs_derived_of(iface, uct_dcx_iface_t)->dci;
    unsigned i;

    count->num_dci      = set->num_created;
    count->num_draining = 0;
    count->num_cqs      = set->num_groups;
    for (i = 0; i < set->num_created; ++i) {
        count->num_draining += (set->dci[set->created[i]].drain != NULL);
    }
}


unsigned dcx_peek_place(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_dcx_ep_t)->dci;
}


void dcx_peek_no_more_dcis(uct_iface_h iface)
{
    ucs_derived_of(iface, uct_dcx_iface_t)->dci.is_short = 1;
}


void dcx_peek_no_more_buffers(uct_iface_h iface)
{
    ucs_derived_of(iface, uct_dcx_iface_t)->rx.mp.data->quota = 0;
}


ucs_status_t dcx_peek_invalidate(uct_ep_h ep)
{
    return uct_ep_invalidate(ep, 0);
}
