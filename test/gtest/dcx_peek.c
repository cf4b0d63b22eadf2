/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Implements dcx_peek.h. Compiled as the transport is: offsets of members
 * depend on the headers of UCX and on its macros.
 */
#include "dcx_peek.h"

#include "uct/dcx/iface/dcx_iface.h"
#include "uct/dcx/mem/dcx_md.h"
#include "uct/dcx/mem/dcx_mem.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <endian.h>
#include <ucs/async/async.h>


void dcx_peek(uct_iface_h tl_iface, const void *iface_addr,
              struct dcx_view *view)
{
    const uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    const uct_dcx_iface_addr_t *addr = iface_addr;
    const uct_dcx_sq_t *sq           = &iface->super.dci.dci[0].txq.sq;

    view->ring   = sq->start;
    view->num_bb = sq->mask + 1;
    view->pi     = sq->pi;
    view->dbrec  = be32toh(*sq->dbrec);
    view->qpn    = sq->qpn;
    view->dctn   = ((uint32_t)addr->dctn[0] << 16) |
                 ((uint32_t)addr->dctn[1] << 8) | addr->dctn[2];
    view->dc_key    = be64toh(addr->dc_key);
    view->am_short  = iface->super.limits.am_short - sizeof(uint64_t);
    view->put_short = iface->super.limits.put_short;
    view->am_iov    = iface->super.limits.am_iov;
    view->rma_iov   = iface->super.limits.rma_iov;
}


void dcx_peek_seal_addr(void *iface_addr)
{
    uct_dcx_iface_addr_t *addr = iface_addr;

    addr->check = uct_dcx_addr_crc(addr);
}


struct ibv_qp *dcx_peek_dci(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->dci.dci[0].txq.qp;
}


struct ibv_qp *dcx_peek_dct(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->rx.dct;
}


const struct mlx5_cqe64 *dcx_peek_last_recv(uct_iface_h iface)
{
    uct_dcx_cq_t *cq = &ucs_derived_of(iface, uct_dcx_queues_t)->rx.cq;

    return uct_dcx_cq_entry(cq, cq->ci - 1);
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


int dcx_peek_is_connected(uct_ep_h ep, const void *dev_addr,
                          const void *iface_addr)
{
    uct_base_iface_t *iface = ucs_derived_of(ep->iface, uct_base_iface_t);

    return ucs_container_of(iface->internal_ops, uct_dcx_ucx_iface_ops_t, super)
        ->ep_is_connected(ep, dev_addr, iface_addr);
}


void dcx_peek_ep_sizes(struct dcx_ep_sizes *sizes)
{
    sizes->ep     = sizeof(uct_dcx_ep_t);
    sizes->grh_ep = sizeof(uct_dcx_grh_ep_t);
}


void dcx_peek_set_max_fc_entries(uct_iface_h iface, unsigned max)
{
    ucs_derived_of(iface, uct_dcx_iface_t)->fc.table.max = max;
}


void dcx_peek_set_max_answers(uct_iface_h iface, unsigned max)
{
    ucs_derived_of(iface, uct_dcx_iface_t)->fc.answers.data->quota = max;
}


unsigned dcx_peek_reminders(uct_ep_h tl_ep)
{
    const uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    const uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface,
                                                  uct_dcx_iface_t);

    return iface->fc.table.entries[ep->fc_entry].ticks;
}


void dcx_peek_set_request(uct_ep_h tl_ep, uint16_t number)
{
    const uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    const uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface,
                                                  uct_dcx_iface_t);

    iface->fc.table.entries[ep->fc_entry].seq = number;
}


unsigned dcx_peek_num_blocked(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_iface_t)->fc.table.num_blocked;
}


void dcx_peek_set_origin_gid(uct_iface_h iface, const uint8_t *gid)
{
    uct_dcx_fc_t *fc = &ucs_derived_of(iface, uct_dcx_iface_t)->fc;

    memcpy(fc->origin.fields.dev_addr.gid, gid, 16);
}


static struct {
    uct_dcx_neigh_resolve_t resolve;
    unsigned *count;
} dcx_peek_neigh;

static ucs_status_t dcx_peek_resolve(void *arg, const union ibv_gid *gid,
                                     uct_dcx_mac_t *mac)
{
    (*dcx_peek_neigh.count)++;
    return dcx_peek_neigh.resolve(arg, gid, mac);
}


