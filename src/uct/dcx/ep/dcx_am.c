/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Active messages, the sending side. Called by UCT in the interface's thread. A
 * message on the wire is uct_dcx_am_hdr_t and the user's data. All carry the
 * solicited bit, which wakes a peer that waits for events.
 */
#include "dcx_strided.h"
#include "uct/dcx/fc/dcx_fc.h"
#include "uct/dcx/queue/dcx_desc.h"


static UCS_F_ALWAYS_INLINE void uct_dcx_am_set_hdr(uct_dcx_am_hdr_t *hdr,
                                                   uint8_t id)
{
    hdr->opcode = IBV_TMH_NO_TAG;
    hdr->am_id  = id;
}


/* Opens the inline segment of a message, for its header and @length bytes. */
static UCS_F_ALWAYS_INLINE void
uct_dcx_am_inline_begin(uct_dcx_wqe_t *wqe, uint8_t id, size_t length)
{
    const size_t hdr_size = sizeof(uct_dcx_am_hdr_t);

    uct_dcx_wqe_inline_begin(wqe, hdr_size + length);
    uct_dcx_am_set_hdr(uct_dcx_wqe_inline_place(wqe, hdr_size), id);
}


/* --- short ---------------------------------------------------------------- */

ucs_status_t uct_dcx_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                 const void *payload, unsigned length)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = MLX5_OPCODE_SEND,
               .flags  = MLX5_WQE_CTRL_SOLICITED,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(sizeof(header) + length, 0, queues->limits.am_short,
                     "am_short");

    dci = uct_dcx_fc_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_am_inline_begin(&wqe, id, sizeof(header) + length);
    uct_dcx_wqe_inline_head(&wqe, &header, sizeof(header));
    uct_dcx_wqe_inline_put(&wqe, payload, length);
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, sizeof(header) + length);
    return UCS_OK;
}


ucs_status_t uct_dcx_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                     const uct_iov_t *iov, size_t iovcnt)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    size_t length            = uct_iov_total_length(iov, iovcnt);
    uct_dcx_post_t tx        = {
               .opcode = MLX5_OPCODE_SEND,
               .flags  = MLX5_WQE_CTRL_SOLICITED,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    size_t i;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length, 0, queues->limits.am_short, "am_short_iov");

    dci = uct_dcx_fc_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_am_inline_begin(&wqe, id, length);
    for (i = 0; i < iovcnt; ++i) {
        uct_dcx_wqe_inline_put(&wqe, iov[i].buffer,
                               uct_iov_get_length(&iov[i]));
    }
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, length);
    return UCS_OK;
}


/* --- copied --------------------------------------------------------------- */

/* The bytes before the payload of a copied message, in its buffer, and in the
 * WQE of a short one */
typedef struct uct_dcx_am_head {
    __be32 byte_count; /* of the inline segment */
    uct_dcx_am_hdr_t hdr;
} UCS_S_PACKED uct_dcx_am_head_t;

static_assert(sizeof(uct_dcx_desc_t) + sizeof(uct_dcx_am_head_t) <=
                  UCT_DCX_DESC_PAYLOAD,
              "both are before the payload");


static UCS_F_ALWAYS_INLINE uct_dcx_am_head_t *
uct_dcx_am_head(uct_dcx_desc_t *desc)
{
    return (uct_dcx_am_head_t *)uct_dcx_desc_payload(desc) - 1;
}


/* Copies a message of @length bytes from @desc into the WQE; this saves the
 * device a DMA read. */
static UCS_F_ALWAYS_INLINE ssize_t uct_dcx_am_post_short(uct_dcx_ep_t *ep,
                                                         uct_dcx_dci_t *dci,
                                                         uct_dcx_desc_t *desc,
                                                         size_t length)
{
    uct_dcx_am_head_t *head = uct_dcx_am_head(desc);
    uct_dcx_post_t tx       = {
              .opcode = MLX5_OPCODE_SEND,
              .flags  = MLX5_WQE_CTRL_SOLICITED,
    };
    uct_dcx_wqe_t wqe;

    head->byte_count = htobe32((MLX5_INLINE_SEG | sizeof(head->hdr)) + length);
    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_inline_image(&wqe, dci->txq.sq.end, head,
                             sizeof(*head) + length);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}


/* Posts a message of @length bytes that the device reads from @hdr on, which is
 * an address for the lkey of @desc. */
