/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Sends tagged messages of each kind, and records the tags that a peer without
 * posted receives gets.
 */
#ifndef DCX_TEST_DCX_TAG_SOURCE_H
#define DCX_TEST_DCX_TAG_SOURCE_H

#include "dcx_match_bench.h"

enum tag_kind { SHORT, BCOPY, ZCOPY, RNDV, REQUEST, NUM_KINDS };

/* Tags of the unexpected messages of a peer, in order of arrival */
struct tag_note {
    explicit tag_note(dcx_loop &loop)
    {
        loop.on_eager = [this](void *, size_t, unsigned, uct_tag_t tag,
                               uint64_t) {
            tags.push_back(tag);
            return UCS_OK;
        };
        loop.on_rndv = [this](uct_tag_t tag, const void *, unsigned, uint64_t,
                              size_t, const void *) {
            tags.push_back(tag);
            return UCS_OK;
        };
    }

    std::vector<uint64_t> tags;
};

/* Memory of an interface that tagged messages are sent from */
class tag_source {
public:
    tag_source(dcx_loop &loop, size_t length = 100) : mem(loop, length) {}

    static size_t pack(void *dst, void *arg)
    {
        const dcx_tag_mem &mem = ((tag_source *)arg)->mem;

        memcpy(dst, mem.bytes.data(), mem.bytes.size());
        return mem.bytes.size();
    }

    /* Calls UCT's function of that kind. An operation in progress ends with
     * `end`. Stores the handle of a rendezvous, for a cancel, in `op`. */
    ucs_status_t send(tag_kind kind, uct_ep_h ep, uct_tag_t tag, dcx_end &end,
                      void **op = NULL)
    {
        ucs_status_ptr_t ptr;
        ssize_t length;

        switch (kind) {
        case SHORT:
            return uct_ep_tag_eager_short(ep, tag, mem.bytes.data(), 8);
        case BCOPY:
            length = uct_ep_tag_eager_bcopy(ep, tag, 7, pack, this, 0);
            return (length < 0) ? (ucs_status_t)length : UCS_OK;
        case ZCOPY:
            return uct_ep_tag_eager_zcopy(ep, tag, 0, &mem.iov, 1, 0,
                                          &end.comp);
        case RNDV:
            ptr = uct_ep_tag_rndv_zcopy(ep, tag, "header", 6, &mem.iov, 1, 0,
                                        &end.comp);
            if (UCS_PTR_IS_ERR(ptr)) {
                return UCS_PTR_STATUS(ptr);
            }
            if (op != NULL) {
                *op = ptr;
            }
            return UCS_INPROGRESS;
        default:
            return uct_ep_tag_rndv_request(ep, tag, "header", 6, 0);
        }
    }

    dcx_tag_mem mem;
};

#endif
