/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Tagged messages, the sending side. Called by UCT in the interface's thread;
 * the contract is in uct/api/uct.h. On the wire a message is a struct ibv_tmh
 * and the user's data:
 *
 *   eager     SEND, or SEND_IMM with the user's immediate: the upper half in
 *             app_ctx, the lower half in the immediate of the WQE
 *   request   of a rendezvous that the user carries out: as eager, but SEND_IMM
 *             with an immediate of 0, which no eager message has
 *   rndv      RVH and RAVH follow the TMH, whose app_ctx is an id
 *             (dcx_tm_rndv.h): a device that has a match fetches the data
 *             (UCX 1.13, rc_mlx5.inl and dc_mlx5.h)
 *
 * The tag is sent in host byte order: only bytes are compared. Each message may
 * take a receive buffer of the peer, and so takes a credit. All carry the
 * solicited bit, as active messages do.
 */
#include "dcx_strided.h"
#include "uct/dcx/fc/dcx_fc.h"
#include "uct/dcx/queue/dcx_desc.h"
#include "uct/dcx/tm/dcx_tm.h"

#include <ucs/debug/log.h>


/* Bytes by which a tagged message's header exceeds an active message's */
#define UCT_DCX_TAG_MORE (sizeof(struct ibv_tmh) - sizeof(uct_dcx_am_hdr_t))


/* The header of a rendezvous request */
typedef struct uct_dcx_tag_rndv_hdr {
    struct ibv_tmh tmh;
    struct ibv_rvh rvh;
    struct prm_ravh ravh;
} uct_dcx_tag_rndv_hdr_t;

static_assert(sizeof(uct_dcx_tag_rndv_hdr_t) == UCT_DCX_TM_RNDV_HDR, "no gaps");


/* Calls uct_dcx_fc_get(). If it returns NULL, the operation returns
 * uct_dcx_tag_no_resource(). */
static UCS_F_ALWAYS_INLINE uct_dcx_dci_t *
uct_dcx_tag_get(uct_dcx_queues_t *queues, uct_dcx_ep_t *ep)
{
    return ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_NO_TM) ?
               NULL :
               uct_dcx_fc_get(queues, ep);
}


static UCS_F_NOINLINE ucs_status_t uct_dcx_tag_no_resource(uct_dcx_ep_t *ep)
{
    if (!(ep->flags & UCT_DCX_EP_FLAG_NO_TM)) {
        return uct_dcx_ep_no_resource(ep);
    }

    ucs_error("tagged message to a peer without tag matching by the device: "
              "set UCX_DCX_TM_ENABLE=y there, too");
    return UCS_ERR_UNSUPPORTED;
}


static UCS_F_ALWAYS_INLINE uint8_t uct_dcx_tag_opcode(uint64_t imm)
{
    return (imm == 0) ? MLX5_OPCODE_SEND : MLX5_OPCODE_SEND_IMM;
}


static UCS_F_ALWAYS_INLINE struct ibv_tmh uct_dcx_tag_tmh(uct_tag_t tag,
                                                          uint64_t imm)
{
    return (struct ibv_tmh){
        .opcode  = IBV_TMH_EAGER,
        .app_ctx = htobe32(imm >> 32),
        .tag     = tag,
    };
}


/* Opens the inline segment of an eager message, for its header and @length
 * bytes. */
static UCS_F_ALWAYS_INLINE void uct_dcx_tag_inline_begin(uct_dcx_wqe_t *wqe,
                                                         uct_tag_t tag,
                                                         uint64_t imm,
                                                         size_t length)
{
    const struct ibv_tmh tmh = uct_dcx_tag_tmh(tag, imm);

    uct_dcx_wqe_inline_begin(wqe, sizeof(tmh) + length);
    uct_dcx_wqe_inline_head(wqe, &tmh, sizeof(tmh));
}


/* --- short ---------------------------------------------------------------- */

/* Posts an eager message, or a request, that is all inline. */
static UCS_F_ALWAYS_INLINE ucs_status_t uct_dcx_tag_short(uct_ep_h tl_ep,
                                                          uct_tag_t tag,
                                                          const void *data,
                                                          size_t length,
                                                          uint8_t opcode)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = opcode,
               .flags  = MLX5_WQE_CTRL_SOLICITED,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    UCT_CHECK_LENGTH(length, 0, queues->limits.tag.max_short,
                     (opcode == MLX5_OPCODE_SEND) ? "tag_eager_short" :
                                                    "tag_rndv_request");

    dci = uct_dcx_tag_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_tag_no_resource(ep);
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_tag_inline_begin(&wqe, tag, 0, length);
    uct_dcx_wqe_inline_put(&wqe, data, length);
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, TAG, SHORT, length);
    return UCS_OK;
}


