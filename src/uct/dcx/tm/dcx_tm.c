/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Opens and closes tag matching of an interface; see dcx_tm.h.
 */
#include "dcx_tm.h"
#include "uct/dcx/net/dcx_port_addr.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>


/* WQEBBs of the command queue for operations that belong to no buffer */
#define UCT_DCX_TM_CMD_SPARE 8


/* UCP requests tags in all interfaces of its workers, or in none. */
int uct_dcx_tm_is_wanted(const uct_iface_params_t *params)
{
    const uint64_t callbacks = UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                               UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB;
    uint64_t features = UCT_IFACE_PARAM_VALUE(params, features, FEATURES,
                                              UCT_IFACE_FEATURE_TAG);

    return ucs_test_all_flags(params->field_mask, callbacks) &&
           (features & UCT_IFACE_FEATURE_TAG);
}


static void uct_dcx_tm_release_desc(uct_recv_desc_t *self, void *desc)
{
    uct_dcx_tm_t *tm = ucs_container_of(self, uct_dcx_tm_t, release);
    uct_dcx_rx_t *rx = &tm->queues->rx;
    struct ibv_tmh *tmh =
        (struct ibv_tmh *)UCS_PTR_BYTE_OFFSET(desc, rx->headroom) - 1;

    ucs_mpool_put_inline(uct_dcx_srq_desc(rx, (uct_dcx_am_hdr_t *)tmh));
}


static ucs_status_t uct_dcx_tm_alloc(uct_dcx_tm_t *tm)
{
    const size_t num_ops = (size_t)tm->cmd.sq.mask + 1;

    tm->entries = ucs_calloc(tm->num_entries, sizeof(*tm->entries),
                             "uct_dcx_tm_entries");
    tm->free    = ucs_calloc(tm->num_entries, sizeof(*tm->free),
                             "uct_dcx_tm_free");
    tm->buckets = ucs_calloc((size_t)tm->bucket_mask + 1, sizeof(*tm->buckets),
                             "uct_dcx_tm_buckets");
    tm->ops     = ucs_calloc(num_ops, sizeof(*tm->ops), "uct_dcx_tm_ops");
    tm->awaited = ucs_calloc(num_ops, sizeof(*tm->awaited),
                             "uct_dcx_tm_awaited");
    tm->lost    = ucs_calloc(UCT_DCX_TM_MAX_LOST, sizeof(*tm->lost),
                             "uct_dcx_tm_lost");
    return ((tm->entries == NULL) || (tm->free == NULL) ||
            (tm->buckets == NULL) || (tm->ops == NULL) ||
            (tm->awaited == NULL) || (tm->lost == NULL)) ?
               UCS_ERR_NO_MEMORY :
               UCS_OK;
}


static void uct_dcx_tm_free(uct_dcx_tm_t *tm)
{
    ucs_free(tm->lost);
    ucs_free(tm->awaited);
    ucs_free(tm->ops);
    ucs_free(tm->buckets);
    ucs_free(tm->free);
    ucs_free(tm->entries);
}


/* Initialises the list; the device appends the first buffer as entry 0. */
static void uct_dcx_tm_init_list(uct_dcx_tm_t *tm)
{
    unsigned i;

    tm->next         = 0;
    tm->num_free     = 0;
    tm->cqe_mask     = tm->cmd.sq.mask / 4;
    tm->max_unsynced = UCT_DCX_TM_MAX_UNSYNCED;
    for (i = 1; i < tm->num_entries; ++i) {
        tm->free[tm->num_free++] = tm->num_entries - i;
    }

    for (i = 0; i <= tm->bucket_mask; ++i) {
        tm->buckets[i] = UCT_DCX_TM_NONE;
    }
}


/* Creates the command queue. It has room for an APPEND and a REMOVE of each
 * buffer, as the device may not have executed either yet. */
static ucs_status_t uct_dcx_tm_init_cmd(uct_dcx_tm_t *tm, unsigned num_tags)
{
    uct_dcx_queues_t *queues        = tm->queues;
    const uct_dcx_bf_t *bf          = &queues->dci.td.bf;
    uct_dcx_devx_path_t path        = {};
    uct_dcx_devx_qp_params_t params = {
        .dev    = queues->port.dev,
        .path   = &path,
        .name   = "command QP",
        .cqn    = queues->rx.cq.cqn,
        .srqn   = queues->rx.xrq.obj.number,
        .num_bb = ucs_roundup_pow2((2 * num_tags) + UCT_DCX_TM_CMD_SPARE),
        .max_bb = 1,
    };
    ucs_status_t status;

    status = uct_dcx_port_own_path(&queues->port, &path);
    if (status == UCS_OK) {
        status = uct_dcx_devx_qp_init(&tm->cmd, &params);
    }

    if (status == UCS_OK) {
        uct_dcx_bf_set_mode(&tm->cmd.bf, bf->push_bb, bf->flush);
    }
    return status;
}


ucs_status_t uct_dcx_tm_init(uct_dcx_tm_t *tm, uct_dcx_queues_t *queues,
                             unsigned num_tags,
                             const uct_iface_params_t *params)
{
    ucs_status_t status;

    memset(tm, 0, sizeof(*tm));
    tm->queues      = queues;
    tm->eager_cb    = params->eager_cb;
    tm->eager_arg   = UCT_IFACE_PARAM_VALUE(params, eager_arg, HW_TM_EAGER_ARG,
                                            NULL);
    tm->rndv_cb     = params->rndv_cb;
    tm->rndv_arg    = UCT_IFACE_PARAM_VALUE(params, rndv_arg, HW_TM_RNDV_ARG,
                                            NULL);
    tm->release.cb  = uct_dcx_tm_release_desc;
    tm->num_entries = num_tags + 1;
    tm->bucket_mask = ucs_roundup_pow2(tm->num_entries) - 1;

    status = uct_dcx_tm_init_cmd(tm, num_tags);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_tm_alloc(tm);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = uct_dcx_tm_rndv_init(&tm->rndv);
    if (status != UCS_OK) {
        goto err_free;
    }

    uct_dcx_tm_init_list(tm);
    return UCS_OK;

err_free:
    uct_dcx_tm_free(tm);
    uct_dcx_devx_qp_cleanup(&tm->cmd);
    return status;
}


void uct_dcx_tm_cleanup(uct_dcx_tm_t *tm)
{
    /* of endpoints that were not destroyed */
    uct_dcx_op_purge(&tm->queues->dci.ops, NULL, UCS_ERR_CANCELED);
    uct_dcx_tm_rndv_cleanup(&tm->rndv);
    uct_dcx_devx_qp_cleanup(&tm->cmd);
    uct_dcx_tm_strided_cleanup(tm);
    uct_dcx_tm_free(tm);
}
