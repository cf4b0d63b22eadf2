/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Remote memory access: put and get. Called by UCT in the interface's thread. A
 * get of 0 bytes completes at once. A put of 0 bytes is posted, without data
 * segment: users probe a peer with it. (A data segment of 0 bytes would mean
 * 2^31 of them: PRM, struct mlx5_wqe_data_seg.)
 */
#include "dcx_strided.h"
#include "uct/dcx/queue/dcx_desc.h"
#include "uct/dcx/queue/dcx_post.h"


static UCS_F_ALWAYS_INLINE void
uct_dcx_rma_post_inline(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, const void *data,
                        unsigned length, uint64_t remote_addr, uct_rkey_t rkey)
{
    const uct_dcx_post_t tx = {.opcode = MLX5_OPCODE_RDMA_WRITE};
    uct_dcx_wqe_t wqe;

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    if (ucs_likely(length > 0)) {
        uct_dcx_wqe_inline_begin(&wqe, length);
        uct_dcx_wqe_inline_put(&wqe, data, length);
        uct_dcx_wqe_inline_end(&wqe);
    }
    uct_dcx_post_end(&wqe, dci, ep, &tx);
}


ucs_status_t uct_dcx_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                  unsigned length, uint64_t remote_addr,
                                  uct_rkey_t rkey)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_dci_t *dci;

    UCT_CHECK_LENGTH(length, 0, queues->limits.put_short, "put_short");

    dci = uct_dcx_tx_get(&queues->dci, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_rma_post_inline(ep, dci, buffer, length, remote_addr, rkey);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return UCS_OK;
}


/* --- copied puts ---------------------------------------------------------- */

/* Copies @length bytes from @desc into the WQE; this saves the device a DMA
 * read. */
static UCS_F_ALWAYS_INLINE ssize_t uct_dcx_rma_post_short(
    uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc, size_t length,
    uint64_t remote_addr, uct_rkey_t rkey)
{
    const uct_dcx_post_t tx = {.opcode = MLX5_OPCODE_RDMA_WRITE};
    __be32 *byte_count      = (__be32 *)uct_dcx_desc_payload(desc) - 1;
    uct_dcx_wqe_t wqe;

    *byte_count = htobe32(MLX5_INLINE_SEG | length);
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    if (ucs_likely(length > 0)) {
        uct_dcx_wqe_inline_image(&wqe, dci->txq.sq.end, byte_count,
                                 sizeof(*byte_count) + length);
    }
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}


/* Posts a put of @length bytes that the device reads from @data, which is an
 * address for the lkey of @desc. */
static UCS_F_ALWAYS_INLINE ssize_t uct_dcx_rma_post_long(
    uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc,
    const void *data, size_t length, uint64_t remote_addr, uct_rkey_t rkey)
{
    const uct_dcx_post_t tx = {
        .opcode = MLX5_OPCODE_RDMA_WRITE,
        .done   = uct_dcx_desc_done,
        .buffer = desc,
    };
    uct_dcx_wqe_t wqe;

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    uct_dcx_wqe_data(&wqe, data, length, desc->lkey);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    return length;
}


/* See uct_dcx_am_post_memory(). */
static UCS_F_NOINLINE ssize_t uct_dcx_rma_post_memory(
    uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc, size_t length,
    uint64_t remote_addr, uct_rkey_t rkey)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);
    uct_dcx_desc_t *seg      = uct_dcx_dm_get(&queues->dm);
    const void *data         = uct_dcx_desc_payload(desc);

    data = uct_dcx_dm_copy(&queues->dm, seg, data, length);
    uct_dcx_tx_signal(&queues->dci, dci);
    return uct_dcx_rma_post_long(ep, dci, seg, data, length, remote_addr, rkey);
}


/* See uct_dcx_am_post_medium(). Inlined, it would cost short puts four
 * instructions. */