ucs_status_t uct_dcx_ep_tag_eager_short(uct_ep_h tl_ep, uct_tag_t tag,
                                        const void *data, size_t length)
{
    return uct_dcx_tag_short(tl_ep, tag, data, length, MLX5_OPCODE_SEND);
}


ucs_status_t uct_dcx_ep_tag_rndv_request(uct_ep_h tl_ep, uct_tag_t tag,
                                         const void *header,
                                         unsigned header_length, unsigned flags)
{
    return uct_dcx_tag_short(tl_ep, tag, header, header_length,
                             MLX5_OPCODE_SEND_IMM);
}


/* --- copied --------------------------------------------------------------- */

/* Sends a message by way of a buffer; with @has_memory by device memory, if a
 * segment is free. */
static UCS_F_ALWAYS_INLINE ssize_t
uct_dcx_tag_bcopy(uct_ep_h tl_ep, uct_tag_t tag, uint64_t imm,
                  uct_pack_callback_t pack_cb, void *arg, int has_memory)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = uct_dcx_tag_opcode(imm),
               .flags  = MLX5_WQE_CTRL_SOLICITED,
               .imm    = imm,
               .done   = uct_dcx_desc_done,
    };
    uct_dcx_desc_t *desc, *seg;
    struct ibv_tmh *tmh;
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    const void *data;
    size_t length;

    dci = uct_dcx_tag_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_tag_no_resource(ep);
    }

    desc = ucs_mpool_get_inline(&queues->desc_mp);
    if (ucs_unlikely(desc == NULL)) {
        return uct_dcx_tx_no_memory(&queues->dci, dci);
    }

    tmh    = uct_dcx_desc_payload(desc);
    *tmh   = uct_dcx_tag_tmh(tag, imm);
    length = pack_cb(tmh + 1, arg);
    ucs_assertv(length <= queues->limits.tag.bcopy, "packed %zu of %zu bytes",
                length, queues->limits.tag.bcopy);
    if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_SMALL) &&
        !uct_dcx_ep_fits(ep, dci, length + UCT_DCX_TAG_MORE)) {
        ucs_mpool_put(desc);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    data = tmh;
    if (has_memory && ((sizeof(*tmh) + length) <= queues->dm.max) &&
        ((seg = uct_dcx_dm_get(&queues->dm)) != NULL)) {
        data = uct_dcx_dm_copy(&queues->dm, seg, tmh, sizeof(*tmh) + length);
        ucs_mpool_put_inline(desc);
        uct_dcx_tx_signal(&queues->dci, dci);
        desc = seg;
    }

    tx.buffer = desc;
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_data(&wqe, data, sizeof(*tmh) + length, desc->lkey);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, TAG, BCOPY, length);
    return length;
}


ssize_t uct_dcx_ep_tag_eager_bcopy(uct_ep_h ep, uct_tag_t tag, uint64_t imm,
                                   uct_pack_callback_t pack_cb, void *arg,
                                   unsigned flags)
{
    return uct_dcx_tag_bcopy(ep, tag, imm, pack_cb, arg, 0);
}


ssize_t uct_dcx_ep_tag_eager_bcopy_memory(uct_ep_h ep, uct_tag_t tag,
                                          uint64_t imm,
                                          uct_pack_callback_t pack_cb,
                                          void *arg, unsigned flags)
{
    return uct_dcx_tag_bcopy(ep, tag, imm, pack_cb, arg, 1);
}


/* --- zero copy ------------------------------------------------------------ */

ucs_status_t uct_dcx_ep_tag_eager_zcopy(uct_ep_h tl_ep, uct_tag_t tag,
                                        uint64_t imm, const uct_iov_t *iov,
                                        size_t iovcnt, unsigned flags,
                                        uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = uct_dcx_tag_opcode(imm),
               .flags  = MLX5_WQE_CTRL_SOLICITED | MLX5_WQE_CTRL_CQ_UPDATE,
               .imm    = imm,
               .done   = uct_dcx_post_done_comp,
               .comp   = comp,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    size_t length;

    if (ucs_unlikely(!uct_dcx_iov_is_plain(iov, iovcnt, queues->limits.tag.iov,
                                           &length))) {
        return uct_dcx_strided_tag_eager_zcopy(tl_ep, tag, imm, iov, iovcnt,
                                               flags, comp);
    }

    UCT_CHECK_LENGTH(length, 0, queues->limits.tag.bcopy, "tag_eager_zcopy");

    dci = uct_dcx_tag_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_tag_no_resource(ep);
    }

    if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_SMALL) &&
        !uct_dcx_ep_fits(ep, dci, length + UCT_DCX_TAG_MORE)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_tag_inline_begin(&wqe, tag, imm, 0);
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_post_iov(&wqe, iov, iovcnt);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, TAG, ZCOPY, length);
    return UCS_INPROGRESS;
}


