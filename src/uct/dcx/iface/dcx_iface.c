/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The interface: opened and closed by UCT on a worker, addressed, progressed
 * and flushed. Its parts have their own files (dcx_dci_set.c, dcx_rx.c,
 * dcx_cq.c, dcx_port.c); this one connects them, and has the transport's entry
 * in UCT's list. Contract: uct/api/uct.h, uct/api/tl.h.
 */
#include "dcx_iface.h"
#include "dcx_caps.h"
#include "dcx_count.h"
#include "dcx_event.h"
#include "dcx_fatal.h"
#include "dcx_rx.h"
#include "dcx_tx_poll.h"
#include "dcx_vfs.h"
#include "uct/dcx/ep/dcx_ep.h"
#include "uct/dcx/ep/dcx_ep_cancel.h"
#include "uct/dcx/ep/dcx_list.h"
#include "uct/dcx/ep/dcx_orphan.h"
#include "uct/dcx/fc/dcx_fc_grant.h"
#include "uct/dcx/strided/dcx_mem_layout.h"
#include "uct/dcx/mem/dcx_mem_place.h"
#include "uct/dcx/queue/dcx_desc.h"
#include "uct/dcx/queue/dcx_signal.h"
#include "uct/dcx/recover/dcx_recover.h"
#include "uct/dcx/sched/dcx_pending.h"
#include "uct/dcx/tm/dcx_tm.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/sys/sys.h>
#include <ucs/type/class.h>


static ucs_status_t uct_dcx_iface_get_device_address(uct_iface_h tl_iface,
                                                     uct_device_addr_t *addr)
{
    uct_dcx_queues_t *queues       = ucs_derived_of(tl_iface, uct_dcx_queues_t);
    uct_dcx_packed_dev_addr_t *out = (uct_dcx_packed_dev_addr_t *)addr;

    uct_dcx_port_get_address(&queues->port, &out->addr);
    out->check = uct_dcx_dev_addr_crc(&out->addr);
    return UCS_OK;
}


static ucs_status_t uct_dcx_iface_get_address(uct_iface_h tl_iface,
                                              uct_iface_addr_t *tl_addr)
{
    uct_dcx_iface_t *iface     = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    const uct_dcx_rx_t *rx     = &iface->super.rx;
    uct_dcx_iface_addr_t *addr = (uct_dcx_iface_addr_t *)tl_addr;

    addr->version = UCT_DCX_ADDR_VERSION;
    addr->flags   = uct_dcx_fc_addr_own(&iface->fc).flags |
                  ((rx->num_tags > 0) ? UCT_DCX_ADDR_FLAG_TM : 0);
    addr->dc_key   = htobe64(rx->dc_key);
    addr->seg_size = htobe32(rx->seg_size);
    addr->credits  = htobe16(iface->fc.bank.base);
    addr->pid      = htobe32(getpid());
    uct_dcx_target_set_dctn(addr->dctn, rx->dctn);
    addr->check = uct_dcx_addr_crc(addr);
    return UCS_OK;
}


/* Returns non-zero if the peer is reachable. It may be this process: a DCI
 * reaches the DCT next to it. */
static int uct_dcx_iface_is_reachable(const uct_iface_h tl_iface,
                                      const uct_device_addr_t *tl_dev_addr,
                                      const uct_iface_addr_t *tl_iface_addr)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    const uct_dcx_packed_dev_addr_t *dev_addr =
        (const uct_dcx_packed_dev_addr_t *)tl_dev_addr;
    const uct_dcx_iface_addr_t *addr =
        (const uct_dcx_iface_addr_t *)tl_iface_addr;
    const uct_dcx_addr_own_t own = uct_dcx_fc_addr_own(&iface->fc);

    if ((addr != NULL) &&
        !uct_dcx_addr_check(addr, &own, UCS_LOG_LEVEL_DEBUG)) {
        return 0;
    }

    return (dev_addr->check == uct_dcx_dev_addr_crc(&dev_addr->addr)) &&
           uct_dcx_port_is_reachable(&iface->super.port, &dev_addr->addr);
}


/* Returns non-zero if operations of the user have not ended. A grant does not
 * count: if it is alone on an exclusive initiator, a flush does not wait for
 * it, as its peer may not exist any more. */
static int uct_dcx_iface_waits_for(uct_dcx_dci_t *dci)
{
    return !uct_dcx_txq_has_ended(&dci->txq) &&
           ((dci->ep == NULL) || !(dci->ep->flags & UCT_DCX_EP_FLAG_GRANT));
}