void dcx_peek_count_neigh(uct_iface_h iface, unsigned *count)
{
    uct_dcx_neigh_t *neigh =
        &ucs_derived_of(iface, uct_dcx_queues_t)->port.neigh;

    *count                 = 0;
    dcx_peek_neigh.count   = count;
    dcx_peek_neigh.resolve = neigh->resolve;
    neigh->resolve         = dcx_peek_resolve;
}


int dcx_peek_has_fc(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_iface_t)->fc.enabled;
}


unsigned dcx_peek_granted(uct_iface_h iface)
{
    const uct_dcx_iface_t *self = ucs_derived_of(iface, uct_dcx_iface_t);

    return self->fc.bank.granted[0] + self->fc.bank.granted[1];
}


unsigned dcx_peek_rx_buffers(uct_iface_h tl_iface)
{
    const uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    return iface->super.rx.length - 1;
}


unsigned dcx_peek_credits(uct_ep_h tl_ep)
{
    const uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    const uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface,
                                                  uct_dcx_iface_t);

    return ep->credits + (((ep->fc_entry == UCT_DCX_EP_NO_FC_ENTRY) ||
                           uct_dcx_ep_has_requested(ep)) ?
                              0 :
                              iface->fc.table.entries[ep->fc_entry].reserve);
}


void dcx_peek_tick(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    iface->fc.next_tick = 0;
}


unsigned dcx_peek_num_tags(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->rx.num_tags;
}


void dcx_peek_devx(uct_iface_h iface, struct dcx_devx_objects *objects)
{
    const uct_dcx_queues_t *queues = ucs_derived_of(iface, uct_dcx_queues_t);

    objects->xrq     = queues->rx.xrq.obj.obj;
    objects->xrqn    = queues->rx.xrq.obj.number;
    objects->dct     = queues->rx.dct_obj.obj;
    objects->dctn    = queues->rx.dct_obj.number;
    objects->cmd     = queues->tm->cmd.obj.obj;
    objects->cmd_qpn = queues->tm->cmd.obj.number;
}


unsigned dcx_peek_num_posted(uct_iface_h iface)
{
    const uct_dcx_tm_t *tm = ucs_derived_of(iface, uct_dcx_queues_t)->tm;

    return tm->num_entries - 1 - tm->num_free;
}


uint16_t dcx_peek_num_list_ops(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_dcx_queues_t)->tm->cmd.sq.pi;
}


/* query_xrq_in and query_xrq_out of mlx5_ifc.h: xrqc is at byte 0x10, its
 * tag_matching_topology_context at 0x20. */
int dcx_peek_list_is_told(uct_iface_h iface)
{
    enum { QUERY_XRQ = 0x719, TOPOLOGY = 0x30 / 4 };
    const uct_dcx_queues_t *queues = ucs_derived_of(iface, uct_dcx_queues_t);
    const uint32_t in[4]           = {htobe32(QUERY_XRQ << 16), 0,
                                      htobe32(queues->rx.xrq.obj.number)};
    uint32_t out[0x150 / 4]        = {};

    return (mlx5dv_devx_obj_query(queues->rx.xrq.obj.obj, in, sizeof(in), out,
                                  sizeof(out)) == 0) &&
           ((be32toh(out[TOPOLOGY]) & UINT16_MAX) == queues->tm->next) &&
           ((be32toh(out[TOPOLOGY + 1]) >> 16) == queues->tm->synced);
}


void dcx_peek_layouts(uct_iface_h iface, struct dcx_layout_stats *stats)
{
    const uct_base_iface_t *base = ucs_derived_of(iface, uct_base_iface_t);
    const uct_dcx_md_t *md       = ucs_derived_of(base->md, uct_dcx_md_t);

    stats->hits   = md->keys->stats.hits;
    stats->misses = md->keys->stats.misses;
}


void dcx_peek_no_more_layouts(uct_iface_h iface)
{
    const uct_base_iface_t *base = ucs_derived_of(iface, uct_base_iface_t);

    ucs_derived_of(base->md, uct_dcx_md_t)->keys->status = UCS_ERR_IO_ERROR;
}


