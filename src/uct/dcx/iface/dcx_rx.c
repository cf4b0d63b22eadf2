/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Receiving: completions, and delivery of active messages; see dcx_rx.h.
 */
#include "dcx_rx.h"
#include "dcx_dct.h"
#include "dcx_rx_poll.h"
#include "dcx_tx_poll.h"
#include "uct/dcx/base/dcx_sizes.h"

#include <sys/random.h>


/* The DC access key of all targets whose device matches tags */
#define UCT_DCX_RX_TM_KEY 0x6463782d74616773ul


/* Handles a completion; one byte has the opcode and the place of the
 * message. */
static UCS_F_ALWAYS_INLINE int uct_dcx_rx_handle(uct_dcx_iface_t *iface,
                                                 struct mlx5_cqe64 *cqe)
{
    return uct_dcx_rx_message(iface, cqe, 0xf0, uct_dcx_rx_am) ?
               1 :
               uct_dcx_rx_failed(&iface->super, cqe);
}


static UCS_F_NOINLINE unsigned uct_dcx_rx_poll_more(uct_dcx_iface_t *iface,
                                                    unsigned count)
{
    return uct_dcx_rx_take_more(iface, count, uct_dcx_rx_handle,
                                uct_dcx_tx_progress);
}


static UCS_F_NOINLINE unsigned uct_dcx_rx_poll(uct_dcx_iface_t *iface,
                                               struct mlx5_cqe64 *cqe)
{
    return uct_dcx_rx_take(iface, cqe, uct_dcx_rx_handle, uct_dcx_rx_poll_more,
                           uct_dcx_tx_progress);
}


/* Most calls find nothing. In this case no function is called, and no register
 * has to be saved. */
unsigned uct_dcx_rx_progress(uct_iface_h tl_iface)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_iface, uct_dcx_iface_t);
    struct mlx5_cqe64 *cqe = uct_dcx_cq_next(&iface->super.rx.cq);

    return (cqe != NULL) ? uct_dcx_rx_poll(iface, cqe) :
                           uct_dcx_tx_progress(iface);
}


/* Sets the lengths of the receive queue, and creates its completion queue.
 * Buffers are posted again while a batch of messages is being delivered
 * (dcx_fc_grant.c), and the completions are given back only at its end. */
static ucs_status_t uct_dcx_rx_init_cq(uct_dcx_queues_t *queues,
                                       const uct_dcx_iface_config_t *config)
{
    uct_dcx_cq_params_t params = {
        .ctx       = queues->port.dev->ctx,
        .channel   = queues->channel,
        .cqe_size  = (config->rx.inl == 0) ? 64 : 128,
        .what      = "receives",
        .log_level = UCS_LOG_LEVEL_ERROR,
    };
    uct_dcx_sizes_t sizes;

    uct_dcx_sizes_init(&sizes, config, queues->rx.num_tags);
    queues->rx.max_length = sizes.rx_length;
    queues->rx.length     = sizes.rx_first;
    queues->rx.max_poll   = sizes.rx_max_poll;
    params.length         = sizes.rx_cqes;
    return uct_dcx_cq_init(&queues->rx.cq, &params);
}


static ucs_status_t uct_dcx_rx_prepost(uct_dcx_queues_t *queues)
{
    uct_dcx_srq_post(&queues->rx);
    if (uct_dcx_srq_num_free(&queues->rx) > 0) {
        ucs_error("%s: failed to allocate %u receive buffers of %u bytes",
                  queues->port.name, queues->rx.length, queues->rx.seg_size);
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}


/* Sets the DC access key: one that no other process has, unless the device
 * matches tags. Such a device fetches the data of a rendezvous from the
 * sender's target by one key, and no public text says whether that is the
 * sender's or its own. UCX has one key for all, too. */
static ucs_status_t uct_dcx_rx_init_key(uct_dcx_rx_t *rx, int has_common_key)
{
    if ((rx->num_tags > 0) && has_common_key) {
        rx->dc_key = UCT_DCX_RX_TM_KEY;
    } else if (getrandom(&rx->dc_key, sizeof(rx->dc_key), 0) !=
               sizeof(rx->dc_key)) {
        ucs_error("failed to get a random number for the DC access key: %m");
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}


ucs_status_t uct_dcx_rx_init(uct_dcx_queues_t *queues,
                             const uct_dcx_iface_config_t *config,
                             const uct_iface_params_t *params)
{
    uct_dcx_rx_t *rx = &queues->rx;
    ucs_status_t status;

    rx->seg_size   = queues->limits.seg_size;
    rx->num_tags   = queues->limits.num_tags;
    rx->srq_failed = 0;
    status         = uct_dcx_rx_init_key(rx, config->tm.common_key);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_rx_init_cq(queues, config);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_srq_init(rx, &queues->super, &queues->port, config,
                              params);
    if (status != UCS_OK) {
        goto err_cleanup_cq;
    }

    status = uct_dcx_rx_prepost(queues);
    if (status != UCS_OK) {
        goto err_cleanup_srq;
    }

    status = uct_dcx_dct_init(queues, config);
    if (status != UCS_OK) {
        goto err_cleanup_srq;
    }

    return UCS_OK;

err_cleanup_srq:
    uct_dcx_srq_cleanup(rx, queues->port.dev);
err_cleanup_cq:
    uct_dcx_cq_cleanup(&rx->cq);
    return status;
}


void uct_dcx_rx_cleanup(uct_dcx_queues_t *queues)
{
    uct_dcx_dct_cleanup(queues);
    uct_dcx_srq_cleanup(&queues->rx, queues->port.dev);
    uct_dcx_cq_cleanup(&queues->rx.cq);
}
