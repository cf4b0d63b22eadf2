/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface: opened and closed by UCT on a worker, addressed, progressed
 * and flushed. Its parts have files of their own (dcx_dci_set.c, dcx_rx.c,
 * dcx_cq.c, dcx_port.c); here they are put together, and here is the
 * transport's entry in UCT's list. Contract: uct/api/uct.h, uct/api/tl.h.
 */
#include "dcx_tx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <ucs/type/class.h>


static ucs_status_t uct_dcx_iface_get_device_address(uct_iface_h tl_iface,
                                                     uct_device_addr_t *addr)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);

    uct_dcx_port_get_address(&iface->port, (uct_dcx_dev_addr_t*)addr);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_iface_get_address(uct_iface_h tl_iface, uct_iface_addr_t *tl_addr)
{
    uct_dcx_iface_t *iface     = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    uct_dcx_iface_addr_t *addr = (uct_dcx_iface_addr_t*)tl_addr;
    uint32_t dctn              = iface->rx.dct->qp_num;

    addr->version  = UCT_DCX_ADDR_VERSION;
    addr->flags    = uct_dcx_iface_addr_flags(iface);
    addr->dctn[0]  = dctn >> 16;
    addr->dctn[1]  = dctn >> 8;
    addr->dctn[2]  = dctn;
    addr->dc_key   = htobe64(iface->rx.dc_key);
    addr->seg_size = htobe32(iface->rx.seg_size);
    addr->credits  = htobe16(iface->fc.sizes.initial);
    addr->pid      = htobe32(getpid());
    addr->check    = uct_dcx_iface_addr_hash(*addr);
    return UCS_OK;
}


/* The peer may be this process: a DCI reaches the DCT next to it. */
static int uct_dcx_iface_is_reachable(const uct_iface_h tl_iface,
                                      const uct_device_addr_t *tl_dev_addr,
                                      const uct_iface_addr_t *tl_iface_addr)
{
    uct_dcx_iface_t *iface             = ucs_derived_of(tl_iface,
                                                        uct_dcx_iface_t);
    const uct_dcx_dev_addr_t *dev_addr =
            (const uct_dcx_dev_addr_t*)tl_dev_addr;
    const uct_dcx_iface_addr_t *addr   =
            (const uct_dcx_iface_addr_t*)tl_iface_addr;

    if ((addr != NULL) &&
        !uct_dcx_addr_check(iface, addr, UCS_LOG_LEVEL_DEBUG)) {
        return 0;
    }

    return uct_dcx_port_is_reachable(&iface->port, dev_addr);
}


UCS_F_NOINLINE unsigned uct_dcx_iface_do(uct_dcx_iface_t *iface)
{
    unsigned count = 0;

    if (iface->todo & UCT_DCX_TODO_GROUPS) {
        count = uct_dcx_tx_poll_others(iface);
    }

    if (iface->todo & UCT_DCX_TODO_REFILL) {
        uct_dcx_rx_refill(iface);
    }

    if (iface->todo & UCT_DCX_TODO_FC) {
        uct_dcx_fc_progress(iface);
    }

    if (iface->todo & UCT_DCX_TODO_PENDING) {
        uct_dcx_pending_serve(iface);
    }

    if (iface->todo & UCT_DCX_TODO_TAILS) {
        uct_dcx_tx_do_tails(iface);
    }
    return count;
}


/* Most calls find nothing. Until one finds something, no function is called
 * and no register has to be saved. */
static unsigned uct_dcx_iface_progress(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&iface->rx_cq);

    return (cqe != NULL) ? uct_dcx_rx_poll(iface, cqe) :
                           uct_dcx_iface_progress_tx(iface);
}


/* Whether operations of the user are outstanding. A grant is none, and whom it
 * is for may be gone: on a queue of its own nobody waits for it. */
static int uct_dcx_iface_waits_for(const uct_dcx_dci_t *dci)
{
    return !uct_dcx_dci_is_idle(dci) &&
           ((dci->ep == NULL) || !(dci->ep->flags & UCT_DCX_EP_FLAG_GRANT));
}