static UCS_F_NOINLINE ssize_t uct_dcx_rma_post_medium(
    uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc, size_t length,
    uint64_t remote_addr, uct_rkey_t rkey)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);

    if (uct_dcx_dm_is_free(&queues->dm)) {
        return uct_dcx_rma_post_memory(ep, dci, desc, length, remote_addr,
                                       rkey);
    }
    ucs_mpool_get_inline(&queues->desc_mp);
    return uct_dcx_rma_post_long(ep, dci, desc, uct_dcx_desc_payload(desc),
                                 length, remote_addr, rkey);
}


/* See uct_dcx_am_turn_short(). */
static UCS_F_NOINLINE ssize_t uct_dcx_rma_turn_short(
    uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc, size_t length,
    uint64_t remote_addr, uct_rkey_t rkey)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);
    ssize_t sent;

    ep->super.super.iface->ops.ep_put_bcopy = uct_dcx_ep_put_bcopy_short;
    if (length <= queues->limits.put_short) {
        sent = uct_dcx_rma_post_short(ep, dci, desc, length, remote_addr, rkey);
    } else if (uct_dcx_dm_is_free(&queues->dm)) {
        sent = uct_dcx_rma_post_memory(ep, dci, desc, length, remote_addr,
                                       rkey);
    } else {
        return uct_dcx_rma_post_long(ep, dci, desc, uct_dcx_desc_payload(desc),
                                     length, remote_addr, rkey);
    }

    ucs_mpool_put_inline(desc);
    return sent;
}


/* See uct_dcx_am_turn_long(). */
static UCS_F_NOINLINE ssize_t uct_dcx_rma_turn_long(uct_dcx_ep_t *ep,
                                                    uct_dcx_dci_t *dci,
                                                    size_t length,
                                                    uint64_t remote_addr,
                                                    uct_rkey_t rkey)
{
    uct_dcx_desc_t *desc =
        ucs_mpool_get_inline(&uct_dcx_ep_queues(ep)->desc_mp);

    ep->super.super.iface->ops.ep_put_bcopy = uct_dcx_ep_put_bcopy;
    return uct_dcx_rma_post_long(ep, dci, desc, uct_dcx_desc_payload(desc),
                                 length, remote_addr, rkey);
}


/* See uct_dcx_am_bcopy(). */
static UCS_F_ALWAYS_INLINE ssize_t
uct_dcx_rma_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb, void *arg,
                      uint64_t remote_addr, uct_rkey_t rkey, int expects_short)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_desc_t *desc;
    uct_dcx_dci_t *dci;
    size_t length;

    dci = uct_dcx_tx_get(&queues->dci, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    desc = uct_dcx_desc_get(&queues->desc_mp, expects_short);
    if (ucs_unlikely(desc == NULL)) {
        return uct_dcx_tx_no_memory(&queues->dci, dci);
    }

    length = pack_cb(uct_dcx_desc_payload(desc), arg);
    ucs_assertv(length <= queues->limits.rma_bcopy, "packed %zu of %zu bytes",
                length, queues->limits.rma_bcopy);
    if (!expects_short) {
        return (length <= queues->limits.put_copied) ?
                   uct_dcx_rma_turn_short(ep, dci, desc, length, remote_addr,
                                          rkey) :
                   uct_dcx_rma_post_long(ep, dci, desc,
                                         uct_dcx_desc_payload(desc), length,
                                         remote_addr, rkey);
    }
    return (length <= queues->limits.put_short) ?
               uct_dcx_rma_post_short(ep, dci, desc, length, remote_addr,
                                      rkey) :
           (length <= queues->limits.put_copied) ?
               uct_dcx_rma_post_medium(ep, dci, desc, length, remote_addr,
                                       rkey) :
               uct_dcx_rma_turn_long(ep, dci, length, remote_addr, rkey);
}


ssize_t uct_dcx_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb,
                             void *arg, uint64_t remote_addr, uct_rkey_t rkey)
{
    return uct_dcx_rma_put_bcopy(ep, pack_cb, arg, remote_addr, rkey, 0);
}


ssize_t uct_dcx_ep_put_bcopy_short(uct_ep_h ep, uct_pack_callback_t pack_cb,
                                   void *arg, uint64_t remote_addr,
                                   uct_rkey_t rkey)
{
    return uct_dcx_rma_put_bcopy(ep, pack_cb, arg, remote_addr, rkey, 1);
}


