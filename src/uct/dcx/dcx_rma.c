/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Remote memory access: put and get. Called by UCT in the interface's thread.
 * A get of no bytes is over at once. A put of no bytes is posted, without data
 * segment: users probe a peer with it. (A data segment of 0 bytes would mean
 * 2^31 of them: PRM, struct mlx5_wqe_data_seg.)
 */
#include "dcx_tx.h"


static ucs_status_t
uct_dcx_put_short_any(uct_ep_h tl_ep, const void *buffer, unsigned length,
                      uint64_t remote_addr, uct_rkey_t rkey);


static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length,
                  uint64_t remote_addr, uct_rkey_t rkey, uct_dcx_way_t way)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_tx_t tx        = {.opcode = MLX5_OPCODE_RDMA_WRITE};
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    UCT_CHECK_LENGTH(length, 0, iface->limits.put_short, "put_short");

    dci = uct_dcx_tx_get(iface, ep, way);
    if (ucs_unlikely(dci == NULL)) {
        return (way == UCT_DCX_WAY_PLAIN) ?
               uct_dcx_put_short_any(tl_ep, buffer, length, remote_addr, rkey) :
               uct_dcx_tx_no_resource(ep);
    }

    uct_dcx_tx_start(&wqe, dci, ep, way);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    if (ucs_likely(length > 0)) {
        uct_dcx_wqe_inline_begin(&wqe, length);
        uct_dcx_wqe_inline_put(&wqe, buffer, length);
        uct_dcx_wqe_inline_end(&wqe);
    }
    uct_dcx_tx_post(dci, &wqe, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}


static UCS_F_NOINLINE ucs_status_t
uct_dcx_put_short_any(uct_ep_h tl_ep, const void *buffer, unsigned length,
                      uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_put_short(tl_ep, buffer, length, remote_addr, rkey,
                             UCT_DCX_WAY_ANY);
}


ucs_status_t uct_dcx_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                  unsigned length, uint64_t remote_addr,
                                  uct_rkey_t rkey)
{
    return uct_dcx_put_short(tl_ep, buffer, length, remote_addr, rkey,
                             UCT_DCX_WAY_PLAIN);
}


static ssize_t
uct_dcx_put_bcopy_any(uct_ep_h tl_ep, uct_pack_callback_t pack_cb, void *arg,
                      uint64_t remote_addr, uct_rkey_t rkey);


static UCS_F_ALWAYS_INLINE ssize_t
uct_dcx_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb, void *arg,
                  uint64_t remote_addr, uct_rkey_t rkey, uct_dcx_way_t way)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_tx_t tx        = {
        .opcode = MLX5_OPCODE_RDMA_WRITE,
        .done   = uct_dcx_tx_done_desc
    };
    uct_dcx_tx_desc_t *desc;
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    size_t length;

    dci = uct_dcx_tx_get(iface, ep, way);
    if (ucs_unlikely(dci == NULL)) {
        return (way == UCT_DCX_WAY_PLAIN) ?
               uct_dcx_put_bcopy_any(tl_ep, pack_cb, arg, remote_addr, rkey) :
               uct_dcx_tx_no_resource(ep);
    }

    desc = uct_dcx_tx_get_desc(iface);
    if (ucs_unlikely(desc == NULL)) {
        uct_dcx_tx_settle(iface, dci);
        return UCS_ERR_NO_MEMORY;
    }

    length = pack_cb(uct_dcx_tx_payload(desc), arg);
    ucs_assertv(length <= iface->limits.rma_bcopy, "packed %zu of %zu bytes",
                length, iface->limits.rma_bcopy);

    tx.buffer = desc;
    uct_dcx_tx_start(&wqe, dci, ep, way);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    if (ucs_likely(length > 0)) {
        uct_dcx_wqe_data(&wqe, uct_dcx_tx_payload(desc), length, desc->lkey);
    }
    uct_dcx_tx_post(dci, &wqe, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}


static UCS_F_NOINLINE ssize_t
uct_dcx_put_bcopy_any(uct_ep_h tl_ep, uct_pack_callback_t pack_cb, void *arg,
                      uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_put_bcopy(tl_ep, pack_cb, arg, remote_addr, rkey,
                             UCT_DCX_WAY_ANY);
}


ssize_t uct_dcx_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                             void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_put_bcopy(tl_ep, pack_cb, arg, remote_addr, rkey,
                             UCT_DCX_WAY_PLAIN);
}


static ucs_status_t
uct_dcx_rma_zcopy_any(uct_dcx_ep_t *ep, uct_dcx_tx_t tx, const uct_iov_t *iov,
                      size_t iovcnt, struct ibv_sge remote);