static ucs_status_t uct_dcx_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                        uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    uct_dcx_dci_set_t *set = &iface->dci;
    int is_idle            = 1;
    unsigned i;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_tx_ask(&set->dci[set->created[i]]);
        is_idle &= !uct_dcx_iface_waits_for(&set->dci[set->created[i]]);
    }

    if (!is_idle || uct_dcx_fc_has_pending(iface)) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
        return UCS_INPROGRESS;
    }

    UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    return UCS_OK;
}


/* See uct_dcx_ep_fence(). An idle initiator has nothing to wait for. */
static ucs_status_t uct_dcx_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    uct_dcx_dci_set_t *set = &iface->dci;
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        if (!uct_dcx_dci_is_idle(dci)) {
            uct_dcx_dci_fence_all(dci, set->pool.num_streams);
        }
    }

    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}


static ucs_status_t
uct_dcx_iface_init_tx(uct_dcx_iface_t *iface,
                      const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_dcx_tx_init_mpool(iface);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_init(iface, config);
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&iface->tx_mp, 1);
    }
    return status;
}


static void uct_dcx_iface_cleanup_tx(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_cleanup(iface);
    ucs_mpool_cleanup(&iface->tx_mp, 1);
}


static ucs_status_t
uct_dcx_iface_check_params(uct_worker_h worker,
                           const uct_iface_params_t *params)
{
    UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                    "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error("dcx opens an interface on a device only");
        return UCS_ERR_UNSUPPORTED;
    }

    if (ucs_derived_of(worker, uct_priv_worker_t)->thread_mode ==
        UCS_THREAD_MODE_MULTI) {
        ucs_error("dcx does not work with a worker of several threads at a "
                  "time");
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}


static uct_iface_ops_t uct_dcx_iface_ops;
static uct_iface_internal_ops_t uct_dcx_iface_internal_ops;


static UCS_CLASS_INIT_FUNC(uct_dcx_iface_t, uct_md_h md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_dcx_iface_config_t *config =
            ucs_derived_of(tl_config, uct_dcx_iface_config_t);
    ucs_status_t status;

    status = uct_dcx_iface_check_params(worker, params);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_config_check(config);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_dcx_iface_ops,
                              &uct_dcx_iface_internal_ops, md, worker, params,
                              tl_config UCS_STATS_ARG(
                                      UCT_IFACE_PARAM_VALUE(params, stats_root,
                                                            STATS_ROOT, NULL))
                              UCS_STATS_ARG("dcx"));

    self->todo = 0;
    status = uct_dcx_port_init(&self->port, ucs_derived_of(md, uct_dcx_md_t),
                               params->mode.device.dev_name, config);
    if (status != UCS_OK) {
        return status;
    }

    uct_dcx_caps_init(&self->limits, config, &self->port);
    status = uct_dcx_config_check_device(config, self->limits.max_bb,
                                         self->port.dev);
    if (status != UCS_OK) {
        goto err_cleanup_port;
    }

    status = uct_dcx_event_init(self);
    if (status != UCS_OK) {
        goto err_cleanup_port;
    }

    status = uct_dcx_iface_init_tx(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_event;
    }

    status = uct_dcx_rx_init(self, config, params);
    if (status != UCS_OK) {
        goto err_cleanup_tx;
    }

    status = uct_dcx_fc_init(self, config);
    if (status != UCS_OK) {
        goto err_cleanup_rx;
    }

    /* nothing fails behind them, as they would need a cleanup */
    uct_dcx_slab_init(&self->eps, sizeof(uct_dcx_ep_t));
    uct_dcx_slab_init(&self->grh_eps, sizeof(uct_dcx_grh_ep_t));
    uct_dcx_slab_init(&self->small_eps, sizeof(uct_dcx_small_ep_t));

    ucs_debug("iface %p: %s:%u, DCT 0x%x, up to %u DCIs of %u blocks", self,
              uct_dcx_iface_name(self), self->port.num, self->rx.dct->qp_num,
              uct_dcx_pool_num_dci(&self->dci.pool),
              self->dci.dci[0].sq.mask + 1);
    return UCS_OK;

err_cleanup_rx:
    uct_dcx_rx_cleanup(self);
