/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The DC initiators of an interface as a set: they are created and destroyed
 * together, and share the memory that results of atomics land in, the table
 * of QP numbers and the pool. Called when an interface opens and closes.
 */
#include "dcx_iface.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>


static ucs_mpool_ops_t uct_dcx_flush_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};


/* The memory that results of atomics land in: 8 bytes for each block of each
 * send queue, so that an atomic never waits for it. */
static ucs_status_t uct_dcx_dci_set_init_results(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned per_dci       = set->dci[0].sq.mask + 1;
    size_t size            = set->num_dci * per_dci * sizeof(*set->results);
    void *results;
    unsigned i;

    size = ucs_align_up(size, ucs_get_page_size());
    if (ucs_posix_memalign(&results, ucs_get_page_size(), size,
                           "uct_dcx_results") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    set->results_mr = ibv_reg_mr(iface->port.dev->pd, results, size,
                                 IBV_ACCESS_LOCAL_WRITE);
    if (set->results_mr == NULL) {
        ucs_error("%s: failed to register %zu bytes: %m; see 'ulimit -l'",
                  uct_dcx_iface_name(iface), size);
        ucs_free(results);
        return UCS_ERR_IO_ERROR;
    }

    set->results      = results;
    set->results_lkey = set->results_mr->lkey;
    for (i = 0; i < set->num_dci; ++i) {
        set->dci[i].results = set->results + (i * per_dci);
    }
    return UCS_OK;
}


static void uct_dcx_dci_set_cleanup_results(uct_dcx_dci_set_t *set)
{
    if (ibv_dereg_mr(set->results_mr) != 0) {
        ucs_warn("mr 0x%x: failed to deregister: %m", set->results_lkey);
    }
    ucs_free(set->results);
}


/* Fills the table if no two QP numbers share their low bits. */
static int uct_dcx_dci_set_try_qpn_mask(uct_dcx_dci_set_t *set)
{
    uint16_t *slot;
    unsigned i;

    memset(set->by_qpn, 0xff, (set->qpn_mask + 1) * sizeof(*set->by_qpn));
    for (i = 0; i < set->num_dci; ++i) {
        slot = &set->by_qpn[set->dci[i].sq.qpn & set->qpn_mask];
        if (*slot != UCT_DCX_NO_DCI) {
            return 0;
        }
        *slot = i;
    }
    return 1;
}


static ucs_status_t uct_dcx_dci_set_init_qpns(uct_dcx_dci_set_t *set)
{
    uint32_t size;

    /* numbers differ within their 24 bits, so the search comes to an end */
    for (size = ucs_roundup_pow2(set->num_dci); size <= UCS_BIT(24);
         size *= 2) {
        set->qpn_mask = size - 1;
        set->by_qpn   = ucs_malloc(size * sizeof(*set->by_qpn),
                                   "uct_dcx_by_qpn");
        if (set->by_qpn == NULL) {
            return UCS_ERR_NO_MEMORY;
        }

        if (uct_dcx_dci_set_try_qpn_mask(set)) {
            return UCS_OK;
        }
        ucs_free(set->by_qpn);
    }

    ucs_error("two DC initiators have the same QP number");
    return UCS_ERR_IO_ERROR;
}


static ucs_status_t
uct_dcx_dci_set_create_all(uct_dcx_iface_t *iface,
                           const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    size_t size            = config->tx.num_dci * sizeof(*set->dci);
    ucs_status_t status;
    void *dci;

    if (ucs_posix_memalign(&dci, UCS_SYS_CACHE_LINE_SIZE, size,
                           "uct_dcx_dci") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    set->dci = memset(dci, 0, size);

    for (set->num_dci = 0; set->num_dci < config->tx.num_dci;
         ++set->num_dci) {
        status = uct_dcx_dci_init(iface, &set->dci[set->num_dci], config);
        if (status != UCS_OK) {
            goto err;
        }
    }
    return UCS_OK;

err:
    while (set->num_dci > 0) {
        uct_dcx_dci_cleanup(iface, &set->dci[--set->num_dci]);
    }
    ucs_free(set->dci);
    return status;
}


static void uct_dcx_dci_set_destroy_all(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    unsigned i;

    for (i = 0; i < set->num_dci; ++i) {
        uct_dcx_dci_cleanup(iface, &set->dci[i]);
    }
    ucs_free(set->dci);
}


static void
uct_dcx_dci_set_init_retries(uct_dcx_dci_set_t *set,
                             const uct_dcx_device_t *dev,
                             const uct_dcx_iface_config_t *config)
{
    unsigned max_rd_atomic = ucs_max(dev->attr.max_qp_init_rd_atom, 1);

    if (config->tx.max_rd_atomic > max_rd_atomic) {
        ucs_diag("UCX_DCX_MAX_RD_ATOMIC=%u: %s takes %u",
                 config->tx.max_rd_atomic, uct_dcx_device_name(dev),
                 max_rd_atomic);
    }

    set->timeout         = uct_dcx_config_timeout_code(config->tx.timeout);
    set->retry_count     = config->tx.retry_count;
    set->rnr_retry_count = config->tx.rnr_retry_count;
    set->max_rd_atomic   = ucs_min(config->tx.max_rd_atomic, max_rd_atomic);
}


ucs_status_t uct_dcx_dci_set_init(uct_dcx_iface_t *iface,
                                  const uct_dcx_iface_config_t *config)
{
    uct_dcx_dci_set_t *set = &iface->dci;
    ucs_status_t status;

    set->failing   = NULL;
    set->throttled = 0;
    uct_dcx_dci_set_init_retries(set, iface->port.dev, config);
    ucs_arbiter_init(&set->wait_dci);
    ucs_arbiter_init(&set->wait_room);

    status = ucs_mpool_init(&set->flush_mp, 0, sizeof(uct_dcx_flush_t), 0,
                            UCS_SYS_CACHE_LINE_SIZE, 64, UINT_MAX,
                            &uct_dcx_flush_mpool_ops, "uct_dcx_flushes");
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_dci_set_create_all(iface, config);
    if (status != UCS_OK) {
        goto err_cleanup_mpool;
    }

    status = uct_dcx_dci_set_init_results(iface);
    if (status != UCS_OK) {
        goto err_destroy_all;
    }

    status = uct_dcx_dci_set_init_qpns(set);
    if (status != UCS_OK) {
        goto err_cleanup_results;
    }

    if (uct_dcx_pool_init(&set->pool, config->tx.policy, set->num_dci,
                          config->tx.quota) != 0) {
        status = UCS_ERR_NO_MEMORY;
        goto err_free_qpns;
    }

    return UCS_OK;

err_free_qpns:
    ucs_free(set->by_qpn);
err_cleanup_results:
    uct_dcx_dci_set_cleanup_results(set);
err_destroy_all:
    uct_dcx_dci_set_destroy_all(iface);
err_cleanup_mpool:
    ucs_mpool_cleanup(&set->flush_mp, 1);
    return status;
}


void uct_dcx_dci_set_cleanup(uct_dcx_iface_t *iface)
{
    uct_dcx_dci_set_t *set = &iface->dci;

    uct_dcx_dci_set_destroy_all(iface);
    uct_dcx_dci_set_cleanup_results(set);
    uct_dcx_pool_cleanup(&set->pool);
    ucs_free(set->by_qpn);
    ucs_mpool_cleanup(&set->flush_mp, 1);
    ucs_arbiter_cleanup(&set->wait_room);
    ucs_arbiter_cleanup(&set->wait_dci);
}
