/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * The end of an endpoint's life: what it does after it has failed, or the user
 * has given it up, with an initiator of its own and on a shared one; and
 * addresses and messages that are refused. Drawing: docs/dcx.md, "The life of
 * an endpoint".
 */
#include "dcx_end.h"
#include "dcx_loop.h"
#include "ucx_log.h"

#include <algorithm>

extern "C" {
#include <uct/base/uct_iface.h>
}

namespace {

/* The parameter: whether the initiator is shared */
class dcx_ep : public testing::TestWithParam<bool> {
protected:
    struct request {
        explicit request(dcx_ep *test) : test(test)
        {
            req.func = called;
        }

        static ucs_status_t called(uct_pending_req_t *req)
        {
            request *self = (request*)req; /* its first member */

            self->status = self->test->put_short();
            return (self->status == UCS_ERR_NO_RESOURCE) ? self->status :
                                                           UCS_OK;
        }

        uct_pending_req_t req = {};
        dcx_ep            *test;
        ucs_status_t      status = UCS_INPROGRESS;
    };

    dcx_ep() : m_ep(m_dcx.make_ep())
    {
        m_dcx.survives_errors = true;
        m_remote              = (uintptr_t)m_dcx.mem.data() + 8192;
        m_rkey                = dcx_peek_rkey(m_dcx.memh);
        m_iov.buffer          = m_dcx.mem.data();
        m_iov.length          = 64;
        m_iov.memh            = m_dcx.memh;
        m_iov.count           = 1;
    }

    ~dcx_ep()
    {
        if (m_ep != NULL) {
            uct_ep_destroy(m_ep);
        }
        /* nobody else has noticed anything, and nothing is lost; a grant may
         * still have the only initiator */
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

    void fail()
    {
        dcx_end end;

        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, false));
        wait_for_error(UCS_ERR_CONNECTION_RESET);
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end.status);
        m_log.take();
    }

    /* Until there is no room, or none of its share */
    unsigned fill()
    {
        unsigned count = 0;

        while (put_short() == UCS_OK) {
            count++;
        }
        return count;
    }

    static size_t pack(void*, void*)
    {
        ADD_FAILURE() << "packed for a failed endpoint";
        return 0;
    }

    static void unpack(void*, const void*, size_t)
    {
        ADD_FAILURE() << "unpacked for a failed endpoint";
    }

    static void purged(uct_pending_req_t*, void *arg)
    {
        ++*(unsigned*)arg;
    }

    /* A queue of its own is stopped: the device may have been faster. On a
     * shared one it is not stopped. */
    static void expect_canceled(const dcx_end &end)
    {
        EXPECT_TRUE((end.status == UCS_ERR_CANCELED) ||
                    (!GetParam() && (end.status == UCS_OK)));
    }

    void expect_refused(ucs_status_t status);
    void expect_gone(ucs_status_t status);

    ucx_log_reader m_log;
    dcx_loop       m_dcx;
    uct_ep_h       m_ep;
    uct_iov_t      m_iov = {};
    uint64_t       m_remote;
    uct_rkey_t     m_rkey;
};

/* Every operation returns the error, and none is posted. */
void dcx_ep::expect_refused(ucs_status_t status)
{
    void *mem = m_dcx.mem.data();
    uint64_t result;
    dcx_end end;

    EXPECT_EQ(status, uct_ep_am_short(m_ep, 5, 0, NULL, 0));
    EXPECT_EQ(status, uct_ep_am_short_iov(m_ep, 5, &m_iov, 1));
    EXPECT_EQ(status, uct_ep_am_bcopy(m_ep, 5, pack, NULL, 0));
    EXPECT_EQ(status, uct_ep_am_zcopy(m_ep, 5, NULL, 0, &m_iov, 1, 0,
                                      &end.comp));
    EXPECT_EQ(status, put_short());
    EXPECT_EQ(status, uct_ep_put_bcopy(m_ep, pack, NULL, m_remote, m_rkey));
    EXPECT_EQ(status, put_zcopy(end, true));
    EXPECT_EQ(status, uct_ep_get_bcopy(m_ep, unpack, mem, 8, m_remote, m_rkey,
                                       &end.comp));
    EXPECT_EQ(status, uct_ep_get_zcopy(m_ep, &m_iov, 1, m_remote, m_rkey,
                                       &end.comp));
    EXPECT_EQ(status, uct_ep_atomic64_post(m_ep, UCT_ATOMIC_OP_ADD, 1,
                                           m_remote, m_rkey));
    EXPECT_EQ(status, uct_ep_atomic64_fetch(m_ep, UCT_ATOMIC_OP_ADD, 1,
                                            &result, m_remote, m_rkey,
                                            &end.comp));
    EXPECT_EQ(status, uct_ep_atomic_cswap64(m_ep, 1, 2, m_remote, m_rkey,
                                            &result, &end.comp));
    EXPECT_EQ(status, uct_ep_check(m_ep, 0, NULL));
    EXPECT_EQ(status, flush(0, &end));
    EXPECT_EQ(0u, end.count);
}