/* Put and get between remote memory and registered pieces of local memory. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_rma_zcopy(uct_dcx_ep_t *ep, const uct_dcx_tx_t *tx,
                  const uct_iov_t *iov, size_t iovcnt,
                  const struct ibv_sge *remote, uct_dcx_way_t way)
{
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    dci = uct_dcx_tx_get(uct_dcx_ep_iface(ep), ep, way);
    if (ucs_unlikely(dci == NULL)) {
        return (way == UCT_DCX_WAY_PLAIN) ?
               uct_dcx_rma_zcopy_any(ep, *tx, iov, iovcnt, *remote) :
               uct_dcx_tx_no_resource(ep);
    }

    uct_dcx_tx_start(&wqe, dci, ep, way);
    uct_dcx_wqe_raddr(&wqe, remote->addr, remote->lkey);
    uct_dcx_tx_iov(&wqe, iov, iovcnt);
    uct_dcx_tx_post(dci, &wqe, tx);
    return UCS_INPROGRESS;
}


static UCS_F_NOINLINE ucs_status_t
uct_dcx_rma_zcopy_any(uct_dcx_ep_t *ep, uct_dcx_tx_t tx, const uct_iov_t *iov,
                      size_t iovcnt, struct ibv_sge remote)
{
    return uct_dcx_rma_zcopy(ep, &tx, iov, iovcnt, &remote, UCT_DCX_WAY_ANY);
}


ucs_status_t uct_dcx_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    size_t length          = uct_iov_total_length(iov, iovcnt);
    struct ibv_sge remote  = {.addr = remote_addr, .lkey = rkey};
    uct_dcx_tx_t tx        = {
        .opcode = MLX5_OPCODE_RDMA_WRITE,
        .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
        .done   = uct_dcx_tx_done_comp,
        .comp   = comp
    };
    ucs_status_t status;

    UCT_CHECK_IOV_SIZE(iovcnt, iface->limits.rma_iov, "put_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->limits.rma_zcopy, "put_zcopy");

    status = uct_dcx_rma_zcopy(ep, &tx, iov, iovcnt, &remote,
                               UCT_DCX_WAY_PLAIN);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, ZCOPY, length);
    return status;
}


ucs_status_t uct_dcx_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    size_t length          = uct_iov_total_length(iov, iovcnt);
    struct ibv_sge remote  = {.addr = remote_addr, .lkey = rkey};
    uct_dcx_tx_t tx        = {
        .opcode = MLX5_OPCODE_RDMA_READ,
        .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
        .done   = uct_dcx_tx_done_comp,
        .comp   = comp
    };
    ucs_status_t status;

    UCT_CHECK_IOV_SIZE(iovcnt, iface->limits.get_iov, "get_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->limits.rma_zcopy, "get_zcopy");
    UCT_SKIP_ZERO_LENGTH(length);

    status = uct_dcx_rma_zcopy(ep, &tx, iov, iovcnt, &remote,
                               UCT_DCX_WAY_PLAIN);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, ZCOPY, length);
    return status;
}


static void uct_dcx_rma_done_get_bcopy(uct_dcx_dci_t *dci, uct_dcx_op_t *op,
                                       ucs_status_t status)
{
    uct_dcx_tx_desc_t *desc = op->buffer;

    if (ucs_likely(status == UCS_OK)) {
        desc->unpack_cb(desc->arg, uct_dcx_tx_payload(desc), desc->length);
    }

    ucs_mpool_put_inline(op->buffer);
    if (op->comp != NULL) {
        uct_invoke_completion(op->comp, status);
    }
}


static ucs_status_t
uct_dcx_get_bcopy_any(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                      void *arg, size_t length, uint64_t remote_addr,
                      uct_rkey_t rkey, uct_completion_t *comp);


static UCS_F_ALWAYS_INLINE ucs_status_t
uct_dcx_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb, void *arg,
                  size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                  uct_completion_t *comp, uct_dcx_way_t way)
{
    uct_dcx_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_dcx_iface_t);
    uct_dcx_ep_t *ep       = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_tx_t tx        = {
        .opcode = MLX5_OPCODE_RDMA_READ,
        .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
        .done   = uct_dcx_rma_done_get_bcopy,
        .comp   = comp
    };
    uct_dcx_tx_desc_t *desc;
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    UCT_CHECK_LENGTH(length, 0, iface->limits.rma_bcopy, "get_bcopy");
    UCT_SKIP_ZERO_LENGTH(length);

    dci = uct_dcx_tx_get(iface, ep, way);
    if (ucs_unlikely(dci == NULL)) {
        return (way == UCT_DCX_WAY_PLAIN) ?
               uct_dcx_get_bcopy_any(tl_ep, unpack_cb, arg, length,
                                     remote_addr, rkey, comp) :
               uct_dcx_tx_no_resource(ep);
    }

    desc = uct_dcx_tx_get_desc(iface);
    if (ucs_unlikely(desc == NULL)) {
        uct_dcx_tx_settle(iface, dci);
        return UCS_ERR_NO_MEMORY;
    }

    desc->unpack_cb = unpack_cb;
    desc->arg       = arg;
    desc->length    = length;

    tx.buffer = desc;
    uct_dcx_tx_start(&wqe, dci, ep, way);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    uct_dcx_wqe_data(&wqe, uct_dcx_tx_payload(desc), length, desc->lkey);
    uct_dcx_tx_post(dci, &wqe, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    return UCS_INPROGRESS;
}


static UCS_F_NOINLINE ucs_status_t
uct_dcx_get_bcopy_any(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                      void *arg, size_t length, uint64_t remote_addr,
                      uct_rkey_t rkey, uct_completion_t *comp)
{
    return uct_dcx_get_bcopy(tl_ep, unpack_cb, arg, length, remote_addr, rkey,
                             comp, UCT_DCX_WAY_ANY);
}


ucs_status_t
uct_dcx_ep_get_bcopy(uct_ep_h tl_ep, uct_unpack_callback_t unpack_cb,
                     void *arg, size_t length, uint64_t remote_addr,
                     uct_rkey_t rkey, uct_completion_t *comp)
{
    return uct_dcx_get_bcopy(tl_ep, unpack_cb, arg, length, remote_addr, rkey,
                             comp, UCT_DCX_WAY_PLAIN);
}
