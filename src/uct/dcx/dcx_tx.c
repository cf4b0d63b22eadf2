/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Initiators for those who send, the buffers of copied operations, and the ends
 * of operations. Send completions are in dcx_tx_poll.c. Called in the
 * interface's thread.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>


/* --- initiators ----------------------------------------------------------- */

uct_dcx_dci_t *uct_dcx_tx_attach(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_dci_t *dci;
    uint16_t index;

    ucs_assert(ep->dci == UCT_DCX_NO_DCI);
    if (!uct_dcx_pool_has_idle(pool)) {
        return uct_dcx_spill(iface, ep);
    }

    index = uct_dcx_pool_take(pool);
    dci   = &iface->dci.dci[index];
    if ((dci->qp == NULL) && (uct_dcx_dci_set_create(iface, index) == NULL)) {
        uct_dcx_pool_truncate(pool, index);
        return uct_dcx_spill(iface, ep);
    }

    if (iface->dci.throttled) {
        uct_dcx_sq_look(&dci->sq); /* others wait for its end */
    }

    dci->ep = ep;
    ep->dci = index;
    if (ep->flags & (UCT_DCX_EP_FLAG_INVALIDATED | UCT_DCX_EP_FLAG_FAILED)) {
        return uct_dcx_ep_attach_odd(iface, ep, dci);
    }
    return dci;
}


/* Has the next WQE ask for a completion, and all if others wait for their
 * ends. */
static void uct_dcx_tx_signal(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_sq_signal(&dci->sq);
    if (iface->dci.throttled) {
        uct_dcx_sq_look(&dci->sq);
    }
}


uct_dcx_dci_t *uct_dcx_tx_get_dci(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if (ep->dci != UCT_DCX_NO_DCI) {
        dci = &iface->dci.dci[ep->dci];
        dci = uct_dcx_dci_has_room(dci, ep) ? dci : NULL;
    } else if (ucs_arbiter_is_empty(&iface->dci.wait_dci)) {
        dci = uct_dcx_tx_attach(iface, ep);
    } else {
        return NULL; /* they go first */
    }

    if ((dci != NULL) && !uct_dcx_sq_is_clear(&dci->sq)) {
        uct_dcx_tx_signal(iface, dci);
    }
    return dci;
}


uct_dcx_dci_t *uct_dcx_tx_get_dci_am(uct_dcx_iface_t *iface, uct_dcx_ep_t *ep)
{
    uct_dcx_dci_t *dci;

    if ((ep->credits == 0) && (ep->flags & (UCT_DCX_EP_FLAG_FC_ASKED |
                                            UCT_DCX_EP_FLAG_FC_BLOCKED))) {
        uct_dcx_fc_wait(iface, ep);
        return NULL;
    }

    dci = uct_dcx_tx_get_dci(iface, ep);
    if ((ep->credits > 0) || (dci == NULL)) {
        return dci;
    }

    dci = uct_dcx_fc_used_up(iface, ep, dci);
    if (dci != NULL) {
        uct_dcx_tx_signal(iface, dci); /* a request was posted before */
    }
    return dci;
}


/* The room in an exclusive queue of which nothing was used. */
static int16_t
uct_dcx_tx_share(const uct_dcx_iface_t *iface, const uct_dcx_dci_t *dci)
{
    const uct_dcx_pool_t *pool = &iface->dci.pool;
    unsigned ring              = dci->sq.ring;

    return iface->dci.throttled ? ucs_min(ring, pool->policy->share(pool)) :
                                  ring;
}


uct_dcx_ep_t *uct_dcx_tx_detach(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_pool_t *pool = &iface->dci.pool;
    uct_dcx_sq_t *sq     = &dci->sq;
    uct_dcx_ep_t *ep     = dci->ep;

    if (uct_dcx_dci_is_shared(dci) ||
        !uct_dcx_pool_settle(pool, dci->index, uct_dcx_sq_used(sq))) {
        return NULL;
    }

    dci->turn++;
    dci->ep = NULL;
    sq->odd = 0;
    uct_dcx_sq_idle(sq);
    if (sq->limit < sq->ring) {
        sq->room = uct_dcx_tx_share(iface, dci);
        uct_dcx_sq_set_limit(sq, sq->room);
    }

    if (ep != NULL) {
        ep->dci = UCT_DCX_NO_DCI;
    }
    return ep;
}


void uct_dcx_tx_settle(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_ep_t *ep = uct_dcx_tx_detach(iface, dci);

    if ((ep != NULL) && !ucs_arbiter_group_is_empty(&ep->pending)) {
        uct_dcx_pending_lost_dci(iface, ep, dci);
    }
}


ucs_status_t uct_dcx_tx_no_resource(uct_dcx_ep_t *ep)
{
    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        return uct_dcx_ep_refuse(ep);
    }

    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}


ucs_status_t uct_dcx_tx_no_memory(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci)
{
    uct_dcx_tx_settle(iface, dci);
    return UCS_ERR_NO_MEMORY;
}


/* --- ends of operations --------------------------------------------------- */

void uct_dcx_tx_done_comp(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                          ucs_status_t status)
{
    if (op->comp != NULL) {
        uct_invoke_completion(op->comp, status);
    }
}


void uct_dcx_tx_done_desc(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                          ucs_status_t status)
{
    ucs_mpool_put_inline(op->buffer);
}


/* --- buffers -------------------------------------------------------------- */

static void
uct_dcx_tx_desc_init(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    uct_dcx_tx_desc_t *desc = obj;

    desc->lkey = uct_dcx_mem_lkey(memh);
}


ucs_status_t uct_dcx_tx_init_mpool(uct_dcx_iface_t *iface)
{
    /* no limit of its own: each buffer belongs to a WQE, of which there is a
     * limited number */
    uct_iface_mpool_config_t config = {.max_bufs = UINT_MAX, .bufs_grow = 0};

    UCS_STATIC_ASSERT(sizeof(uct_dcx_tx_desc_t) + sizeof(uct_dcx_am_hdr_t) <=
                      UCT_DCX_TX_PAYLOAD);
    return uct_iface_mpool_init(&iface->super, &iface->tx_mp,
                                UCT_DCX_TX_PAYLOAD + iface->limits.rma_bcopy,
                                UCT_DCX_TX_PAYLOAD, UCS_SYS_CACHE_LINE_SIZE,
                                &config, 64, uct_dcx_tx_desc_init,
                                "uct_dcx_tx_desc");
}