static UCS_F_ALWAYS_INLINE ssize_t
uct_dcx_am_post_long(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci, uct_dcx_desc_t *desc,
                     const uct_dcx_am_hdr_t *hdr, size_t length)
{
    uct_dcx_post_t tx = {
        .opcode = MLX5_OPCODE_SEND,
        .flags  = MLX5_WQE_CTRL_SOLICITED,
        .done   = uct_dcx_desc_done,
        .buffer = desc,
    };
    uct_dcx_wqe_t wqe;

    if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_SMALL) &&
        !uct_dcx_ep_fits(ep, dci, length)) {
        ucs_mpool_put(desc);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_wqe_data(&wqe, hdr, sizeof(*hdr) + length, desc->lkey);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    return length;
}


/* Posts a message of @length bytes through @seg of device memory; @desc stays
 * in the pool. The WQE requests a completion, so that the segment is free
 * soon. */
static UCS_F_NOINLINE ssize_t uct_dcx_am_post_memory(uct_dcx_ep_t *ep,
                                                     uct_dcx_dci_t *dci,
                                                     uct_dcx_desc_t *desc,
                                                     uct_dcx_desc_t *seg,
                                                     size_t length)
{
    const uct_dcx_am_hdr_t *hdr = &uct_dcx_am_head(desc)->hdr;

    hdr = uct_dcx_dm_copy(&uct_dcx_ep_queues(ep)->dm, seg, hdr,
                          sizeof(*hdr) + length);
    uct_dcx_tx_signal(&uct_dcx_ep_queues(ep)->dci, dci);
    return uct_dcx_am_post_long(ep, dci, seg, hdr, length);
}


/* Posts a message that is too long for a WQE, but not for device memory: takes
 * @desc, which is the next buffer, out of the pool if no segment is free. */
static UCS_F_ALWAYS_INLINE ssize_t uct_dcx_am_post_medium(uct_dcx_ep_t *ep,
                                                          uct_dcx_dci_t *dci,
                                                          uct_dcx_desc_t *desc,
                                                          size_t length)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);
    uct_dcx_desc_t *seg      = uct_dcx_dm_get(&queues->dm);

    if (seg != NULL) {
        return uct_dcx_am_post_memory(ep, dci, desc, seg, length);
    }
    ucs_mpool_get_inline(&queues->desc_mp);
    return uct_dcx_am_post_long(ep, dci, desc, &uct_dcx_am_head(desc)->hdr,
                                length);
}


/* Posts a message that needs no buffer of the pool after one that did. The next
 * is expected to need none. */
static UCS_F_NOINLINE ssize_t uct_dcx_am_turn_short(uct_dcx_ep_t *ep,
                                                    uct_dcx_dci_t *dci,
                                                    uct_dcx_desc_t *desc,
                                                    size_t length)
{
    uct_dcx_queues_t *queues = uct_dcx_ep_queues(ep);
    uct_dcx_desc_t *seg;
    ssize_t sent;

    ep->super.super.iface->ops.ep_am_bcopy = uct_dcx_ep_am_bcopy_short;
    if (length <= queues->limits.am_short) {
        sent = uct_dcx_am_post_short(ep, dci, desc, length);
    } else {
        seg = uct_dcx_dm_get(&queues->dm);
        if (seg == NULL) {
            return uct_dcx_am_post_long(ep, dci, desc,
                                        &uct_dcx_am_head(desc)->hdr, length);
        }
        sent = uct_dcx_am_post_memory(ep, dci, desc, seg, length);
    }

    ucs_mpool_put_inline(desc);
    return sent;
}


/* Posts a long message after one that was not, and takes its buffer out of the
 * pool. The next is expected to be long. */
static UCS_F_NOINLINE ssize_t uct_dcx_am_turn_long(uct_dcx_ep_t *ep,
                                                   uct_dcx_dci_t *dci,
                                                   size_t length)
{
    uct_dcx_desc_t *desc =
        ucs_mpool_get_inline(&uct_dcx_ep_queues(ep)->desc_mp);

    ep->super.super.iface->ops.ep_am_bcopy = uct_dcx_ep_am_bcopy;
    return uct_dcx_am_post_long(ep, dci, desc, &uct_dcx_am_head(desc)->hdr,
                                length);
}


/* Packs a message into a buffer of the pool; its length is known afterwards. A
 * long message keeps the buffer. A short one is copied out of it, and the
 * buffer stays in the pool. UCT's table of operations has the variant for
 * messages like the last one: @expects_short. */