/* --- zero copy, and gets -------------------------------------------------- */

/* Posts a put or a get between remote memory and registered pieces of local
 * memory; UCT's functions for both have the same arguments. */
static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_rma_zcopy(
    uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt, uint64_t remote_addr,
    uct_rkey_t rkey, uct_completion_t *comp, uint8_t opcode)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    int is_get               = (opcode == MLX5_OPCODE_RDMA_READ);
    uct_dcx_post_t tx        = {
               .opcode = opcode,
               .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
               .done   = uct_dcx_post_done_comp,
               .comp   = comp,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    size_t length;

    if (ucs_unlikely(!uct_dcx_iov_is_plain(iov, iovcnt,
                                           is_get ? queues->limits.get_iov :
                                                    queues->limits.rma_iov,
                                           &length))) {
        return is_get ? uct_dcx_strided_get_zcopy(tl_ep, iov, iovcnt,
                                                  remote_addr, rkey, comp) :
                        uct_dcx_strided_put_zcopy(tl_ep, iov, iovcnt,
                                                  remote_addr, rkey, comp);
    }

    UCT_CHECK_LENGTH(length, 0, queues->limits.rma_zcopy,
                     is_get ? "get_zcopy" : "put_zcopy");
    if (is_get) {
        UCT_SKIP_ZERO_LENGTH(length);
    }

    dci = uct_dcx_tx_get(&queues->dci, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    uct_dcx_post_iov(&wqe, iov, iovcnt);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    if (is_get) {
        UCT_TL_EP_STAT_OP(&ep->super, GET, ZCOPY, length);
    } else {
        UCT_TL_EP_STAT_OP(&ep->super, PUT, ZCOPY, length);
    }
    return UCS_INPROGRESS;
}


ucs_status_t uct_dcx_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp)
{
    return uct_dcx_rma_zcopy(tl_ep, iov, iovcnt, remote_addr, rkey, comp,
                             MLX5_OPCODE_RDMA_WRITE);
}


ucs_status_t uct_dcx_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                  size_t iovcnt, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp)
{
    return uct_dcx_rma_zcopy(tl_ep, iov, iovcnt, remote_addr, rkey, comp,
                             MLX5_OPCODE_RDMA_READ);
}


static void uct_dcx_rma_done_get_bcopy(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                                       ucs_status_t status)
{
    uct_dcx_desc_t *desc = slot->buffer;

    if (ucs_likely(status == UCS_OK)) {
        desc->unpack_cb(desc->arg, uct_dcx_desc_payload(desc), desc->length);
    }

    ucs_mpool_put_inline(slot->buffer);
    if (slot->comp != NULL) {
        uct_invoke_completion(slot->comp, status);
    }
}


ucs_status_t uct_dcx_ep_get_bcopy(uct_ep_h tl_ep,
                                  uct_unpack_callback_t unpack_cb, void *arg,
                                  size_t length, uint64_t remote_addr,
                                  uct_rkey_t rkey, uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = MLX5_OPCODE_RDMA_READ,
               .flags  = MLX5_WQE_CTRL_CQ_UPDATE,
               .done   = uct_dcx_rma_done_get_bcopy,
               .comp   = comp,
    };
    uct_dcx_desc_t *desc;
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    UCT_CHECK_LENGTH(length, 0, queues->limits.rma_bcopy, "get_bcopy");
    UCT_SKIP_ZERO_LENGTH(length);

    dci = uct_dcx_tx_get(&queues->dci, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    desc = ucs_mpool_get_inline(&queues->desc_mp);
    if (ucs_unlikely(desc == NULL)) {
        return uct_dcx_tx_no_memory(&queues->dci, dci);
    }

    desc->unpack_cb = unpack_cb;
    desc->arg       = arg;
    desc->length    = length;

    tx.buffer = desc;
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_raddr(&wqe, remote_addr, rkey);
    uct_dcx_wqe_data(&wqe, uct_dcx_desc_payload(desc), length, desc->lkey);
    uct_dcx_post_end(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    return UCS_INPROGRESS;
}