static ucs_status_t uct_dcx_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                        uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    uct_dcx_dci_set_t *set = &iface->super.dci;
    int is_idle            = !uct_dcx_recover_is_ending(set);
    unsigned i;

    if (comp != NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (iface->fatal.is_closed) {
        return UCS_ERR_IO_ERROR;
    }

    for (i = 0; i < set->num_created; ++i) {
        uct_dcx_signal_request(&set->dci[set->created[i]]);
        is_idle &= !uct_dcx_iface_waits_for(&set->dci[set->created[i]]);
    }

    if (!is_idle || uct_dcx_fc_has_pending(&iface->fc)) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super.super);
        return UCS_INPROGRESS;
    }

    UCT_TL_IFACE_STAT_FLUSH(&iface->super.super);
    return UCS_OK;
}


/* Fences all initiators, see uct_dcx_ep_fence(). An idle one has nothing to
 * wait for. */
static ucs_status_t uct_dcx_iface_fence(uct_iface_h tl_iface, unsigned flags)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_iface, uct_dcx_queues_t);
    uct_dcx_dci_set_t *set   = &queues->dci;
    uct_dcx_dci_t *dci;
    unsigned i;

    for (i = 0; i < set->num_created; ++i) {
        dci = &set->dci[set->created[i]];
        if (!uct_dcx_txq_is_idle(&dci->txq)) {
            uct_dcx_dci_fence_all(dci, set->pool.num_streams);
        }
    }

    UCT_TL_IFACE_STAT_FENCE(&queues->super);
    return UCS_OK;
}


/* Uses device memory for copied operations that are too long for a WQE, if the
 * device has some, and its registers are write-combining: copying would be slow
 * otherwise. */
static void uct_dcx_iface_init_dm(uct_dcx_queues_t *queues,
                                  const uct_dcx_iface_config_t *config)
{
    uct_dcx_limits_t *limits = &queues->limits;
    int is_slow              = (queues->dci.td.bf.flip == 0);
    uct_dcx_dm_t *dm         = &queues->dm;

    uct_dcx_dm_init(dm, queues->port.dev, is_slow ? 0 : config->dm.size,
                    config->dm.count);
    if (dm->max == 0) {
        limits->am_copied  = limits->am_short;
        limits->put_copied = limits->put_short;
        return;
    }

    limits->am_copied  = ucs_max(dm->max - sizeof(uct_dcx_am_hdr_t),
                                 limits->am_short);
    limits->put_copied = ucs_max(dm->max, limits->put_short);
    queues->super.super.ops.ep_tag_eager_bcopy =
        uct_dcx_ep_tag_eager_bcopy_memory;
    queues->super.super.ops.ep_am_bcopy  = uct_dcx_ep_am_bcopy_short;
    queues->super.super.ops.ep_put_bcopy = uct_dcx_ep_put_bcopy_short;
}


static ucs_status_t uct_dcx_iface_init_tx(uct_dcx_queues_t *queues,
                                          const uct_dcx_iface_config_t *config)
{
    ucs_status_t status;

    status = uct_dcx_desc_init_mpool(&queues->super, &queues->desc_mp,
                                     queues->limits.rma_bcopy);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_init(&queues->dci, &queues->port, queues->channel,
                                  queues->limits.max_bb, config);
    if (status != UCS_OK) {
        goto err_cleanup_mpool;
    }

    status = uct_dcx_dci_set_init_mmio(&queues->dci, config->tx.mmio_mode,
                                       queues->super.worker->thread_mode !=
                                           UCS_THREAD_MODE_SINGLE);
    if (status != UCS_OK) {
        goto err_cleanup_dci_set;
    }

    status = uct_dcx_recover_init(&queues->dci);
    if (status != UCS_OK) {
        goto err_cleanup_dci_set;
    }

    uct_dcx_iface_init_dm(queues, config);
    return UCS_OK;

err_cleanup_dci_set:
    uct_dcx_dci_set_cleanup(&queues->dci);
err_cleanup_mpool:
    ucs_mpool_cleanup(&queues->desc_mp, 1);
    return status;
}


static void uct_dcx_iface_cleanup_tx(uct_dcx_queues_t *queues)
{
    uct_dcx_dci_set_cleanup(&queues->dci);
    uct_dcx_dm_cleanup(&queues->dm);
    ucs_mpool_cleanup(&queues->desc_mp, 1);
}


/* Opens the receiving half, with tag matching if the device does it. */
static ucs_status_t uct_dcx_iface_init_rx(uct_dcx_iface_t *iface,
                                          const uct_dcx_iface_config_t *config,
                                          const uct_iface_params_t *params)
{
    uct_dcx_queues_t *queues = &iface->super;
    ucs_status_t status;

    queues->tm = NULL;
    status     = uct_dcx_rx_init(queues, config, params);
    if ((status != UCS_OK) || (queues->rx.num_tags == 0)) {
        return status;
    }

    status = uct_dcx_tm_init(&iface->tm, queues, queues->rx.num_tags, params);
    if (status != UCS_OK) {
        uct_dcx_rx_cleanup(queues);
        return status;
    }

    queues->tm                             = &iface->tm;
    queues->super.super.ops.iface_progress = uct_dcx_rx_tm_progress;
    return UCS_OK;
}