/* --- rendezvous ----------------------------------------------------------- */

/* Fills the header of a request. The service level in the upper byte of sl_dct
 * is 0, as in UCX: its position in that byte is not public. */
static void uct_dcx_tag_rndv_fill(uct_dcx_tag_rndv_hdr_t *hdr,
                                  const uct_dcx_rx_t *rx, uct_tag_t tag,
                                  const uct_dcx_op_t *op, const uct_iov_t *iov,
                                  size_t length)
{
    hdr->tmh = (struct ibv_tmh){
        .opcode  = IBV_TMH_RNDV,
        .app_ctx = op->id,
        .tag     = tag,
    };
    hdr->rvh                = (struct ibv_rvh){};
    hdr->ravh.sl_dct        = htobe32(rx->dctn);
    hdr->ravh.reserved      = 0;
    hdr->ravh.dc_access_key = htobe64(rx->dc_key);
    if (length > 0) {
        hdr->rvh.va   = htobe64((uintptr_t)iov->buffer);
        hdr->rvh.rkey = htobe32(uct_dcx_mem_give_rkey(iov->memh));
        hdr->rvh.len  = htobe32(length);
    }
}


/* Posts the request. Its slot counts as using the user's memory: once the
 * endpoint is destroyed, and the user takes the data back, no request may
 * leave. The device limits the length of the whole, so the first bytes of the
 * user's header go into free bytes of the TMH. */
static void uct_dcx_tag_rndv_post(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep,
                                  uct_dcx_tag_rndv_hdr_t *hdr,
                                  const uint8_t *header, unsigned header_length)
{
    unsigned in_tmh   = ucs_min(header_length, UCT_DCX_TM_RNDV_IN_TMH);
    unsigned rest     = header_length - in_tmh;
    uct_dcx_post_t tx = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED,
        .done   = uct_dcx_post_done_comp,
    };
    uct_dcx_wqe_t wqe;

    hdr->tmh.reserved[0] = in_tmh;
    uct_dcx_wqe_copy(&hdr->tmh.reserved[1], header, in_tmh);

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_begin(&wqe, sizeof(*hdr) + rest);
    uct_dcx_wqe_inline_put(&wqe, hdr, sizeof(*hdr));
    uct_dcx_wqe_inline_put(&wqe, header + in_tmh, rest);
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
}


ucs_status_ptr_t
uct_dcx_ep_tag_rndv_zcopy(uct_ep_h tl_ep, uct_tag_t tag, const void *header,
                          unsigned header_length, const uct_iov_t *iov,
                          size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_tag_rndv_hdr_t hdr;
    uct_dcx_dci_t *dci;
    uct_dcx_op_t *op;
    size_t length;

    if (ucs_unlikely(!uct_dcx_iov_is_plain(iov, iovcnt, 1, &length))) {
        return uct_dcx_strided_tag_rndv_zcopy(tl_ep, tag, header, header_length,
                                              iov, iovcnt, flags, comp);
    }

    UCT_CHECK_PARAM_PTR(header_length <= queues->limits.tag.rndv_hdr,
                        "tag_rndv_zcopy with a header of %u bytes",
                        header_length);
    UCT_CHECK_PARAM_PTR(length <= queues->limits.tag.rndv_zcopy,
                        "tag_rndv_zcopy of %zu bytes", length);

    dci = uct_dcx_tag_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return UCS_STATUS_PTR(uct_dcx_tag_no_resource(ep));
    }

    op = uct_dcx_tm_rndv_begin(&queues->tm->rndv, ep, comp);
    if (ucs_unlikely(op == NULL)) {
        return UCS_STATUS_PTR(uct_dcx_tx_no_memory(&queues->dci, dci));
    }

    uct_dcx_tag_rndv_fill(&hdr, &queues->rx, tag, op, iov, length);
    uct_dcx_tag_rndv_post(dci, ep, &hdr, header, header_length);
    UCT_TL_EP_STAT_OP(&ep->super, TAG, ZCOPY, length);
    return op;
}


ucs_status_t uct_dcx_ep_tag_rndv_cancel(uct_ep_h tl_ep, void *op)
{
    uct_completion_t *comp = ((uct_dcx_op_t *)op)->comp;

    uct_dcx_tm_rndv_cancel(op);
    uct_dcx_strided_canceled(comp);
    return UCS_OK;
}
