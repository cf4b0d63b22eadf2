/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Base of tests of one endpoint, `m_ep`, which may fail. Checks at the end that
 * the loop's own endpoint still works, and that the test has taken all that was
 * logged.
 */
#ifndef DCX_TEST_DCX_EP_BENCH_H
#define DCX_TEST_DCX_EP_BENCH_H

#include "dcx_end.h"
#include "dcx_loop.h"
#include "ucx_log.h"

/* Parameter: true if the initiator is shared */
class dcx_ep_bench : public testing::TestWithParam<bool> {
protected:
    dcx_ep_bench() : m_ep(m_dcx.make_ep())
    {
        m_dcx.survives_errors = true;
        m_remote              = (uintptr_t)m_dcx.mem.data() + 8192;
        m_rkey                = dcx_peek_rkey(m_dcx.memh);
        m_iov.buffer          = m_dcx.mem.data();
        m_iov.length          = 64;
        m_iov.memh            = m_dcx.memh;
        m_iov.count           = 1;
    }

    ~dcx_ep_bench()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        /* the other endpoint works at once, unless a grant still uses the only
         * initiator */
        progress_until([&] {
            return uct_ep_put_short(m_dcx.ep, m_dcx.mem.data(), 8, m_remote,
                                    m_rkey) != UCS_ERR_NO_RESOURCE;
        });
        for (unsigned i = 0; i < 3; i++) {
            EXPECT_EQ(UCS_OK, uct_ep_put_short(m_dcx.ep, m_dcx.mem.data(), 8,
                                               m_remote, m_rkey));
        }
        m_dcx.flush();
        EXPECT_EQ("", m_log.take());
    }

    ucs_status_t put_short()
    {
        return uct_ep_put_short(m_ep, m_dcx.mem.data(), 8, m_remote, m_rkey);
    }

    /* @allowed: false for an rkey that the device refuses */
    ucs_status_t put_zcopy(dcx_end &end, bool allowed)
    {
        return uct_ep_put_zcopy(m_ep, &m_iov, 1, m_remote,
                                allowed ? m_rkey : m_rkey ^ ~0xffu, &end.comp);
    }

    ucs_status_t flush(unsigned flags, dcx_end *end = NULL)
    {
        return uct_ep_flush(m_ep, flags, (end != NULL) ? &end->comp : NULL);
    }

    ucs_status_t cancel(dcx_end *end = NULL)
    {
        return flush(UCT_FLUSH_FLAG_CANCEL, end);
    }

    void progress_until(const std::function<bool()> &is_done)
    {
        dcx_deadline deadline;

        while (!is_done()) {
            ASSERT_FALSE(deadline.is_over());
            uct_worker_progress(m_dcx.worker);
        }
    }

    void wait_for_error(ucs_status_t status)
    {
        progress_until([&] { return !m_dcx.errors.empty(); });
        EXPECT_EQ(std::vector<ucs_status_t>{status}, m_dcx.errors);
    }

    /* Makes the endpoint fail by a put that its peer refuses. */
    void fail()
    {
        dcx_end end;

        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, false));
        wait_for_error(UCS_ERR_CONNECTION_RESET);
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
        m_log.take();
    }

    /* Posts until there is no room, or no quota is left. Returns the number of
     * operations. */
    unsigned fill()
    {
        unsigned count = 0;

        while (put_short() == UCS_OK) {
            count++;
        }
        return count;
    }

    static size_t pack(void *, void *)
    {
        ADD_FAILURE() << "packed for a failed endpoint";
        return 0;
    }

    static void unpack(void *, const void *, size_t)
    {
        ADD_FAILURE() << "unpacked for a failed endpoint";
    }

    ucx_log_reader m_log;
    dcx_loop m_dcx;
    uct_ep_h m_ep;
    uct_iov_t m_iov = {};
    uint64_t m_remote;
    uct_rkey_t m_rkey;
};

#endif
