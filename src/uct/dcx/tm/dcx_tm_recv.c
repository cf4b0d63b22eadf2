/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Posts a tagged buffer that is one piece of memory; see dcx_tm.h.
 */
#include "dcx_tm_cmd.h"
#include "uct/dcx/mem/dcx_mem.h"


ucs_status_t
uct_dcx_tm_recv_zcopy(uct_iface_h tl_iface, uct_tag_t tag, uct_tag_t tag_mask,
                      const uct_iov_t *iov, size_t iovcnt,
                      uct_tag_context_t *ctx)
{
    uct_dcx_tm_post_t post = {
        .tag  = tag,
        .mask = tag_mask,
        .lkey = MLX5_INVALID_LKEY
    };

    if (ucs_unlikely((iovcnt != 1) || (iov->count != 1))) {
        return uct_dcx_tm_strided_recv_zcopy(tl_iface, tag, tag_mask, iov,
                                             iovcnt, ctx);
    }

    if (ucs_likely(iov->length > 0)) {
        if (ucs_unlikely(uct_dcx_mem_is_layout(iov->memh))) {
            return uct_dcx_tm_strided_recv_zcopy(tl_iface, tag, tag_mask, iov,
                                                 iovcnt, ctx);
        }
        post.lkey = uct_dcx_mem_lkey(iov->memh);
        post.addr = (uintptr_t)iov->buffer;
    }

    post.buffer = iov->buffer;
    post.length = iov->length;
    return uct_dcx_tm_recv(ucs_derived_of(tl_iface, uct_dcx_queues_t)->tm,
                           &post, ctx);
}
