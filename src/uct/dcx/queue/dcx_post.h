/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Posting: begins a WQE with the address of the peer, and hands it to the
 * device. Inlined into the operations (ep/) and into flow control. A
 * global route header, which RoCE and devices without the compact address
 * vector always need, and a shared initiator are handled out of line, after the
 * segments are written. Used by the interface's thread.
 */
#ifndef UCT_DCX_POST_H
#define UCT_DCX_POST_H

#include "dcx_endpoint.h"
#include "uct/dcx/strided/dcx_iov.h"

#include <ucs/debug/log.h>
#include <uct/base/uct_iov.inl>


/* Starts a WQE: leaves the ctrl segment open, and adds the peer's address. */
static UCS_F_ALWAYS_INLINE void uct_dcx_post_begin(uct_dcx_wqe_t *wqe,
                                                   const uct_dcx_dci_t *dci,
                                                   const uct_dcx_ep_t *ep)
{
    uct_dcx_wqe_begin(wqe, dci->txq.sq.start, dci->txq.sq.mask, dci->txq.sq.pi);
    uct_dcx_wqe_av(wqe, &ep->av);
}


/* uct_dcx_post_end() of an endpoint with one of UCT_DCX_EP_FLAGS_SPECIAL; @ds
 * segments are written. */
void uct_dcx_post_end_special(uct_dcx_dci_t *dci, uct_dcx_ep_t *ep, unsigned ds,
                              uct_dcx_post_t *tx) __attribute__((cold));


/* Logs a WQE before it is posted, at UCX_LOG_LEVEL=data, with the text of the
 * user's tracer for an active message. Compiled out if UCX is built without
 * that level (UCS_MAX_LOG_LEVEL); otherwise it costs a test for each post. */
void uct_dcx_post_log(const uct_dcx_wqe_t *wqe, const uct_dcx_dci_t *dci,
                      uct_dcx_ep_t *ep, uint8_t opcode) __attribute__((cold));


/* Posts an operation; all segments of @wqe are written. */
static UCS_F_ALWAYS_INLINE void uct_dcx_post_end(const uct_dcx_wqe_t *wqe,
                                                 uct_dcx_dci_t *dci,
                                                 uct_dcx_ep_t *ep,
                                                 const uct_dcx_post_t *tx)
{
    uct_dcx_wqe_t shown; /* a copy, so that @wqe and @tx stay in registers */
    uct_dcx_post_t copy;

    if (ucs_log_is_enabled(UCS_LOG_LEVEL_TRACE_DATA)) {
        shown = *wqe;
        uct_dcx_post_log(&shown, dci, ep, tx->opcode);
    }

    if (ucs_likely(!(ep->flags & UCT_DCX_EP_FLAGS_SPECIAL))) {
        uct_dcx_txq_post(&dci->txq, wqe, tx);
    } else {
        copy = *tx;
        uct_dcx_post_end_special(dci, ep, wqe->ds, &copy);
    }
}


/* Adds a data segment, if the piece of memory is not empty. */
static UCS_F_ALWAYS_INLINE void uct_dcx_post_piece(uct_dcx_wqe_t *wqe,
                                                   const uct_iov_t *iov)
{
    if (iov->length > 0) {
        uct_dcx_wqe_data(wqe, iov->buffer, iov->length,
                         uct_dcx_mem_lkey(iov->memh));
    }
}


/* Adds a data segment for each piece; they are plain (dcx_iov.h). */
static UCS_F_ALWAYS_INLINE void
uct_dcx_post_iov(uct_dcx_wqe_t *wqe, const uct_iov_t *iov, size_t iovcnt)
{
    size_t i;

    if (ucs_likely(iovcnt == 1)) {
        uct_dcx_post_piece(wqe, iov);
        return;
    }

    for (i = 0; i < iovcnt; ++i) {
        uct_dcx_post_piece(wqe, &iov[i]);
    }
}


/* Posts a write of 0 bytes, which only a live peer answers. @comp ends with the
 * answer; it may be NULL. */
void uct_dcx_post_probe(uct_dcx_ep_t *ep, uct_dcx_dci_t *dci,
                        uct_completion_t *comp);

/* Ends an operation: calls the user's completion, if there is one. */
void uct_dcx_post_done_comp(uct_dcx_txq_t *txq, uct_dcx_slot_t *slot,
                            ucs_status_t status);

#endif