static UCS_F_ALWAYS_INLINE ssize_t uct_dcx_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                                                    uct_pack_callback_t pack_cb,
                                                    void *arg,
                                                    int expects_short)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_desc_t *desc;
    uct_dcx_dci_t *dci;
    size_t length;

    UCT_CHECK_AM_ID(id);

    dci = uct_dcx_fc_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    desc = uct_dcx_desc_get(&queues->desc_mp, expects_short);
    if (ucs_unlikely(desc == NULL)) {
        return uct_dcx_tx_no_memory(&queues->dci, dci);
    }

    uct_dcx_am_set_hdr(&uct_dcx_am_head(desc)->hdr, id);
    length = pack_cb(uct_dcx_desc_payload(desc), arg);
    ucs_assertv(length <= queues->limits.am_bcopy, "packed %zu of %zu bytes",
                length, queues->limits.am_bcopy);
    if (!expects_short) {
        return (length <= queues->limits.am_copied) ?
                   uct_dcx_am_turn_short(ep, dci, desc, length) :
                   uct_dcx_am_post_long(ep, dci, desc,
                                        &uct_dcx_am_head(desc)->hdr, length);
    }
    return (length <= queues->limits.am_short) ?
               uct_dcx_am_post_short(ep, dci, desc, length) :
           (length <= queues->limits.am_copied) ?
               uct_dcx_am_post_medium(ep, dci, desc, length) :
               uct_dcx_am_turn_long(ep, dci, length);
}


ssize_t uct_dcx_ep_am_bcopy(uct_ep_h ep, uint8_t id,
                            uct_pack_callback_t pack_cb, void *arg,
                            unsigned flags)
{
    return uct_dcx_am_bcopy(ep, id, pack_cb, arg, 0);
}


ssize_t uct_dcx_ep_am_bcopy_short(uct_ep_h ep, uint8_t id,
                                  uct_pack_callback_t pack_cb, void *arg,
                                  unsigned flags)
{
    return uct_dcx_am_bcopy(ep, id, pack_cb, arg, 1);
}


/* --- zero copy ------------------------------------------------------------ */

ucs_status_t uct_dcx_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header,
                                 unsigned header_length, const uct_iov_t *iov,
                                 size_t iovcnt, unsigned flags,
                                 uct_completion_t *comp)
{
    uct_dcx_queues_t *queues = ucs_derived_of(tl_ep->iface, uct_dcx_queues_t);
    uct_dcx_ep_t *ep         = ucs_derived_of(tl_ep, uct_dcx_ep_t);
    uct_dcx_post_t tx        = {
               .opcode = MLX5_OPCODE_SEND,
               .flags  = MLX5_WQE_CTRL_SOLICITED | MLX5_WQE_CTRL_CQ_UPDATE,
               .done   = uct_dcx_post_done_comp,
               .comp   = comp,
    };
    uct_dcx_dci_t *dci;
    uct_dcx_wqe_t wqe;
    size_t length;

    UCT_CHECK_AM_ID(id);
    if (ucs_unlikely(!uct_dcx_iov_is_plain(iov, iovcnt, queues->limits.am_iov,
                                           &length))) {
        return uct_dcx_strided_am_zcopy(tl_ep, id, header, header_length, iov,
                                        iovcnt, flags, comp);
    }

    length += header_length;
    UCT_CHECK_LENGTH(header_length, 0, queues->limits.am_hdr,
                     "am_zcopy header");
    UCT_CHECK_LENGTH(length, 0, queues->limits.am_zcopy, "am_zcopy");

    dci = uct_dcx_fc_get(queues, ep);
    if (ucs_unlikely(dci == NULL)) {
        return uct_dcx_ep_no_resource(ep);
    }

    if (ucs_unlikely(ep->flags & UCT_DCX_EP_FLAG_SMALL) &&
        !uct_dcx_ep_fits(ep, dci, length)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_dcx_post_begin(&wqe, dci, ep);
    uct_dcx_am_inline_begin(&wqe, id, header_length);
    uct_dcx_wqe_inline_put(&wqe, header, header_length);
    uct_dcx_wqe_inline_end(&wqe);
    uct_dcx_post_iov(&wqe, iov, iovcnt);
    uct_dcx_fc_post(&wqe, dci, ep, &tx);
    UCT_TL_EP_STAT_OP(&ep->super, AM, ZCOPY, length);
    return UCS_INPROGRESS;
}