/* ... and what is left to do with it works, more than once. */
void dcx_ep::expect_gone(ucs_status_t status)
{
    request req(this);

    expect_refused(status);
    EXPECT_EQ(UCS_ERR_BUSY, uct_ep_pending_add(m_ep, &req.req, 0));
    EXPECT_EQ(UCS_OK, uct_ep_fence(m_ep, 0));
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
        EXPECT_EQ(UCS_OK, cancel());
    }
    EXPECT_EQ(status, put_short());
    m_dcx.flush();
}

/* --- operations on a failed endpoint -------------------------------------- */

TEST_P(dcx_ep, fails)
{
    fail();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put_short());

    /* who it was, once */
    std::string text = m_log.take();
    char name[64];
    auto addr = m_dcx.iface_addr();

    snprintf(name, sizeof(name), "operation to DCT 0x%x at lid 1, process %d",
             (addr[2] << 16) | (addr[3] << 8) | addr[4], getpid());
    EXPECT_NE(std::string::npos, text.find(name)) << text;
    EXPECT_NE(std::string::npos, text.find("is refused")) << text;
    EXPECT_EQ(1, std::count(text.begin(), text.end(), '\n')) << text;

    expect_gone(UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(1u, m_dcx.errors.size());
}

/* In the completion of an operation that failed, others are to end still. */
TEST_P(dcx_ep, in_callback)
{
    dcx_end flushed([&] { EXPECT_EQ(UCS_OK, cancel()); }), behind;
    dcx_end first([&] {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, put_short());
        EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
        EXPECT_EQ(0u, behind.count);
        EXPECT_EQ(UCS_INPROGRESS, cancel());
        EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed));
    });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, false));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, behind.count);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, behind.status);
    m_log.take();
    expect_gone(UCS_ERR_CONNECTION_RESET);
}

TEST_P(dcx_ep, destroyed_in_callback)
{
    dcx_end behind, first([&] {
        uct_ep_destroy(m_ep);
        m_ep = NULL;
    });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, false));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return behind.count > 0; });
    EXPECT_EQ(UCS_ERR_CANCELED, behind.status);
    m_dcx.flush();
    EXPECT_EQ(0u, m_dcx.errors.size());
}

/* What stands in line hears of it; also what waits for credits. */
TEST_P(dcx_ep, pending_fails)
{
    std::vector<request> reqs(5, request(this));
    dcx_end end;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, false));
    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    progress_until([&] { return reqs.back().status != UCS_INPROGRESS; });
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, req.status);
    }
    m_log.take();
}

TEST_P(dcx_ep, pending_fails_without_credits)
{
    std::vector<request> reqs(3, request(this));

    while (uct_ep_am_short(m_ep, 5, 0, NULL, 0) == UCS_OK) {
    }
    for (auto &req : reqs) {
        ASSERT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    progress_until([&] { return reqs.back().status != UCS_INPROGRESS; });
    m_dcx.flush();
}

/* --- given up -------------------------------------------------------------- */

TEST_P(dcx_ep, invalidated)
{
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, put_short()); /* the user has not heard yet */
    wait_for_error(UCS_ERR_CANCELED);
    m_dcx.flush();
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(1u, m_dcx.errors.size());
}

TEST_P(dcx_ep, invalidated_with_operations)
{
    dcx_end ends[3];

    for (auto &end : ends) {
        EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    wait_for_error(UCS_ERR_CANCELED);
    for (auto &end : ends) {
        EXPECT_EQ(1u, end.count);
    }
    expect_canceled(ends[2]);
    expect_gone(UCS_ERR_CANCELED);
}

TEST_P(dcx_ep, invalidated_and_destroyed)
{
    dcx_end end;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, put_short());
    uct_ep_destroy(m_ep);
    m_ep = NULL;
    EXPECT_EQ(1u, end.count);
    m_dcx.flush();
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled)
{
    EXPECT_EQ(UCS_OK, cancel());
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled_with_operations)
{
    dcx_end end, flushed[2];

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed[0]));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed[1]));
    progress_until([&] { return cancel() != UCS_INPROGRESS; });
    EXPECT_EQ(1u, end.count);
    expect_canceled(end);
    EXPECT_EQ(1u, flushed[0].count);
    EXPECT_EQ(1u, flushed[1].count);
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, canceled_in_callback)
{
    dcx_end behind, flushed, first([&] {
        EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed));
    });

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(first, true));
    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(behind, true));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, behind.count);
    expect_gone(UCS_ERR_CANCELED);
}

