/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The shared receive queue and its buffers; see dcx_srq.h. The queue is a
 * linked list (PRM, "SRQ"; struct mlx5_wqe_srq_next_seg) in memory of libmlx5;
 * that of an XRQ is memory of the transport. The device takes entries along
 * the chain; software appends each completed entry at the tail, so a slow
 * message delays no others. The last entry of the chain is never posted, as its
 * link is not known yet.
 */
#include "dcx_srq.h"
#include "dcx_desc.h"
#include "uct/dcx/base/dcx_memcheck.h"
#include "uct/dcx/dev/dcx_barrier.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>


static void uct_dcx_srq_release(uct_recv_desc_t *self, void *desc)
{
    uct_dcx_rx_t *rx = ucs_container_of(self, uct_dcx_rx_t, release);

    ucs_mpool_put_inline(UCS_PTR_BYTE_OFFSET(
        desc, (ptrdiff_t)rx->headroom - (ptrdiff_t)rx->payload_offset));
}


/* Gives entry @index a buffer if it has none. Returns 0 if memory is short. */
static int uct_dcx_srq_fill(uct_dcx_rx_t *rx, uint16_t index)
{
    struct mlx5_wqe_data_seg *data = &rx->wqes[index].data;
    uct_dcx_rx_desc_t *desc;

    if (rx->hdrs[index] != NULL) {
        return 1;
    }

    desc = ucs_mpool_get_inline(&rx->mp);
    if (ucs_unlikely(desc == NULL)) {
        return 0;
    }

    rx->missing--;
    rx->hdrs[index] = uct_dcx_srq_hdr(rx, desc);
    data->lkey      = htobe32(desc->lkey);
    data->addr      = htobe64((uintptr_t)rx->hdrs[index]);
    uct_dcx_memcheck_device_writes(rx->hdrs[index], rx->seg_size);
    return 1;
}


/* Moves the head along the chain, over the entries that have buffers or get
 * them. Returns their number. */
static UCS_F_NOINLINE unsigned uct_dcx_srq_walk(uct_dcx_rx_t *rx)
{
    unsigned count = 0;

    while ((rx->head != rx->tail) && uct_dcx_srq_fill(rx, rx->head)) {
        rx->head = be16toh(rx->wqes[rx->head].next.next_wqe_index);
        ++count;
    }
    return count;
}


void uct_dcx_srq_post(uct_dcx_rx_t *rx)
{
    unsigned posted;

    if (ucs_likely(rx->missing == 0)) {
        /* The user has kept none: all entries are linked and filled. */
        rx->head = rx->tail;
        posted   = uct_dcx_srq_num_free(rx);
    } else {
        posted = uct_dcx_srq_walk(rx);
    }

    rx->excess -= posted;
    rx->counter += posted;

    /* The entries are in memory before the record that announces them. */
    uct_dcx_to_device_barrier();
    *rx->dbrec = htobe32(rx->counter);
}


/* Appends entry @index to the chain. */
static void uct_dcx_srq_link(uct_dcx_rx_t *rx, uint16_t index)
{
    memset(&rx->wqes[index], 0, sizeof(rx->wqes[index]));
    rx->wqes[index].data.byte_count        = htobe32(rx->seg_size);
    rx->wqes[rx->tail].next.next_wqe_index = htobe16(index);
    rx->tail                               = index;
    rx->missing++;
}


void uct_dcx_srq_grow(uct_dcx_rx_t *rx)
{
    for (; rx->length < rx->max_length; rx->length++) {
        uct_dcx_srq_link(rx, rx->length);
        rx->excess++;
    }
}


static void uct_dcx_srq_link_first(uct_dcx_rx_t *rx)
{
    unsigned i;

    rx->head    = 0;
    rx->tail    = 0;
    rx->counter = 0;
    rx->missing = 0;
    rx->dropped = 0;
    for (i = 0; i < rx->length; ++i) {
        uct_dcx_srq_link(rx, i);
    }
    rx->batch  = ucs_min(16, (rx->length - 1) / 2 + 1);
    rx->excess = rx->length - 1 - rx->batch;
}


/* Takes the queue over from libmlx5, which would continue with its own list. */
static ucs_status_t uct_dcx_srq_take_over(uct_dcx_rx_t *rx,
                                          const uct_dcx_device_t *dev)
{
    struct mlx5dv_srq dv_srq = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj obj    = {.srq = {.in = rx->srq, .out = &dv_srq}};

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) != 0) {
        ucs_error("%s: mlx5dv_init_obj(srq) failed: %m",
                  uct_dcx_device_name(dev));
        return UCS_ERR_IO_ERROR;
    }

    if ((dv_srq.stride != sizeof(*rx->wqes)) || (dv_srq.head != 0) ||
        (dv_srq.tail < 1) || (dv_srq.tail > UINT16_MAX / 2)) {
        ucs_error("%s: dcx does not support a receive queue with stride %u, "
                  "head %u and tail %u",
                  uct_dcx_device_name(dev), dv_srq.stride, dv_srq.head,
                  dv_srq.tail);
        return UCS_ERR_UNSUPPORTED;
    }

    rx->srqn       = dv_srq.srqn;
    rx->wqes       = dv_srq.buf;
    rx->dbrec      = dv_srq.dbrec;
    rx->max_length = ucs_min(rx->max_length, dv_srq.tail + 1u);
    rx->length     = ucs_min(rx->length, rx->max_length);
    return UCS_OK;
}