err_cleanup_tx:
    uct_dcx_iface_cleanup_tx(self);
err_cleanup_event:
    uct_dcx_event_cleanup(self);
err_cleanup_port:
    uct_dcx_port_cleanup(&self->port);
    return status;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_iface_t)
{
    size_t num_eps;

    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);

    uct_dcx_fc_stop(self);
    uct_dcx_rx_cleanup(self);
    uct_dcx_iface_cleanup_tx(self);
    uct_dcx_fc_cleanup(self);
    uct_dcx_event_cleanup(self);
    uct_dcx_port_cleanup(&self->port);

    num_eps = uct_dcx_slab_cleanup(&self->eps) +
              uct_dcx_slab_cleanup(&self->grh_eps) +
              uct_dcx_slab_cleanup(&self->small_eps);
    if (num_eps > 0) {
        ucs_warn("iface %p is closed with %zu endpoints left", self, num_eps);
    }
}

UCS_CLASS_DEFINE(uct_dcx_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_dcx_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t*,
                                 const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_dcx_iface_t, uct_iface_t);


static uct_iface_ops_t uct_dcx_iface_ops = {
    .ep_put_short             = uct_dcx_ep_put_short,
    .ep_put_bcopy             = uct_dcx_ep_put_bcopy,
    .ep_put_zcopy             = uct_dcx_ep_put_zcopy,
    .ep_get_bcopy             = uct_dcx_ep_get_bcopy,
    .ep_get_zcopy             = uct_dcx_ep_get_zcopy,
    .ep_am_short              = uct_dcx_ep_am_short,
    .ep_am_short_iov          = uct_dcx_ep_am_short_iov,
    .ep_am_bcopy              = uct_dcx_ep_am_bcopy,
    .ep_am_zcopy              = uct_dcx_ep_am_zcopy,
    .ep_atomic_cswap64        = uct_dcx_ep_atomic_cswap64,
    .ep_atomic_cswap32        = uct_dcx_ep_atomic_cswap32,
    .ep_atomic64_post         = uct_dcx_ep_atomic64_post,
    .ep_atomic32_post         = uct_dcx_ep_atomic32_post,
    .ep_atomic64_fetch        = uct_dcx_ep_atomic64_fetch,
    .ep_atomic32_fetch        = uct_dcx_ep_atomic32_fetch,
    .ep_pending_add           = uct_dcx_ep_pending_add,
    .ep_pending_purge         = uct_dcx_ep_pending_purge,
    .ep_flush                 = uct_dcx_ep_flush,
    .ep_fence                 = uct_dcx_ep_fence,
    .ep_check                 = uct_dcx_ep_check,
    .ep_create                = uct_dcx_ep_create,
    .ep_destroy               = uct_dcx_ep_destroy,
    .iface_flush              = uct_dcx_iface_flush,
    .iface_fence              = uct_dcx_iface_fence,
    .iface_progress_enable    = uct_base_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_dcx_iface_progress,
    .iface_event_fd_get       = uct_dcx_event_fd_get,
    .iface_event_arm          = uct_dcx_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_dcx_iface_t),
    .iface_query              = uct_dcx_caps_query,
    .iface_get_device_address = uct_dcx_iface_get_device_address,
    .iface_get_address        = uct_dcx_iface_get_address,
    .iface_is_reachable       = uct_dcx_iface_is_reachable
};

static uct_iface_internal_ops_t uct_dcx_iface_internal_ops = {
    .iface_estimate_perf = uct_dcx_caps_estimate_perf,
    .iface_vfs_refresh   = (uct_iface_vfs_refresh_func_t)ucs_empty_function,
    .ep_query            = (uct_ep_query_func_t)
                           ucs_empty_function_return_unsupported,
    .ep_invalidate       = uct_dcx_ep_invalidate
};


UCT_TL_DEFINE_ENTRY(&uct_dcx_component, dcx, uct_dcx_port_query_devices,
                    uct_dcx_iface_t, "DCX_", uct_dcx_iface_config_table,
                    uct_dcx_iface_config_t);

UCT_SINGLE_TL_INIT(&uct_dcx_component, dcx, ctor, , )