/* Closes the receiving half; the XRQ goes last. */
static void uct_dcx_iface_cleanup_rx(uct_dcx_queues_t *queues)
{
    if (queues->tm != NULL) {
        uct_dcx_tm_cleanup(queues->tm);
    }
    uct_dcx_rx_cleanup(queues);
}


static uct_iface_ops_t uct_dcx_iface_ops;
static uct_dcx_ucx_iface_ops_t uct_dcx_iface_internal_ops;


static UCS_CLASS_INIT_FUNC(uct_dcx_iface_t, uct_md_h md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config)
{
    const uct_dcx_iface_config_t *config =
        ucs_derived_of(tl_config, uct_dcx_iface_config_t);
    uct_dcx_queues_t *queues = &self->super;
    ucs_status_t status;

    if (ucs_derived_of(worker, uct_priv_worker_t)->thread_mode ==
        UCS_THREAD_MODE_MULTI) {
        ucs_error("dcx does not support UCS_THREAD_MODE_MULTI: create the "
                  "worker with UCS_THREAD_MODE_SERIALIZED");
        return UCS_ERR_INVALID_PARAM;
    }

    status = uct_dcx_config_check(config);
    if (status != UCS_OK) {
        return status;
    }

    status = UCS_CLASS_INIT(
        uct_base_iface_t, &queues->super, &uct_dcx_iface_ops,
        &uct_dcx_iface_internal_ops.super, md, worker, params,
        tl_config UCS_STATS_ARG(UCT_IFACE_PARAM_VALUE(
            params, stats_root, STATS_ROOT, NULL)) UCS_STATS_ARG("dcx"));
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_port_init(&queues->port, ucs_derived_of(md, uct_dcx_md_t),
                               params->mode.device.dev_name, config);
    if (status != UCS_OK) {
        goto err_cleanup_super;
    }

    status = uct_dcx_caps_init_tm(config, queues->port.dev, params,
                                  &queues->limits.num_tags);
    if (status != UCS_OK) {
        goto err_cleanup_port;
    }

    uct_dcx_caps_init(&queues->limits, config, &queues->port);
    uct_dcx_queues_init_keys(queues);
    status = uct_dcx_caps_check(config, queues->limits.max_bb,
                                queues->port.dev);
    if (status != UCS_OK) {
        goto err_cleanup_port;
    }

    if (uct_dcx_mem_places_type() != UCS_MEMORY_TYPE_UNKNOWN) {
        /* The user of places knows no interface. A failure is ignored: it can
         * do without keys. */
        (void)uct_dcx_queues_keys(queues);
    }

    status = uct_dcx_event_init(self);
    if (status != UCS_OK) {
        goto err_cleanup_port;
    }

    status = uct_dcx_iface_init_tx(queues, config);
    if (status != UCS_OK) {
        goto err_cleanup_event;
    }

    status = uct_dcx_iface_init_rx(self, config, params);
    if (status != UCS_OK) {
        goto err_cleanup_tx;
    }

    status = uct_dcx_fc_init(&self->fc, queues, &uct_dcx_ep_fc_ops, config);
    if (status != UCS_OK) {
        goto err_cleanup_rx;
    }

    /* Last, as nothing after them may fail: they would need a cleanup. */
    uct_dcx_slab_init(&queues->eps.plain, sizeof(uct_dcx_ep_t));
    uct_dcx_slab_init(&queues->eps.grh, sizeof(uct_dcx_grh_ep_t));
    uct_dcx_slab_init(&queues->eps.small, sizeof(uct_dcx_small_ep_t));
    uct_dcx_fc_check_queue(&self->fc, 0);
    uct_dcx_fatal_init(self);
    uct_dcx_count_init(self, config);

    ucs_debug("iface %p: %s, DCT 0x%x, up to %u DCIs of %u WQEBBs", self,
              queues->port.name, queues->rx.dctn, queues->dci.pool.num_dci,
              queues->dci.dci[0].txq.sq.mask + 1);
    return UCS_OK;

err_cleanup_rx:
    uct_dcx_iface_cleanup_rx(queues);
err_cleanup_tx:
    uct_dcx_iface_cleanup_tx(queues);
    uct_dcx_recover_cleanup(&queues->dci);
err_cleanup_event:
    uct_dcx_event_cleanup(self);
err_cleanup_port:
    uct_dcx_port_cleanup(&queues->port);
err_cleanup_super:
    UCS_CLASS_CLEANUP(uct_base_iface_t, &queues->super);
    return status;
}


