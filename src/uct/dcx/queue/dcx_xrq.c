/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * CREATE_XRQ and SET_XRQ_DC_PARAMS_ENTRY, with the parameters of UCX's dc_mlx5
 * (rc_mlx5_devx.c, dc_mlx5_devx.c); see dcx_xrq.h.
 */
#include "dcx_xrq.h"
#include "common/prm_cmd.h"
#include "uct/dcx/ucx/dcx_ucx.h"

#include <ucs/arch/bitops.h>
#include <ucs/sys/math.h>


static void uct_dcx_xrq_fill_wq(const uct_dcx_xrq_params_t *params,
                                const uct_dcx_devx_ring_t *ring,
                                struct prm_wq *wq)
{
    wq->pd       = htobe32(params->port->dev->pdn);
    wq->dbr_addr = htobe64(ring->offset);
    wq->log_sizes =
        uct_dcx_devx_bits(PRM_WQ_LOG_STRIDE, ucs_ilog2(params->stride)) |
        uct_dcx_devx_bits(PRM_WQ_LOG_SIZE, ucs_ilog2(params->length));
    wq->dbr_umem_id = htobe32(ring->umem->umem_id);
    wq->wq_umem_id  = htobe32(ring->umem->umem_id);
}


static ucs_status_t uct_dcx_xrq_create(uct_dcx_xrq_t *xrq,
                                       const uct_dcx_xrq_params_t *params)
{
    const uct_dcx_device_t *dev = params->port->dev;
    unsigned list_size          = ucs_roundup_pow2(params->num_tags + 1);
    struct prm_create_xrq_in in = {.opcode = htobe16(PRM_CMD_CREATE_XRQ)};

    in.xrqc.topology = htobe32(PRM_XRQC_TAG_MATCHING | PRM_XRQC_OFFLOAD_RNDV);
    in.xrqc.cqn      = htobe32(params->cqn);
    in.xrqc.dc       = htobe32(1);
    in.xrqc.log_list = uct_dcx_devx_bits(PRM_XRQC_LOG_LIST,
                                         ucs_ilog2(list_size));
    uct_dcx_xrq_fill_wq(params, &xrq->ring, &in.xrqc.wq);
    return uct_dcx_devx_create(&xrq->obj, dev, "XRQ", &in, sizeof(in));
}


/* Sets the parameters with which the device fetches the data of a
 * rendezvous. */
static ucs_status_t
uct_dcx_xrq_set_dc_params(const uct_dcx_xrq_t *xrq,
                          const uct_dcx_xrq_params_t *params)
{
    const uct_dcx_port_t *port         = params->port;
    struct prm_set_xrq_dc_params_in in = {
        .opcode = htobe16(PRM_CMD_SET_XRQ_DC_PARAMS_ENTRY),
        .xrqn   = htobe32(xrq->obj.number),
        .path   = uct_dcx_devx_bits(PRM_XRQ_DC_ACK_TIMEOUT, params->timeout) |
                uct_dcx_devx_bits(PRM_XRQ_DC_MTU, port->mtu) |
                uct_dcx_devx_bits(PRM_XRQ_DC_PKEY_INDEX, port->pkey_index),
        .sl = uct_dcx_devx_bits(PRM_XRQ_DC_CNAK_REVERSE_SL, port->reverse_sl) |
              uct_dcx_devx_bits(PRM_XRQ_DC_REVERSE_SL, port->reverse_sl) |
              uct_dcx_devx_bits(PRM_XRQ_DC_SL, port->sl),
        .dc_access_key = htobe64(params->dc_key),
    };

    return uct_dcx_devx_modify(&xrq->obj, "SET_XRQ_DC_PARAMS_ENTRY", &in,
                               sizeof(in));
}


ucs_status_t uct_dcx_xrq_init(uct_dcx_xrq_t *xrq,
                              const uct_dcx_xrq_params_t *params)
{
    const uct_dcx_device_t *dev = params->port->dev;
    ucs_status_t status;

    status = uct_dcx_devx_ring_init(&xrq->ring, dev,
                                    params->length * params->stride);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_dcx_xrq_create(xrq, params);
    if (status != UCS_OK) {
        goto err_cleanup_ring;
    }

    status = uct_dcx_xrq_set_dc_params(xrq, params);
    if (status != UCS_OK) {
        goto err_destroy;
    }

    return UCS_OK;

err_destroy:
    uct_dcx_devx_destroy(&xrq->obj);
err_cleanup_ring:
    uct_dcx_devx_ring_cleanup(&xrq->ring);
    return status;
}


void uct_dcx_xrq_cleanup(uct_dcx_xrq_t *xrq)
{
    uct_dcx_devx_destroy(&xrq->obj);
    uct_dcx_devx_ring_cleanup(&xrq->ring);
}
