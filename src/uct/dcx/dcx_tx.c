/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Send completions, and the buffers of copied operations. Called by progress
 * (dcx_iface.c) in the interface's thread.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>


UCS_F_NOINLINE int16_t
uct_dcx_tx_share(const uct_dcx_iface_t *iface, const uct_dcx_dci_t *dci)
{
    const uct_dcx_pool_t *pool = &iface->dci.pool;
    unsigned ring              = dci->sq.ring;

    return iface->dci.throttled ? ucs_min(ring, pool->policy->share(pool)) :
                                  ring;
}


ucs_status_t uct_dcx_tx_no_resource(uct_dcx_ep_t *ep)
{
    if (ep->flags & UCT_DCX_EP_FLAG_FAILED) {
        return uct_dcx_ep_refuse(ep);
    }

    UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    return UCS_ERR_NO_RESOURCE;
}


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


/* The WQE at 'index' and all before it have completed. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_completed(uct_dcx_iface_t *iface, uct_dcx_dci_t *dci,
                     uint16_t index)
{
    uint16_t begin = dci->sq.ci;
    uint16_t until = uct_dcx_sq_end(&dci->sq, index);

    if (ucs_unlikely(!uct_dcx_dci_retire(dci, until))) {
        return;
    }

    uct_dcx_pending_spend(dci, until - begin);
    uct_dcx_pending_got_room(iface, dci);

    /* after the callbacks, so that an endpoint which goes on sending keeps
     * what it has, and nobody overtakes those who wait */
    if (ucs_unlikely(uct_dcx_dci_is_shared(dci))) {
        uct_dcx_spill_completed(iface, dci, begin);
    } else {
        uct_dcx_tx_settle(iface, dci);
    }
}


static UCS_F_ALWAYS_INLINE void
uct_dcx_tx_handle(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    uint16_t index     = be16toh(cqe->wqe_counter);
    uct_dcx_dci_t *dci = uct_dcx_dci_find(iface, &iface->dci,
                                          uct_dcx_cqe_qpn(cqe));

    if (ucs_unlikely(dci == NULL)) {
        uct_dcx_dci_drain_take(iface, cqe);
        return;
    }

    ucs_assertv(uct_dcx_dci_is_outstanding(dci, index),
                "DCI 0x%x: completion of WQE %u, but outstanding are %u-%u",
                dci->sq.qpn, index, dci->sq.ci, dci->sq.pi);

    if (ucs_likely(uct_dcx_cqe_opcode(cqe) == MLX5_CQE_REQ)) {
        uct_dcx_tx_completed(iface, dci, index);
    } else {
        uct_dcx_dci_fail(iface, dci, cqe);
    }
}


static UCS_F_ALWAYS_INLINE unsigned
uct_dcx_tx_poll_cq(uct_dcx_iface_t *iface, uct_dcx_cq_t *cq,
                   const struct mlx5_cqe64 *cqe)
{
    unsigned count = 0;

    do {
        /* before the callbacks: a reset looks at what is unread from here */
        uct_dcx_cq_advance(cq);
        uct_dcx_tx_handle(iface, cqe);
        cqe = uct_dcx_cq_next(cq);
    } while ((++count < iface->tx_max_poll) && (cqe != NULL));

    uct_dcx_cq_update(cq);
    return count;
}


unsigned uct_dcx_tx_poll_others(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned count         = 0;
    const struct mlx5_cqe64 *cqe;
    unsigned i;

    for (i = 1; i < set->num_groups; ++i) {
        cqe = uct_dcx_cq_next(&set->group[i].cq);
        if (cqe != NULL) {
            count += uct_dcx_tx_poll_cq(iface, &set->group[i].cq, cqe);
        }
    }
    return count;
}


unsigned
uct_dcx_tx_poll(uct_dcx_iface_t *iface, const struct mlx5_cqe64 *cqe)
{
    unsigned count = uct_dcx_tx_poll_cq(iface, &iface->dci.group[0].cq, cqe);

    /* after the completions, which make room for those who wait */
    return ucs_likely(iface->todo == 0) ? count :
                                          count + uct_dcx_iface_do(iface);
}