static UCS_CLASS_CLEANUP_FUNC(uct_dcx_iface_t)
{
    uct_dcx_queues_t *queues = &self->super;
    size_t num_eps;

    uct_base_iface_progress_disable(&queues->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);

    uct_dcx_count_cleanup(self);
    uct_dcx_fatal_cleanup(self);
    uct_dcx_fc_stop(&self->fc);
    uct_dcx_iface_cleanup_rx(queues);
    uct_dcx_orphan_forget(&queues->dci);
    uct_dcx_iface_cleanup_tx(queues);
    uct_dcx_fc_cleanup(&self->fc);
    uct_dcx_recover_cleanup(&queues->dci); /* after the last endpoint */
    uct_dcx_event_cleanup(self);
    uct_dcx_port_cleanup(&queues->port);

    num_eps = uct_dcx_slab_cleanup(&queues->eps.plain) +
              uct_dcx_slab_cleanup(&queues->eps.grh) +
              uct_dcx_slab_cleanup(&queues->eps.small);
    if (num_eps > 0) {
        ucs_warn("iface %p is closed, but %zu endpoints were not destroyed",
                 self, num_eps);
    }

    UCS_CLASS_CLEANUP(uct_base_iface_t, &queues->super);
}

UCS_CLASS_DEFINE(uct_dcx_iface_t, void);
static UCS_CLASS_DEFINE_NEW_FUNC(uct_dcx_iface_t, uct_iface_t, uct_md_h,
                                 uct_worker_h, const uct_iface_params_t *,
                                 const uct_iface_config_t *);
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
    .ep_tag_eager_short       = uct_dcx_ep_tag_eager_short,
    .ep_tag_eager_bcopy       = uct_dcx_ep_tag_eager_bcopy,
    .ep_tag_eager_zcopy       = uct_dcx_ep_tag_eager_zcopy,
    .ep_tag_rndv_zcopy        = uct_dcx_ep_tag_rndv_zcopy,
    .ep_tag_rndv_cancel       = uct_dcx_ep_tag_rndv_cancel,
    .ep_tag_rndv_request      = uct_dcx_ep_tag_rndv_request,
    .iface_tag_recv_zcopy     = uct_dcx_tm_recv_zcopy,
    .iface_tag_recv_cancel    = uct_dcx_tm_recv_cancel,
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
    .iface_progress           = uct_dcx_rx_progress,
    .iface_event_fd_get       = uct_dcx_event_fd_get,
    .iface_event_arm          = uct_dcx_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_dcx_iface_t),
    .iface_query              = uct_dcx_caps_query,
    .iface_get_device_address = uct_dcx_iface_get_device_address,
    .iface_get_address        = uct_dcx_iface_get_address,
    .iface_is_reachable       = uct_dcx_iface_is_reachable,
};

static uct_dcx_ucx_iface_ops_t uct_dcx_iface_internal_ops = {
    .super           = {UCT_DCX_UCX_IFACE_OPS.iface_estimate_perf =
                            uct_dcx_caps_estimate_perf,
                        .iface_vfs_refresh = uct_dcx_vfs_refresh,
                        .ep_invalidate     = uct_dcx_ep_invalidate,
                        UCT_DCX_UCX_SGL_OPS(uct_dcx_ep_put_sgl_zcopy,
                                            uct_dcx_ep_get_sgl_zcopy)},
    .ep_is_connected = uct_dcx_ep_is_connected,
    .max_sgl         = uct_dcx_list_max_any,
};


/* Opens an interface; UCT's macro appends "_new" to the name that it gets. */
static ucs_status_t uct_dcx_iface_open_new(uct_md_h md, uct_worker_h worker,
                                           const uct_iface_params_t *params,
                                           const uct_iface_config_t *config,
                                           uct_iface_t **iface_p)
{
    ucs_status_t status;

    status = UCS_CLASS_NEW_FUNC_NAME(uct_dcx_iface_t)(md, worker, params,
                                                      config, iface_p);
    if (status == UCS_ERR_NO_MEMORY) {
        ucs_error("%s: out of memory for an interface",
                  params->mode.device.dev_name);
    }
    return status;
}


UCT_TL_DEFINE_ENTRY(&uct_dcx_component, dcx, uct_dcx_port_query_devices,
                    uct_dcx_iface_open, "DCX_", uct_dcx_iface_config_table,
                    uct_dcx_iface_config_t);

UCT_SINGLE_TL_INIT(&uct_dcx_component, dcx, ctor,
                   uct_dcx_md_set_hook(&uct_dcx_mem_layout_hook), )