void dcx_peek_hold_layouts(uct_iface_h iface, int is_held)
{
    uct_md_h md          = ucs_derived_of(iface, uct_base_iface_t)->md;
    uct_dcx_keys_t *keys = ucs_derived_of(md, uct_dcx_md_t)->keys;

    ucs_spin_lock(&keys->lock);
    keys->status = is_held ? UCS_INPROGRESS : UCS_OK;
    ucs_spin_unlock(&keys->lock);
}


static struct {
    const uct_dcx_md_hook_t *real;
    void *address;
    size_t length;
    uct_mem_h *memh_p;
} dcx_peek_free;


/* Registers until it gets the freed handle again; handles that were freed
 * before come first. */
static void dcx_peek_free_handle(uct_dcx_md_t *md, uct_dcx_mem_t *mem)
{
    uct_mem_h memh = NULL;
    uct_mem_h others[64];
    unsigned num = 0;

    md->hook = dcx_peek_free.real;
    md->hook->handle(md, mem);
    while (
        (num < 64) &&
        (uct_md_mem_reg(&md->super, dcx_peek_free.address, dcx_peek_free.length,
                        UCT_MD_MEM_ACCESS_ALL, &memh) == UCS_OK) &&
        (memh != mem)) {
        others[num++] = memh;
    }

    *dcx_peek_free.memh_p = (memh == mem) ? memh : NULL;
    while (num > 0) {
        uct_md_mem_dereg(&md->super, others[--num]);
    }
}


void dcx_peek_register_at_free(uct_md_h tl_md, void *address, size_t length,
                               uct_mem_h *memh_p)
{
    static uct_dcx_md_hook_t hook;
    uct_dcx_md_t *md = ucs_derived_of(tl_md, uct_dcx_md_t);

    hook                  = *md->hook;
    hook.handle           = dcx_peek_free_handle;
    dcx_peek_free.real    = md->hook;
    dcx_peek_free.address = address;
    dcx_peek_free.length  = length;
    dcx_peek_free.memh_p  = memh_p;
    *memh_p               = NULL;
    md->hook              = &hook;
}


int dcx_peek_is_pinned(uct_mem_h memh)
{
    return uct_dcx_mem_is_pinned(memh);
}


uint32_t dcx_peek_lkey(uct_mem_h memh)
{
    return uct_dcx_mem_lkey(memh);
}


uct_rkey_t dcx_peek_rkey(uct_mem_h memh)
{
    const uct_dcx_mem_t *mem = memh;

    return mem->rkey;
}


uint64_t dcx_peek_network_flags(void)
{
    return UCT_DCX_UCX_IFACE_FLAGS;
}


void dcx_peek_dcis(uct_iface_h iface, struct dcx_dci_count *count)
{
    const uct_dcx_dci_set_t *set =
        &ucs_derived_of(iface, uct_dcx_queues_t)->dci;
    unsigned i;

    count->num_dci      = set->num_created;
    count->num_draining = 0;
    count->num_cqs      = set->num_groups;
    for (i = 0; i < set->num_created; ++i) {
        count->num_draining += (set->dci[set->created[i]].state ==
                                UCT_DCX_DCI_DRAINING);
    }
}


unsigned dcx_peek_place(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_dcx_ep_t)->dci;
}


void dcx_peek_no_more_dcis(uct_iface_h iface)
{
    ucs_derived_of(iface, uct_dcx_queues_t)->dci.is_short = 1;
}


void dcx_peek_block(uct_worker_h worker)
{
    UCS_ASYNC_BLOCK(ucs_derived_of(worker, uct_priv_worker_t)->async);
}


void dcx_peek_unblock(uct_worker_h worker)
{
    UCS_ASYNC_UNBLOCK(ucs_derived_of(worker, uct_priv_worker_t)->async);
}


ucs_status_t dcx_peek_reg_dmabuf(uct_md_h md, const struct dcx_dmabuf *buf,
                                 uct_mem_h *memh_p)
{
    const uct_dcx_ucx_dmabuf_t dmabuf = {.fd = buf->fd, .offset = buf->offset};

    return uct_dcx_ucx_md_ops(md)->mem_reg(
        md, buf->address, buf->length, UCT_MD_MEM_ACCESS_ALL, &dmabuf, memh_p);
}


int dcx_peek_has_dmabuf(uct_md_h md)
{
    uct_dcx_ucx_md_attr_t attr = {};

    uct_dcx_ucx_md_ops(md)->query(md, &attr);
    return attr.has_dmabuf;
}