/* As UCP does it: what is pending is taken back first. */
TEST_P(dcx_ep, canceled_with_pending)
{
    std::vector<request> reqs(3, request(this));
    unsigned num_purged = 0;

    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    uct_ep_pending_purge(m_ep, purged, &num_purged);
    EXPECT_EQ(3u, num_purged);
    progress_until([&] {
        ucs_status_t status = cancel();

        return (status != UCS_INPROGRESS) && (status != UCS_ERR_NO_RESOURCE);
    });
    expect_gone(UCS_ERR_CANCELED);
}

/* ... and what is not taken back is called */
TEST_P(dcx_ep, canceled_before_pending)
{
    std::vector<request> reqs(3, request(this));

    fill();
    for (auto &req : reqs) {
        EXPECT_EQ(UCS_OK, uct_ep_pending_add(m_ep, &req.req, 0));
    }
    EXPECT_EQ(UCS_INPROGRESS, cancel());
    progress_until([&] { return reqs.back().status != UCS_INPROGRESS; });
    m_dcx.flush();
    expect_gone(UCS_ERR_CANCELED);
}

TEST_P(dcx_ep, invalidated_then_canceled)
{
    dcx_end end, flushed;

    EXPECT_EQ(UCS_INPROGRESS, put_zcopy(end, true));
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_INPROGRESS, cancel(&flushed));
    progress_until([&] { return flushed.count > 0; });
    EXPECT_EQ(1u, end.count);
    expect_gone(UCS_ERR_CANCELED);
    EXPECT_EQ(0u, m_dcx.errors.size());
}

TEST_P(dcx_ep, checked)
{
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        EXPECT_EQ(UCS_OK, put_short());
        EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
        m_dcx.flush();
    }
    EXPECT_EQ(UCS_OK, uct_ep_invalidate(m_ep, 0));
    EXPECT_EQ(UCS_OK, uct_ep_check(m_ep, 0, NULL));
    wait_for_error(UCS_ERR_CANCELED);
    m_dcx.flush();
}

/* --- bad input ------------------------------------------------------------- */

/* Refused with one line that has 'text' in it */
#define EXPECT_BAD_ADDR(_dev_addr, _iface_addr, _text) \
    do { \
        uct_ep_h _ep = NULL; \
        EXPECT_FALSE(m_dcx.is_reachable(_dev_addr, _iface_addr)); \
        EXPECT_EQ("", m_log.take()); \
        EXPECT_NE(UCS_OK, m_dcx.create_ep(_dev_addr, _iface_addr, 0, &_ep)); \
        std::string _said = m_log.take(); \
        EXPECT_NE(std::string::npos, _said.find(_text)) << _said; \
        EXPECT_EQ(1, std::count(_said.begin(), _said.end(), '\n')) << _said; \
    } while (0)

TEST_P(dcx_ep, bad_interface_address)
{
    auto dev = m_dcx.dev_addr(), good = m_dcx.iface_addr(), addr = good;

    addr[0] = 3;
    EXPECT_BAD_ADDR(dev, addr, "is of version 3, this is 5");

    addr    = good;
    addr[1] = 0x80;
    EXPECT_BAD_ADDR(dev, addr, "its check is");
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "unknown flags 0x80");

    addr = good;
    std::fill(addr.begin() + 2, addr.begin() + 5, 0);
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "no number of a DCT");

    addr     = good;
    addr[21] = 1; /* 256 bytes */
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "receive buffers of 256 bytes");
    addr[20] = 0x41; /* 65 units of 64 KiB, and those */
    dcx_peek_seal_addr(addr.data());
    EXPECT_BAD_ADDR(dev, addr, "receive buffers of 4260096 bytes");

    std::fill(addr.begin(), addr.end(), 0);
    EXPECT_BAD_ADDR(dev, addr, "is of version 0");
    std::fill(addr.begin(), addr.end(), 0xff);
    EXPECT_BAD_ADDR(dev, addr, "is of version 255");

    /* not the access key and the process, so that the check is always the
     * same */
    std::fill(good.begin() + 2, good.begin() + 19, 0x5a);
    dcx_peek_seal_addr(good.data());
    EXPECT_TRUE(m_dcx.is_reachable(dev, good));
    for (size_t size = 5; size < good.size(); size++) {
        addr = good;
        std::fill(addr.begin() + size, addr.end(), 0xa5);
        EXPECT_BAD_ADDR(dev, addr, "its check is");
    }
}