static ucs_status_t uct_dcx_srq_create_verbs(uct_dcx_rx_t *rx,
                                             const uct_dcx_device_t *dev)
{
    struct ibv_srq_init_attr attr = {
        .srq_context = &rx->srq_failed,
        .attr        = {.max_wr = rx->max_length - 1, .max_sge = 1},
    };
    ucs_status_t status;

    rx->srq = ibv_create_srq(dev->pd, &attr);
    if (rx->srq == NULL) {
        ucs_error("%s: failed to create a receive queue of %u buffers: %m; "
                  "lower UCX_DCX_RX_QUEUE_LEN",
                  uct_dcx_device_name(dev), attr.attr.max_wr);
        return UCS_ERR_IO_ERROR;
    }

    status = uct_dcx_srq_take_over(rx, dev);
    if (status != UCS_OK) {
        ibv_destroy_srq(rx->srq);
    }
    return status;
}


static ucs_status_t uct_dcx_srq_create_xrq(uct_dcx_rx_t *rx,
                                           const uct_dcx_port_t *port,
                                           const uct_dcx_iface_config_t *config)
{
    const uct_dcx_xrq_params_t params = {
        .port     = port,
        .length   = ucs_roundup_pow2(rx->max_length),
        .stride   = sizeof(*rx->wqes),
        .num_tags = rx->num_tags,
        .cqn      = rx->cq.cqn,
        .dc_key   = rx->dc_key,
        .timeout  = uct_dcx_config_timeout_code(config->tx.timeout),
    };
    ucs_status_t status;

    status = uct_dcx_xrq_init(&rx->xrq, &params);
    if (status != UCS_OK) {
        return status;
    }

    rx->wqes  = rx->xrq.ring.start;
    rx->dbrec = &uct_dcx_devx_ring_dbrec(&rx->xrq.ring)[MLX5_RCV_DBR];
    return UCS_OK;
}


static void uct_dcx_srq_destroy(uct_dcx_rx_t *rx, const uct_dcx_device_t *dev)
{
    if (rx->num_tags > 0) {
        uct_dcx_xrq_cleanup(&rx->xrq);
    } else if (ibv_destroy_srq(rx->srq) != 0) {
        ucs_warn("%s: failed to destroy the receive queue: %m",
                 uct_dcx_device_name(dev));
    }
}


/* Links the first entries of the ring. It may have more than requested: the
 * chain never gets these. */
static ucs_status_t uct_dcx_srq_alloc(uct_dcx_rx_t *rx)
{
    rx->hdrs = ucs_calloc(rx->max_length, sizeof(*rx->hdrs), "uct_dcx_rx_hdrs");
    if (rx->hdrs == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_dcx_srq_link_first(rx);
    return UCS_OK;
}


static ucs_status_t uct_dcx_srq_init_mpool(uct_dcx_rx_t *rx,
                                           uct_base_iface_t *iface,
                                           const uct_iface_params_t *params)
{
    size_t align, align_offset;
    ucs_status_t status;

    /* A pointer to rx->release is right before the user's headroom. */
    rx->headroom = UCT_IFACE_PARAM_VALUE(params, rx_headroom, RX_HEADROOM, 0);
    rx->payload_offset = sizeof(uct_dcx_rx_desc_t) +
                         ucs_max(sizeof(uct_recv_desc_t *) + rx->headroom,
                                 sizeof(uct_dcx_am_hdr_t));

    /* The device's write begins at a cache line, unless the user requests an
     * alignment of the payload. */
    status = uct_iface_param_am_alignment(
        params, rx->seg_size, rx->payload_offset - sizeof(uct_dcx_am_hdr_t),
        rx->payload_offset, &align, &align_offset);
    if (status != UCS_OK) {
        return status;
    }

    rx->release.cb = uct_dcx_srq_release;
    return uct_dcx_ucx_mpool_init_registered(
        iface, &rx->mp,
        rx->payload_offset + rx->seg_size - sizeof(uct_dcx_am_hdr_t),
        align_offset, align, ucs_max(rx->length / 4, 16), uct_dcx_desc_init,
        "uct_dcx_rx_desc");
}


ucs_status_t uct_dcx_srq_init(uct_dcx_rx_t *rx, uct_base_iface_t *iface,
                              const uct_dcx_port_t *port,
                              const uct_dcx_iface_config_t *config,
                              const uct_iface_params_t *params)
{
    ucs_status_t status;

    status = (rx->num_tags > 0) ? uct_dcx_srq_create_xrq(rx, port, config) :
                                  uct_dcx_srq_create_verbs(rx, port->dev);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_srq_alloc(rx);
    if (status != UCS_OK) {
        goto err_destroy;
    }

    status = uct_dcx_srq_init_mpool(rx, iface, params);
    if (status != UCS_OK) {
        goto err_free_hdrs;
    }

    return UCS_OK;

err_free_hdrs:
    ucs_free(rx->hdrs);
err_destroy:
    uct_dcx_srq_destroy(rx, port->dev);
    return status;
}


void uct_dcx_srq_cleanup(uct_dcx_rx_t *rx, const uct_dcx_device_t *dev)
{
    unsigned i;

    uct_dcx_srq_destroy(rx, dev);

    /* The device does not use the buffers any longer. */
    for (i = 0; i < rx->length; ++i) {
        if (rx->hdrs[i] != NULL) {
            ucs_mpool_put_inline(uct_dcx_srq_desc(rx, rx->hdrs[i]));
        }
    }
    ucs_mpool_cleanup(&rx->mp, 1);
    ucs_free(rx->hdrs);
}
