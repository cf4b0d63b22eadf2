/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of puts and gets of lists: an endpoint of an interface to
 * itself, local and remote memory, and lists of pieces in them with the result
 * that each should have.
 */
#ifndef DCX_TEST_DCX_LIST_BENCH_H
#define DCX_TEST_DCX_LIST_BENCH_H

#include "dcx_end.h"
#include "dcx_layouts.h"
#include "dcx_region.h"
#include "ucx_log.h"

/* The arrays of a list */
struct dcx_list_args {
    void add(uint8_t *buffer, size_t length, uct_mem_h memh, uint64_t remote,
             uct_rkey_t rkey, size_t blocks = 1, size_t stride = 0)
    {
        buffers.push_back(buffer);
        lengths.push_back(length);
        memhs.push_back(memh);
        remotes.push_back(remote);
        rkeys.push_back(rkey);
        counts.push_back(blocks);
        strides.push_back(stride);
        has_counts |= blocks != 1;
    }

    std::vector<void *> buffers;
    std::vector<size_t> lengths;
    std::vector<uct_mem_h> memhs;
    std::vector<uint64_t> remotes;
    std::vector<uct_rkey_t> rkeys;
    std::vector<size_t> counts, strides;
    bool has_counts = false;
};

/* Parameter: true for gets, false for puts */
class dcx_list_bench : public testing::TestWithParam<bool> {
protected:
    enum { SIZE = 1 << 19 };

    dcx_list_bench() :
        m_near(m_dcx, SIZE, 1), m_far(m_dcx, SIZE, 2), m_ep(m_dcx.make_ep()),
        m_rkey(dcx_peek_rkey(m_far.memh)), m_max(m_max_count(m_ep))
    {
        m_dcx.survives_errors = true;
    }

    ~dcx_list_bench()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        m_dcx.flush();
        EXPECT_EQ("", m_log.take());
    }

    template <typename F> static F *find(const char *name)
    {
        return (F *)dlsym(dlopen(dcx_loop::module(), RTLD_NOW), name);
    }

    /* Adds a piece at these offsets, and what it should do. */
    void add(size_t near, size_t length, size_t far, size_t blocks = 1,
             size_t stride = 0)
    {
        std::vector<uint8_t> &to = GetParam() ? m_want_near : m_want_far;
        const std::vector<uint8_t> &from = GetParam() ? m_far.bytes :
                                                        m_near.bytes;

        m_list.add(m_near.bytes.data() + near, length, m_near.memh,
                   (uintptr_t)m_far.bytes.data() + far, m_rkey, blocks, stride);
        for (size_t i = 0; (i < blocks) && !to.empty(); i++) {
            memcpy(&to[(GetParam() ? near : far) + (i * stride)],
                   &from[(GetParam() ? far : near) + (i * stride)], length);
        }
    }

    /* Forgets the list. Pieces that are added from now on are expected. */
    void begin()
    {
        m_list      = dcx_list_args();
        m_want_near = m_near.bytes;
        m_want_far  = m_far.bytes;
    }

    /* Adds pieces of this length, not adjacent on any side. */
    void add_apart(size_t count, size_t length)
    {
        for (size_t i = 0; i < count; i++) {
            add(i * (length + 8), length, (count - 1 - i) * (length + 16));
        }
    }

    ucs_status_t post(const dcx_list_args &list, uct_completion_t *comp,
                      uct_ep_h ep = NULL)
    {
        return (GetParam() ? m_get : m_put)(
            (ep != NULL) ? ep : m_ep, list.buffers.data(), list.lengths.data(),
            list.memhs.data(), list.remotes.data(), list.rkeys.data(),
            list.has_counts ? list.counts.data() : NULL,
            list.has_counts ? list.strides.data() : NULL, list.lengths.size(),
            comp);
    }

    /* Posts a list, as soon as there is room. */
    void post_soon(const dcx_list_args &list, uct_completion_t *comp,
                   uct_ep_h ep)
    {
        dcx_deadline deadline;
        ucs_status_t status;

        while ((status = post(list, comp, ep)) == UCS_ERR_NO_RESOURCE) {
            deadline.check("room for a list");
            uct_worker_progress(m_dcx.worker);
        }
        ASSERT_EQ(UCS_INPROGRESS, status);
    }

    void expect_bytes()
    {
        EXPECT_TRUE(m_want_near == m_near.bytes) << "local memory";
        EXPECT_TRUE(m_want_far == m_far.bytes) << "remote memory";
    }

    /* Posts the list, waits for its end, and checks all bytes. */
    void run()
    {
        dcx_end end;

        post_soon(m_list, &end.comp, m_ep);
        m_dcx.flush();
        EXPECT_EQ(UCS_OK, end.status);
        EXPECT_EQ(1u, end.count);
        expect_bytes();
    }

    ucs_status_t put_short(uct_ep_h ep)
    {
        return uct_ep_put_short(ep, "a flag", 8,
                                (uintptr_t)m_dcx.mem.data() + 8192,
                                dcx_peek_rkey(m_dcx.memh));
    }

    /* Posts short puts until there is no room. Returns their number. */
    unsigned fill(uct_ep_h ep)
    {
        unsigned count = 0;

        while (put_short(ep) == UCS_OK) {
            count++;
        }
        return count;
    }

    decltype(uct_dcx_put_sgl_zcopy) *m_put =
        find<decltype(uct_dcx_put_sgl_zcopy)>("uct_dcx_put_sgl_zcopy");
    decltype(uct_dcx_get_sgl_zcopy) *m_get =
        find<decltype(uct_dcx_get_sgl_zcopy)>("uct_dcx_get_sgl_zcopy");
    decltype(uct_dcx_max_sgl_count) *m_max_count =
        find<decltype(uct_dcx_max_sgl_count)>("uct_dcx_max_sgl_count");

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    dcx_region m_near, m_far;
    uct_ep_h m_ep;
    uct_rkey_t m_rkey;
    size_t m_max;
    dcx_list_args m_list;
    std::vector<uint8_t> m_want_near, m_want_far;
};

/* A list as a pending request */
struct dcx_list_request {
    explicit dcx_list_request(const std::function<ucs_status_t()> &what) :
        post(what)
    {
        req.func = called;
    }

    static ucs_status_t called(uct_pending_req_t *req)
    {
        dcx_list_request *self = (dcx_list_request *)req; /* its first member */

        self->status = self->post();
        return (self->status == UCS_ERR_NO_RESOURCE) ? self->status : UCS_OK;
    }

    uct_pending_req_t req = {};
    ucs_status_t status   = UCS_ERR_NO_RESOURCE;
    std::function<ucs_status_t()> post;
};

#endif