TEST_P(dcx_ep, bad_device_address)
{
    auto good = m_dcx.dev_addr(), iface = m_dcx.iface_addr(), addr = good;

    addr[0] |= 0x10;
    EXPECT_BAD_ADDR(addr, iface, "unknown flags");

    addr    = good;
    addr[1] = 2;
    EXPECT_BAD_ADDR(addr, iface, "InfiniBand and RoCE in one");

    addr    = good;
    addr[2] = 0xc0;
    EXPECT_BAD_ADDR(addr, iface, "a LID that no port has");

    addr    = good;
    addr[4] = 0x11;
    EXPECT_BAD_ADDR(addr, iface, "is in partition 0x11ff, this one in 0xffff");

    std::fill(addr.begin(), addr.end(), 0);
    EXPECT_BAD_ADDR(addr, iface, "a LID that no port has");
    std::fill(addr.begin(), addr.end(), 0xff);
    EXPECT_BAD_ADDR(addr, iface, "the peer's port is of Ethernet");
    addr[0] = 0xfe;
    EXPECT_BAD_ADDR(addr, iface, "unknown flags");

    addr    = good;
    addr[0] = 2;
    std::fill(addr.begin() + 6, addr.end(), 0);
    EXPECT_BAD_ADDR(addr, iface, "no GID");
}

TEST_P(dcx_ep, too_long)
{
#if ENABLE_PARAMS_CHECK
    auto &cap = m_dcx.attr.cap;
    dcx_end end;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_am_short(m_ep, 5, 0, m_dcx.mem.data(),
                              cap.am.max_short - 7));
    EXPECT_NE(std::string::npos, m_log.take().find("am_short"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_put_short(m_ep, m_dcx.mem.data(), cap.put.max_short + 1,
                               m_remote, m_rkey));
    EXPECT_NE(std::string::npos, m_log.take().find("put_short"));
    m_iov.length = cap.am.max_zcopy + 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_am_zcopy(m_ep, 5, NULL, 0, &m_iov, 1, 0, &end.comp));
    EXPECT_NE(std::string::npos, m_log.take().find("am_zcopy"));
    m_iov.length = cap.put.max_zcopy + 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, put_zcopy(end, true));
    EXPECT_NE(std::string::npos, m_log.take().find("put_zcopy"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              uct_ep_get_bcopy(m_ep, unpack, NULL, cap.get.max_bcopy + 1,
                               m_remote, m_rkey, &end.comp));
    EXPECT_NE(std::string::npos, m_log.take().find("get_bcopy"));
    EXPECT_EQ(0u, end.count);
    EXPECT_EQ(UCS_OK, put_short());
    m_dcx.flush();
#else
    GTEST_SKIP() << "this UCX checks no parameters";
#endif
}

INSTANTIATE_TEST_SUITE_P(exclusive, dcx_ep, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(one_dci, dcx_ep, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(shared, dcx_ep, testing::Values(true));

} /* namespace */

int main(int argc, char **argv)
{
    std::vector<std::pair<const char*, const char*>> env = {
        {"UCX_DCX_RX_QUEUE_LEN", "64"}, {"UCX_DCX_TX_QUEUE_LEN", "16"},
        {"UCX_DCX_SEG_SIZE", "512"}, {"UCX_DCX_FAILURE", "error"},
        {"UCX_DCX_TIMEOUT", "1ms"}, {"UCX_DCX_RETRY_COUNT", "2"},
        {"SOFTHCA_LOG", "error"}
    };
    auto one_dci = env, shared = env;

    one_dci.push_back({"UCX_DCX_NUM_DCI", "1"});
    shared.push_back({"UCX_DCX_TX_POLICY", "rand"});
    shared.push_back({"UCX_DCX_NUM_DCI", "1"});
    return hca_test_main(argc, argv, {
        {"exclusive", env}, {"one_dci", one_dci}, {"shared", shared}
    });
}
